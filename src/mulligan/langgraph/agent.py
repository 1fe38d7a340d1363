"""`ReflexionAgent`: subclass it, say how to draft, execute and revise, and it goes round (BioChatter's base class).

Code written for the seed's class runs here: its six methods, or the four of the code that it documents.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END

from mulligan.core.episode import RESUMABLE
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.plain import one_line
from mulligan.core.protocols import Bank, Store
from mulligan.core.records import Json
from mulligan.langgraph import bridge
from mulligan.langgraph.defaults import OwnBank, store_of
from mulligan.langgraph.nodes import STEPS, Nodes, Parts, episode_head
from mulligan.langgraph.reflexion_graph import GOOD_SCORE
from mulligan.langgraph.roles import Conversation, Prompted, QuestionPrompt, Role
from mulligan.langgraph.rows import result_in
from mulligan.langgraph.schemas import queries_in, score_of
from mulligan.langgraph.state import DRAFT, EXECUTE_TOOL, REVISE, Reading, check_limits
from mulligan.langgraph.state_graph import wired
from mulligan.langgraph.working import Recorder, log

DRAFT_NODE, EXECUTE_TOOL_NODE, REVISE_NODE, END_NODE = DRAFT, EXECUTE_TOOL, REVISE, END
QUESTION = "question"
"""The id of the message that asks: with the run's thread, it says which record a run goes on with."""
PROMPT = "prompt.md"
"""What the model was told, among the files of a record."""

