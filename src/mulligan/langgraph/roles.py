"""Who drafts and revises: a conversation's chat model, and responders that are made once for what they are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from mulligan.app.places import Notice
from mulligan.app.teaching import said
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.protocols import Learned, Model
from mulligan.core.records import Episode, Recall, Task
from mulligan.langgraph.bridge import called, portal
from mulligan.langgraph.journalled import journalled
from mulligan.langgraph.responder import ResponderWithRetries
from mulligan.langgraph.working import here

Prompted: TypeAlias = "str | Callable[[str], str] | Callable[[str], Awaitable[str]] | None"
"""What a model is told besides the question, or a function of the question that makes it."""
REMEMBERED = 64
"""Questions whose prompt is kept, of one graph."""


class Conversation:
    """What a conversation factory made, with its chat model journalled."""

    def __init__(self, made: Any) -> None:
        chat = made if isinstance(made, BaseChatModel) else getattr(made, "chat", None)
        if chat is None:
            raise InvalidInput(
                "The conversation factory gave nothing with a chat model as `.chat`: return a GptConversation whose "
                "key is set, or a LangChain chat model."
            )
        self._made = made
        self.chat: Any = journalled(chat) if isinstance(chat, BaseChatModel) else chat

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_made"], name)


def conversation(factory: Any) -> Conversation:
    """Of a factory, or of a chat model itself. Raises `InvalidInput`."""
    return Conversation(factory if isinstance(factory, BaseChatModel) or not callable(factory) else factory())


class Told:
    """The prompt for a question, the same at the draft and at each revision, and the lessons that the bank recalled.

    lessons: puts both together.
    """

    def __init__(self, prompt: Prompted, lessons: Callable[[str | None, str], str | None]) -> None:
        self._prompt, self._with_lessons = prompt, lessons
        self._known: dict[str, str] = {}

    async def about(self, question: str) -> str | None:
        prompt, lessons = await self._own(question), recalled()
        return self._with_lessons(prompt, lessons) if lessons else prompt

    async def _own(self, question: str) -> str | None:
        if not callable(self._prompt):
            return self._prompt
        if question not in self._known:
            text = await called(cast(Callable[..., Any], self._prompt), question)
            while len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[question] = text
        return self._known[question]


def recalled() -> str:
    """The lessons that the bank recalled for the question of the node that runs now, in words; "" for none."""
    work = here.get()
    recall = work.episode.recall if work else None
    return recall.formatted_prompt if recall else ""


class OwnBank:
    """The bank of an agent_id, opened when it is first asked, on one event loop for life: its work goes on there behind
    the callers' backs, whose loops come and go. model: who thinks for it; None: as `open_bank` has it.
    notice: is told what was learned."""

    def __init__(self, agent_id: str, model: Model | None = None, notice: Notice | None = None) -> None:
        self.agent_id = agent_id
        self._model, self._notice = model, notice
        self._opened: Any = None

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return await portal.within(self._bank().recall(task, top_k=top_k))

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        try:
            learned = await portal.within(self._bank().learn(episodes))
        except MulliganError as error:
            if self._notice:
                self._notice(f"nothing was learned: {error}")
            raise
        if self._notice:
            self._notice(said(learned, self.agent_id))
        return learned

    async def close(self) -> None:
        bank, self._opened = self._opened, None
        if bank is not None:
            await portal.within(bank.close())

    def _bank(self) -> Any:
        if self._opened is None:
            from mulligan.app.memory import open_bank

            self._opened = open_bank(self.agent_id, model=self._model)
        return self._opened


class Role:
    """Drafts or revises, by the responder that `make` makes of a prompt: made at once where the prompt is known, so
    that what cannot work is said before anything is done. first: called before anything is asked."""

    def __init__(
        self,
        make: Callable[[str | None], Any],
        prompt: Prompted,
        told: Told,
        first: Callable[[], Any] | None = None,
    ) -> None:
        self._make, self._told, self._first = make, told, first
        self._made: tuple[str | None, Any] | None = None if callable(prompt) else (prompt, make(prompt))

    async def __call__(self, messages: list[BaseMessage]) -> Any:
        if self._first is not None:
            await called(self._first)
        prompt = await self._told.about(messages[0].text)
        made = self._made  # another thread may ask another question of the same graph meanwhile
        if made is None or made[0] != prompt:
            made = self._made = (prompt, self._make(prompt))
        return await called(*_asking(made[1], messages))


def _asking(responder: Any, messages: list[BaseMessage]) -> tuple[Callable[..., Any], Any]:
    """How a responder is asked: an object with `respond`, a runnable, or a function. Without a thread where it can."""
    own: Any = getattr(cast(Any, type(responder)), "respond", None)
    if own is ResponderWithRetries.respond:
        return responder.arespond, messages
    if hasattr(responder, "respond"):
        return responder.respond, messages
    for way in ("ainvoke", "invoke"):
        if hasattr(responder, way):
            return getattr(responder, way), {"messages": messages}
    return responder, messages
