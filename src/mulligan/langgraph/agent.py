"""`ReflexionAgent`: the base class of agents that draft, execute and revise an answer, compatible with BioChatter's.

A subclass implements four methods; code written for BioChatter's class, with its six methods, runs unchanged.
"""

from __future__ import annotations

import inspect
import logging
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from mulligan.langgraph.asking import ResponderWithRetries, queries_in, reading_in, recalled
from mulligan.langgraph.defaults import OwnBank, bank_of, store_of
from mulligan.langgraph.graph_texts import result_in
from mulligan.langgraph.journalled import journalled
from mulligan.langgraph.nodes import STEPS, Parts
from mulligan.langgraph.state import DRAFT, EXECUTE_TOOL, GOOD_SCORE, REVISE, Reading, check_limits, last
from mulligan.langgraph.state_graph import assemble
from mulligan.langgraph.working import Recorder, log
from mulligan.pages import answer_of, one_line
from mulligan.plugins import BadAnswer, Bank, InvalidInput, Json
from mulligan.running import Store, portal

Prompted: TypeAlias = "str | Callable[[str], str] | Callable[[str], Awaitable[str]] | None"
"""What a model is told besides the question, or a function of the question that returns it."""
REMEMBERED = 64
"""The number of questions whose prompts a graph remembers."""
DRAFT_NODE, EXECUTE_TOOL_NODE, REVISE_NODE, END_NODE = DRAFT, EXECUTE_TOOL, REVISE, END
QUESTION = "question"
"""The id of the message with the question. With the run's thread it identifies the record that a run continues."""
PROMPT = "prompt.md"
"""The file of a record that holds the prompt."""
LOG_WIDTH = 2000
"""The most characters of one log entry."""
LOG_ENTRIES = 10_000
"""The number of log entries that are kept; the oldest are dropped."""
_LEVELS = {"info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class Conversation:
    """What a conversation factory returned, with its chat model journalled as `.chat`."""

    def __init__(self, factory: Any) -> None:
        conversation: Any = factory
        if callable(factory) and not isinstance(factory, BaseChatModel):
            conversation = factory()
        chat = conversation if isinstance(conversation, BaseChatModel) else getattr(conversation, "chat", None)
        if chat is None:
            raise InvalidInput(
                "The conversation factory must return an object with a chat model as `.chat`: a GptConversation "
                "with its key set, or a LangChain chat model."
            )
        self._conversation = conversation
        self.chat: Any = journalled(chat) if isinstance(chat, BaseChatModel) else chat

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_conversation"], name)


class QuestionPrompt:
    """The prompt for a question, the same at the draft and at each revision, with the recalled lessons.

    Args:
        prompt: The prompt, or a function of the question.
        with_lessons: Adds the lessons to the prompt.
    """

    def __init__(self, prompt: Prompted, with_lessons: Callable[[str | None, str], str | None]) -> None:
        self._prompt, self._with_lessons = prompt, with_lessons
        self._remembered: dict[str, str] = {}

    async def text(self, question: str) -> str | None:
        prompt, lessons = await self._without_lessons(question), recalled()
        return self._with_lessons(prompt, lessons) if lessons else prompt

    async def _without_lessons(self, question: str) -> str | None:
        if not callable(self._prompt):
            return self._prompt
        if question not in self._remembered:
            text = await portal.call(cast(Callable[..., Any], self._prompt), question)
            while len(self._remembered) >= REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[question] = text
        return self._remembered[question]


class Role:
    """Drafts or revises with the responder that `make` returns for a prompt.

    If the prompt is a text, its responder is made at once, so that errors in it are raised before a run begins.

    Args:
        make: Returns the responder for a prompt.
        prompt: The prompt as the user gave it.
        texts: The prompt with the recalled lessons.
        prepare: Called before the model is asked.
    """

    def __init__(
        self,
        make: Callable[[str | None], Any],
        prompt: Prompted,
        texts: QuestionPrompt,
        prepare: Callable[[], Any] | None = None,
    ) -> None:
        self._make, self._texts, self._prepare = make, texts, prepare
        self._newest: tuple[str | None, Any] | None = None if callable(prompt) else (prompt, make(prompt))

    async def __call__(self, messages: list[BaseMessage]) -> Any:
        if self._prepare is not None:
            await portal.call(self._prepare)
        prompt = await self._texts.text(messages[0].text)
        newest = self._newest  # read once: another thread may use the same graph for another question
        if newest is None or newest[0] != prompt:
            newest = self._newest = (prompt, self._make(prompt))
        return await portal.call(*_call_of(newest[1], messages))


def _call_of(responder: Any, messages: list[BaseMessage]) -> tuple[Callable[..., Any], Any]:
    """Return the function that asks a responder, the async one if there is one, and its argument.

    A responder is an object with `respond`, a runnable, or a function.
    """
    if getattr(cast(Any, type(responder)), "respond", None) is ResponderWithRetries.respond:
        return responder.arespond, messages
    if hasattr(responder, "respond"):
        return responder.respond, messages
    for method in ("ainvoke", "invoke"):
        if hasattr(responder, method):
            return getattr(responder, method), {"messages": messages}
    return responder, messages


@dataclass(frozen=True)
class ReflexionAgentResult:
    """The result of a question.

    Attributes:
        answer: The answer that was executed last or, if the run ended unsure, the best; None if the model gave no valid
            answer.
        tool_result: The result of executing the answer; None if the run ended absent.
        score: The model's own score for the answer, from 0 to 10; higher is better.
        stop: Why the run ended: "solved"; "unconfirmed" (a rule ended it, for example because a query returned rows,
            but the model did not rate them as good); "unsure" (no steps are left, and the best rows were not judged
            good enough); "absent" (what the question names is not in the graph); "exhausted" (no steps are left);
            "gave_up" (no valid answer).
        detail: Details of why it ended, such as the model's critique.
        run: The id for `mulligan runs show`.
        note: A remark on the result, such as that there are more rows.
        sentence: The answer in a sentence, if it was requested.
    """

    answer: str | None
    tool_result: list[Any] | None = None
    score: float | None = None
    stop: str | None = None
    detail: str = ""
    run: str = ""
    note: str = ""
    sentence: str = ""

    def __str__(self) -> str:
        return self.answer or ""


class ReflexionAgentLogger:
    """The log of one agent. `logs` is the complete text, one line per entry."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LOG_ENTRIES)

    def log_step_message(self, step: int, node_name: str, output: BaseMessage) -> None:
        """Log a node's message: the arguments of its tool calls, or its text."""
        calls = getattr(output, "tool_calls", ())
        text = "; ".join(f"{call['name']}({_arguments(call['args'])})" for call in calls) or output.text
        self._log_message(f"step {step}, {node_name}: {text}")

    def log_final_result(self, final_result: Any) -> None:
        """Log the final result."""
        self._log_message(f"result: {final_result}")

    @property
    def logs(self) -> str:
        """The complete log."""
        return "".join(f"{line}\n" for line in self._lines)

    def _log_message(self, msg: str, level: str = "info") -> None:
        """level: "info", "warn" or "error"."""
        line = one_line(msg, LOG_WIDTH)
        log.log(_LEVELS.get(level, logging.INFO), "%s", line)
        self._lines.append(f"[{level}]{datetime.now(UTC).isoformat(timespec='seconds')} - {line}")


class Transcript(list[BaseMessage]):
    """The messages of a run, the question first. Attributes of a message are those of the model's newest answer.

    So it serves both kinds of subclasses: those whose `_parse_final_result` takes one message, and those whose takes
    all of them. `result` is what `_parse_final_result` returned, once it has run.
    """

    result: Any = None

    @property
    def newest(self) -> BaseMessage:
        """The newest message of the model; if there is none, the last message of all."""
        return last(self, AIMessage) or self[-1]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self:
            raise AttributeError(name)
        return getattr(self.newest, name)

    def to(self, method: Callable[[Any], Any]) -> Any:
        """Call the method with the messages, or with the newest one if its parameter is annotated as a message."""
        annotation: Any = None
        with suppress(NameError, TypeError, ValueError):  # an annotation that cannot be read does not count
            annotation = next(iter(inspect.signature(method, eval_str=True).parameters.values())).annotation
        takes_message = isinstance(annotation, type) and issubclass(annotation, BaseMessage)
        return method(self.newest if takes_message else self)


class ReflexionAgent(ABC):
    """Drafts, executes and revises an answer until it is good enough or no steps are left.

    Args:
        conversation_factory: Returns an object with a LangChain chat model as `.chat`, or the chat model itself.
        max_steps: The maximum number of drafts and revisions; 0 or less means 30.
        good_score: The score of a revision, from 0 to 10, that ends the run.
        store: Where runs are recorded; None: the store that `mulligan runs` reads; False: nowhere.
        agent_id: The owner of the records.
        bank: A bank or an agent_id. Lessons are recalled from it before the draft and added to the prompt.
        learn: Whether the bank learns from each run that ends.

    Raises:
        InvalidInput: A value is out of range, or there is no chat model.
    """

    def __init__(
        self,
        conversation_factory: Callable[[], Any] | Any,
        max_steps: int = STEPS,
        agent_logger: ReflexionAgentLogger | None = None,
        *,
        good_score: float = GOOD_SCORE,
        store: Store | bool | None = None,
        agent_id: str = "",
        bank: Bank | str | None = None,
        learn: bool = True,
    ) -> None:
        check_limits(max_steps, good_score)
        self.conversation = Conversation(conversation_factory)
        self.max_steps = max_steps if max_steps > 0 else STEPS
        self.agent_logger = ReflexionAgentLogger() if agent_logger is None else agent_logger
        self.good_score = good_score
        self._given_store, self._agent_id = store, agent_id
        self._opened: Store | None = None
        self._bank = bank_of(bank)
        self._learn = learn
        self._notice: Callable[[str], None] = log.info

    # --- implemented by a subclass ------------------------------------------------------------------------------

    @abstractmethod
    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Execute what the last message, a draft or a revision, proposes."""

    @abstractmethod
    def _create_initial_responder(self, prompt: str | None = None) -> Any:
        """Return what drafts: an object with `respond(messages)`, a runnable over {"messages": …}, or a function."""

    @abstractmethod
    def _create_revise_responder(self, prompt: str | None = None) -> Any:
        """Return what scores the newest result, reflects on it and revises, in one of the same forms."""

    @abstractmethod
    def _parse_final_result(self, output: Any) -> Any:
        """Return the result of `execute`, given a `Transcript`; or, if the parameter is annotated as a message
        (`output: BaseMessage`), the newest message of the model."""

    # --- may be overridden ----------------------------------------------------------------------------------------

    def _should_continue(self, state: list[BaseMessage]) -> str:
        """Return EXECUTE_TOOL_NODE to continue after a revision, the last message, or END_NODE. The limit of steps
        holds in any case."""
        if self._get_num_iterations(state) >= self.max_steps:
            return END_NODE
        tool = last(state, ToolMessage)
        if tool is None:
            return EXECUTE_TOOL_NODE
        ends = self._passed(self._read(cast(AIMessage, state[-1])), tool) or self._settles(tool)
        return END_NODE if ends else EXECUTE_TOOL_NODE

    def _log_step_message(self, step: int, node: str, output: BaseMessage) -> None:
        self.agent_logger.log_step_message(step, node, output)

    def _log_final_result(self, output: Any) -> None:
        self.agent_logger.log_final_result(output.result if isinstance(output, Transcript) else output)

    def _read(self, message: AIMessage) -> Reading:
        """Read the fields of `GenerateQuery` and `ReviseQuery` from the first tool call; without one, the text."""
        calls = getattr(message, "tool_calls", ())
        if not calls:
            return Reading(answer_of(message.text))
        fields = calls[0]["args"]
        return reading_in(fields, next(iter(queries_in(fields)), message.text))

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        """Return the answer that was really executed, if the tool's message has it."""
        return reading.answer

    def _passed(self, reading: Reading, message: ToolMessage) -> bool | None:
        """Return whether the executed answer is good enough, given the revision and the tool's message; None if the
        revision has no score."""
        return reading.passes(self.good_score)

    def _settles(self, message: ToolMessage) -> str:
        """Return why this result ends the loop in any case; "" if it does not. If `_passed` does not call the result
        good, the run then ends as "unconfirmed"."""
        return ""

    def _judge(self) -> Callable[[list[BaseMessage]], Any] | None:
        """Return what judges each result before a revision, a function of the messages; None: the revision judges."""
        return None

    def _conclude(self) -> Callable[[str, ToolMessage], Awaitable[None]] | None:
        """Return what is done before a run ends: see `Parts`."""
        return None

    def _prepare(self) -> Any:
        """Called before the first call of the model. May be a coroutine function."""
        return None

    # --- for subclasses to call -----------------------------------------------------------------------------------

    @staticmethod
    def _get_num_iterations(state: Sequence[BaseMessage]) -> int:
        """Return the number of steps since the question. A step is a draft or a revision."""
        question = max((n for n, message in enumerate(state) if isinstance(message, HumanMessage)), default=-1)
        return sum(isinstance(message, AIMessage) for message in state[question + 1 :])

    @staticmethod
    def _get_user_question(state: Sequence[BaseMessage]) -> str:
        """Return the newest question; "" if there is none."""
        return next((message.text for message in reversed(state) if isinstance(message, HumanMessage)), "")

    @staticmethod
    def _get_last_tool_result(state: Sequence[BaseMessage]) -> Any:
        """Return the "result" of the newest tool message, or its whole text if it is other JSON; None without one."""
        message = last(state, ToolMessage)
        return None if message is None else result_in(message)

    # --- running --------------------------------------------------------------------------------------------------

    def execute(self, question: str, prompt: Prompted = None) -> Any:
        """Answer a question; see `aexecute`.

        This can be called in a running event loop, such as a notebook's, and blocks it.
        """
        return portal.run_coroutine(self.aexecute(question, prompt))

    async def aexecute(self, question: str, prompt: Prompted = None, config: RunnableConfig | None = None) -> Any:
        """Answer a question, and return what `_parse_final_result` returns for the messages.

        Args:
            prompt: Instructions for the model, besides the question, for the draft and each revision; or a function
                that takes the question and returns them.
            config: LangGraph's configuration, such as callbacks.

        Raises:
            InvalidInput: The question is empty.
            BadAnswer: The model gave no answer that could be converted to a result.
            Exception: The model or the tool raised it. The record contains everything that was done before.
        """
        if not question.strip():
            raise InvalidInput("The question is empty. Write what you want to find out.")
        messages, result = Transcript([HumanMessage(question, id=QUESTION)]), dict[str, Any]()
        graph = self.graph(prompt).compile()
        config = {**(config or {}), "recursion_limit": 2 * self.max_steps + 5}
        config["configurable"] = {"thread_id": secrets.token_hex(8), **config.get("configurable", {})}
        async for update in graph.astream(
            {"messages": [*messages]}, cast(RunnableConfig, config), stream_mode="updates"
        ):
            for node, values in update.items():
                written = cast(dict[str, Any], values or {})
                for message in written.get("messages", ()):
                    messages.append(message)
                    self._log_step_message(len(messages) - 1, node, message)
                result = written.get("reflexion") or result
        messages.result = self._final(messages, result)
        messages.to(self._log_final_result)
        return messages.result

    def resume(self, run: str, prompt: Prompted = None) -> Any:
        """Continue a recorded run that was interrupted; see `aresume`."""
        return portal.run_coroutine(self.aresume(run, prompt))

    async def aresume(self, run: str, prompt: Prompted = None, config: RunnableConfig | None = None) -> Any:
        """Continue an interrupted run, given by its id or the beginning of its id. Nothing is done twice.

        Args:
            prompt: As passed to `execute`. A string is in the record and need not be passed again.

        Raises:
            InvalidInput: The run is finished, or it belongs to another agent.
            NotFound, LeaseLost
        """
        store = self._store()
        if store is None:
            raise InvalidInput("This agent records nothing (store=False), so it cannot resume a run.")
        episode = await store.load((await store.resolve(run))[0])
        settings = episode.head.settings
        if settings.get("agent") != type(self).__name__ or "thread" not in settings:
            raise InvalidInput(
                f"Run {episode.run} is not a run of {type(self).__name__}. See mulligan runs show {run}."
            )
        if episode.stop is not None and not episode.stop.resumable:
            raise InvalidInput(f"Run {episode.run} has ended: {episode.stop.reason}, {episode.stop.detail}.")
        prompt = prompt or (await store.files(episode.id)).get(PROMPT)
        config = {**(config or {}), "configurable": {"thread_id": settings["thread"]}}
        return await self.aexecute(episode.task.prompt, prompt, config)

    def _final(self, messages: Transcript, result: dict[str, Any]) -> Any:
        """Return what `_parse_final_result` makes of the messages, completed from the graph's result."""
        try:
            final = messages.to(self._parse_final_result)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            if result.get("answer") is None:
                raise BadAnswer(result.get("detail") or "The model gave no answer.") from error
            raise
        if isinstance(final, ReflexionAgentResult) and final.stop is None:
            detail = "; ".join(text for text in (result.get("detail"), final.detail) if text)
            run = result.get("run") or ""
            final = replace(final, score=result.get("score"), stop=result.get("stop"), detail=detail, run=run)
        return final

    def graph(self, prompt: Prompted = None) -> Any:
        """Return the agent as an uncompiled `StateGraph`, for checkpointers or interrupts, or as a part of another
        graph.
        """
        prompt = self._prompt(prompt)
        texts = QuestionPrompt(prompt, self._with_lessons)
        has_own_rule = type(self)._should_continue is not ReflexionAgent._should_continue
        parts = Parts(
            draft=Role(self._create_initial_responder, prompt, texts, self._prepare),
            execute=self._tool_function,
            revise=Role(self._create_revise_responder, prompt, texts),
            read=self._read,
            answered=self._answered,
            passed=self._passed,
            goes_on=self._should_continue if has_own_rule else None,
            settles=self._settles,
            judge=self._judge(),
            conclude=self._conclude(),
            notice=self._notice,
        )
        return assemble(
            parts,
            recorder=self._recorder(),
            steps=self.max_steps,
            models=dict.fromkeys(("draft", "revise"), self.conversation.chat),
            prompts=self._prompt_texts(),
            settings={"agent": type(self).__name__, **self._settings()},
            agent_id=self._agent_id,
            bank=self._recalling(),
            learn=self._learn,
            name=type(self).__name__,
            files={PROMPT: prompt} if isinstance(prompt, str) else None,
        )

    def _recalling(self) -> Bank | None:
        """Return the bank that lessons are recalled from."""
        return self._bank

    def _settings(self) -> dict[str, Json]:
        """Return the settings of the agent that the record keeps."""
        return {"max_steps": self.max_steps, "good_score": self.good_score}

    def _prompt_texts(self) -> Mapping[str, str]:
        """Return the texts of the prompt files that the agent uses, by name."""
        return {}

    def _with_lessons(self, prompt: str | None, lessons: str) -> str | None:
        """Return the prompt with the recalled lessons."""
        return "\n\n".join(part for part in (prompt, lessons) if part) or None

    def get_logs(self) -> str:
        """Return the log, one line per entry."""
        return self.agent_logger.logs

    def close(self) -> None:
        """Close the store and bank that the agent opened. You can call it more than once, or not at all."""
        portal.run_coroutine(self.aclose())

    async def aclose(self) -> None:
        """Same as `close`, for asynchronous code."""
        store, self._opened = self._opened, None
        if isinstance(self._bank, OwnBank):
            await self._bank.close()
        if store is not None:
            await store.close()

    def _recorder(self) -> Recorder:
        return Recorder(self._store())

    def _prompt(self, given: Prompted) -> Prompted:
        """Return the prompt to use, given the caller's."""
        return given

    def _store(self) -> Store | None:
        if self._given_store is not None and not isinstance(self._given_store, bool):
            return self._given_store
        if self._opened is None:
            self._opened = store_of(self._given_store)
        return self._opened


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