LOG_WIDTH = 2000
"""Characters of one entry."""
LOG_ENTRIES = 10_000
"""Entries that are kept, the newest."""
_LEVELS = {"info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


@dataclass(frozen=True)
class ReflexionAgentResult:
    """answer: what was executed last; None where the model gave nothing that can be used. tool_result: what that gave.

    score: of the answer, 0 to 10, higher is better, by the model itself. stop, detail: why it ended: "solved",
    "unconfirmed" (a rule ended it, such as that rows came back, and the model does not call them good; detail has its
    critique), "exhausted" (the steps are used up), "gave_up" (no answer that can be used). run: for `mulligan runs
    show`. note: what qualifies the result, such as that there are more rows.
    """

    answer: str | None
    tool_result: list[Any] | None = None
    score: float | None = None
    stop: str | None = None
    detail: str = ""
    run: str = ""
    note: str = ""

    def __str__(self) -> str:
        return self.answer or ""


class ReflexionAgentLogger:
    """One for each agent; `logs` is all that was logged so far, a line an entry."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LOG_ENTRIES)

    def log_step_message(self, step: int, node_name: str, output: BaseMessage) -> None:
        """What a node gave: the arguments of its tool calls, or its text."""
        calls = getattr(output, "tool_calls", ())
        said = "; ".join(f"{call['name']}({_arguments(call['args'])})" for call in calls) or output.text
        self._log_message(f"step {step}, {node_name}: {said}")

    def log_final_result(self, final_result: Any) -> None:
        self._log_message(f"result: {final_result}")

    @property
    def logs(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def _log_message(self, msg: str, level: str = "info") -> None:
        """level: "info", "warn" or "error"."""
        line = one_line(msg, LOG_WIDTH)
        log.log(_LEVELS.get(level, logging.INFO), "%s", line)
        self._lines.append(f"[{level}]{datetime.now(UTC).isoformat(timespec='seconds')} - {line}")


class Transcript(list[BaseMessage]):
    """The messages of a run, the question first. Asked for an attribute of a message, the newest of the model's
    answers: the seed hands that one to `_parse_final_result` and `_log_final_result`, its code all messages.

    result: what `_parse_final_result` made of them, once it has.
    """

    result: Any = None

    @property
    def newest(self) -> BaseMessage:
        """The newest message of the model; where it gave none that can be used, the last message of all."""
        return next((message for message in reversed(self) if isinstance(message, AIMessage)), self[-1])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self:
            raise AttributeError(name)
        return getattr(self.newest, name)

    def to(self, method: Callable[[Any], Any]) -> Any:
        """What the method gives for them; for the newest one where its parameter is annotated as a message."""
        annotation: Any = None
        with suppress(NameError, TypeError, ValueError):  # one that cannot be read is none
            annotation = next(iter(inspect.signature(method, eval_str=True).parameters.values())).annotation
        one = isinstance(annotation, type) and issubclass(annotation, BaseMessage)
        return method(self.newest if one else self)


class ReflexionAgent(ABC):
    """Draft, execute, revise, until it is good enough or the steps are used up.

    conversation_factory: makes an object with a LangChain chat model as `.chat`, or the chat model. max_steps: drafts
    and revisions at most; 0 or less: 30. good_score: the score of a revision that ends it, 0 to 10. store: where runs
    are recorded; None: where `mulligan runs` looks; False: nowhere. agent_id: whose record it is. bank: lessons are
    recalled from it before the draft, and shown with the prompt; a bank, or an agent_id. learn: it is taught by each
    question that is over.

    Raises `InvalidInput`.
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
        self._bank = OwnBank(bank) if isinstance(bank, str) else bank
        self._learn = learn

    # --- to be written by a subclass ------------------------------------------------------------------------------

    @abstractmethod
    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Executes what the newest draft or revision, the last message, proposes."""

    @abstractmethod
    def _create_initial_responder(self, prompt: str | None = None) -> Any:
        """What drafts: an object with `respond(messages)`, a runnable over {"messages": …}, or a function of them."""

    @abstractmethod
    def _create_revise_responder(self, prompt: str | None = None) -> Any:
        """What scores the newest result, reflects on it and revises: as above."""

    @abstractmethod
    def _parse_final_result(self, output: Any) -> Any:
        """What `execute` returns, made of all messages; asked for an attribute of a message, they give that of the
        model's newest. A parameter that is annotated as a message (`output: BaseMessage`) gets that one alone."""

    # --- may be overridden ----------------------------------------------------------------------------------------

    def _should_continue(self, state: list[BaseMessage]) -> str:
        """EXECUTE_TOOL_NODE to go on or END_NODE, after each revision, the last message. The limit of steps holds
        whatever it says."""
        if self._get_num_iterations(state) >= self.max_steps:
            return END_NODE
        tool = next((message for message in reversed(state) if isinstance(message, ToolMessage)), None)
        if tool is None:
            return EXECUTE_TOOL_NODE
        ends = self._passed(self._read(cast(AIMessage, state[-1])), tool) or self._settles(tool)
        return END_NODE if ends else EXECUTE_TOOL_NODE

    def _log_step_message(self, step: int, node: str, output: BaseMessage) -> None:
        self.agent_logger.log_step_message(step, node, output)

    def _log_final_result(self, output: Any) -> None:
        self.agent_logger.log_final_result(output.result if isinstance(output, Transcript) else output)

    def _read(self, message: AIMessage) -> Reading:
        """Of the first tool call, the fields of `GenerateQuery` and `ReviseQuery`; without one, the text."""
        calls = getattr(message, "tool_calls", ())
        if not calls:
            return Reading(message.text)
        given = calls[0]["args"]
        answer = next(iter(queries_in(given)), message.text)
        return Reading(answer, str(given.get("reflection") or ""), score_of(given.get("score")))

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        """The answer that was really executed, as far as the tool's message says."""
        return reading.answer

    def _passed(self, reading: Reading, message: ToolMessage) -> bool | None:
        """Whether what was executed is good enough, by the revision that looked at it and the tool's message; None
        where the revision gave no score."""
        return None if reading.score is None else reading.score >= self.good_score

    def _settles(self, message: ToolMessage) -> str:
        """Why what the tool gave ends the loop, whatever a revision says of it; "" where it does not. Where `_passed`
        does not call it good, the run is then "unconfirmed"."""
        return ""

    def _prepare(self) -> Any:
        """Called before the model is first asked; may be a coroutine function."""
        return None

    # --- for subclasses to call -----------------------------------------------------------------------------------

    @staticmethod
    def _get_num_iterations(state: Sequence[BaseMessage]) -> int:
        """Steps since the question: a step is one draft or one revision."""
        return sum(isinstance(message, AIMessage) for message in _since_question(state))

    @staticmethod
    def _get_user_question(state: Sequence[BaseMessage]) -> str:
        """The newest question; "" where nobody asked one."""
        return next((message.text for message in reversed(state) if isinstance(message, HumanMessage)), "")

    @staticmethod
    def _get_last_tool_result(state: Sequence[BaseMessage]) -> Any:
        """What "result" was in the newest tool message; all of it where that is no such JSON; None without one."""
        message = next((message for message in reversed(state) if isinstance(message, ToolMessage)), None)
        return None if message is None else result_in(message)

    # --- running --------------------------------------------------------------------------------------------------

    def execute(self, question: str, prompt: Prompted = None) -> Any:
        """Answers the question; what `_parse_final_result` makes of the messages. See `aexecute`. May be called where
        an event loop runs (a notebook), which stands still meanwhile."""
        return bridge.run(self.aexecute(question, prompt))

    async def aexecute(self, question: str, prompt: Prompted = None, config: RunnableConfig | None = None) -> Any:
        """prompt: what the model is told besides the question, at the draft and at each revision; or a function of the
        question that makes it. config: LangGraph's, for callbacks and the like.

        Raises `InvalidInput` for an empty question, `BadAnswer` where the model gave nothing that the agent could make
        a result of, and what the model or the tool raises; what was done until then is in the record.
        """
        if not question.strip():
            raise InvalidInput("The question is empty: say what is to be found out.")
        messages, ended = Transcript([HumanMessage(question, id=QUESTION)]), dict[str, Any]()
        graph = self.graph(prompt).compile()
        config = {**(config or {}), "recursion_limit": 2 * self.max_steps + 5}
        config["configurable"] = {"thread_id": secrets.token_hex(8), **config.get("configurable", {})}
        async for update in graph.astream(
            {"messages": [*messages]}, cast(RunnableConfig, config), stream_mode="updates"
        ):
            for node, values in update.items():
                given = cast(dict[str, Any], values or {})
                for message in given.get("messages", ()):
                    messages.append(message)
                    self._log_step_message(len(messages) - 1, node, message)
                ended = given.get("reflexion") or ended
        messages.result = self._final(messages, ended)
        messages.to(self._log_final_result)
        return messages.result

    def resume(self, run: str, prompt: Prompted = None) -> Any:
        """Goes on with a recorded run that was cut short. See `aresume`."""
        return bridge.run(self.aresume(run, prompt))

    async def aresume(self, run: str, prompt: Prompted = None, config: RunnableConfig | None = None) -> Any:
        """Goes on with a run (its id, or the beginning of one) where it was cut short: what was done is not done again.

        prompt: as it was given to `execute`; a text is in the record, and need not be given again. Raises `NotFound`,
        `LeaseLost`, `InvalidInput` where there is nothing left to do or another agent's run is meant.
        """
        store = self._store()
        if store is None:
            raise InvalidInput("This agent records nothing (store=False), so that it has nothing to go on with.")
        episode = await store.load((await store.resolve(run))[0])
        settings = episode.head.settings
        if settings.get("agent") != type(self).__name__ or "thread" not in settings:
            raise InvalidInput(f"Run {episode.run} is none of {type(self).__name__}: see mulligan runs show {run}.")
        if episode.stop is not None and episode.stop.reason not in RESUMABLE:
            raise InvalidInput(f"Run {episode.run} is over: {episode.stop.reason}, {episode.stop.detail}.")
        told = prompt or (await store.files(episode.id)).get(PROMPT)
        config = {**(config or {}), "configurable": {"thread_id": settings["thread"]}}
        return await self.aexecute(episode.task.prompt, told, config)

    def _final(self, messages: Transcript, ended: dict[str, Any]) -> Any:
        try:
            final = messages.to(self._parse_final_result)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            if ended.get("answer") is None:
                raise BadAnswer(ended.get("detail") or "The model gave no answer.") from error
            raise
        if isinstance(final, ReflexionAgentResult) and final.stop is None:
            detail = "; ".join(text for text in (ended.get("detail"), final.detail) if text)
            run = ended.get("run") or ""
            final = replace(final, score=ended.get("score"), stop=ended.get("stop"), detail=detail, run=run)
        return final

    def graph(self, prompt: Prompted = None) -> Any:
        """The agent as a `StateGraph` that is not compiled: for checkpointers, interrupts, or as a part of another."""
        prompt = self._prompt(prompt)
        texts = QuestionPrompt(prompt, self._with_lessons)
        own_rule = type(self)._should_continue is not ReflexionAgent._should_continue
        parts = Parts(
            Role(self._create_initial_responder, prompt, texts, self._prepare),
            self._tool_function,
            Role(self._create_revise_responder, prompt, texts),
            self._read,
            self._answered,
            self._passed,
            self._should_continue if own_rule else None,
            self._settles,
        )
        files = self._prompt_texts()
        hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
        given = {PROMPT: prompt} if isinstance(prompt, str) else {}
        chat, settings = self.conversation.chat, {"agent": type(self).__name__, **self._settings()}
        return wired(
            Nodes(
                parts,
                self._recorder(),
                self.max_steps,
                self._agent_id,
                episode_head({"draft": chat, "revise": chat}, hashes, settings),
                {**{f"prompts/{name}.md": text for name, text in files.items()}, **given},
                self._bank,
                self._learn,
                type(self).__name__,
            )
        )

    def _settings(self) -> dict[str, Json]:
        """What the record says of how the agent was made."""
        return {"max_steps": self.max_steps, "good_score": self.good_score}

    def _prompt_texts(self) -> Mapping[str, str]:
        """The prompt files that the agent rests on, by name."""
        return {}

    def _with_lessons(self, prompt: str | None, lessons: str) -> str | None:
        """The prompt, with what the bank recalled."""
        return "\n\n".join(part for part in (prompt, lessons) if part) or None

    def get_logs(self) -> str:
        """All that was logged so far, a line an entry."""
        return self.agent_logger.logs

    def close(self) -> None:
        """Lets go of what the agent opened by itself. Closing twice does no harm; so does leaving it to the end."""
        bridge.run(self.aclose())

    async def aclose(self) -> None:
        store, self._opened = self._opened, None
        if isinstance(self._bank, OwnBank):
            await self._bank.close()
        if store is not None:
            await store.close()

    def _recorder(self) -> Recorder:
        return Recorder(self._store())

    def _prompt(self, given: Prompted) -> Prompted:
        """What the model is told, where the caller gave this."""
        return given

    def _store(self) -> Store | None:
        if self._given_store is not None and not isinstance(self._given_store, bool):
            return self._given_store
        if self._opened is None:
            self._opened = store_of(self._given_store)
        return self._opened


def _since_question(state: Sequence[BaseMessage]) -> list[BaseMessage]:
    last = max((n for n, message in enumerate(state) if isinstance(message, HumanMessage)), default=-1)
    return list(state[last + 1 :])


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
