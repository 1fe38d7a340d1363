"""The drafting and revising roles of a `ReflexionAgent`: its conversation, its prompt, and the responders it makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from mulligan.core.errors import InvalidInput
from mulligan.langgraph.asking import ResponderWithRetries, recalled
from mulligan.langgraph.bridge import called
from mulligan.langgraph.journalled import journalled

Prompted: TypeAlias = "str | Callable[[str], str] | Callable[[str], Awaitable[str]] | None"
"""What a model is told besides the question, or a function of the question that returns it."""
REMEMBERED = 64
"""The number of questions whose prompts a graph keeps."""


class Conversation:
    """What a conversation factory returned, with its chat model journalled as `.chat`."""

    def __init__(self, factory: Any) -> None:
        made = factory if isinstance(factory, BaseChatModel) or not callable(factory) else factory()
        chat = made if isinstance(made, BaseChatModel) else getattr(made, "chat", None)
        if chat is None:
            raise InvalidInput(
                "The conversation factory returned nothing with a chat model as `.chat`. Return a GptConversation with "
                "its key set, or a LangChain chat model."
            )
        self._made = made
        self.chat: Any = journalled(chat) if isinstance(chat, BaseChatModel) else chat

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_made"], name)


class QuestionPrompt:
    """The prompt for a question, the same at the draft and at each revision, with the recalled lessons.

    Args:
        prompt: The prompt, or a function of the question.
        with_lessons: Adds the lessons to the prompt.
    """

    def __init__(self, prompt: Prompted, with_lessons: Callable[[str | None, str], str | None]) -> None:
        self._prompt, self._with_lessons = prompt, with_lessons
        self._known: dict[str, str] = {}

    async def text(self, question: str) -> str | None:
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


class Role:
    """Drafts or revises, by the responder that `make` returns for a prompt.

    A prompt that is known makes its responder at once, so that what cannot work is an error before anything is done.

    Args:
        make: Returns the responder for a prompt.
        prompt: The prompt as the user gave it.
        texts: The prompt with the recalled lessons.
        first: Called before anything is asked.
    """

    def __init__(
        self,
        make: Callable[[str | None], Any],
        prompt: Prompted,
        texts: QuestionPrompt,
        first: Callable[[], Any] | None = None,
    ) -> None:
        self._make, self._texts, self._first = make, texts, first
        self._made: tuple[str | None, Any] | None = None if callable(prompt) else (prompt, make(prompt))

    async def __call__(self, messages: list[BaseMessage]) -> Any:
        if self._first is not None:
            await called(self._first)
        prompt = await self._texts.text(messages[0].text)
        made = self._made  # another thread may use the same graph for another question at the same time
        if made is None or made[0] != prompt:
            made = self._made = (prompt, self._make(prompt))
        return await called(*_call_of(made[1], messages))


def _call_of(responder: Any, messages: list[BaseMessage]) -> tuple[Callable[..., Any], Any]:
    """Return how a responder is called: an object with `respond`, a runnable, or a function; async where it can be."""
    own: Any = getattr(cast(Any, type(responder)), "respond", None)
    if own is ResponderWithRetries.respond:
        return responder.arespond, messages
    if hasattr(responder, "respond"):
        return responder.respond, messages
    for method in ("ainvoke", "invoke"):
        if hasattr(responder, method):
            return getattr(responder, method), {"messages": messages}
    return responder, messages
