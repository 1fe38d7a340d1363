"""`ReflexionAgent`: subclass it, say how to draft, execute and revise, and it goes round (BioChatter's base class).

Code written for the seed's class runs here: its six methods, or the four of the code that it documents.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Store
from mulligan.core.records import Json
from mulligan.langgraph.bridge import run
from mulligan.langgraph.graph import STEPS, Nodes, Parts, Reading, wired
from mulligan.langgraph.journalled import journalled
from mulligan.langgraph.logger import ReflexionAgentLogger
from mulligan.langgraph.working import Recorder

GOOD_SCORE = 7.0
"""A score that is good enough, of 10. The seed says "greater than 7", its code `>= 7`: so it is here."""


@dataclass(frozen=True)
class ReflexionAgentResult:
    """answer: what was executed last; None where the model gave nothing that can be used. tool_result: what that gave.

    score: of the answer, 0 to 10, higher is better. stop, detail: why it ended. run: for `mulligan runs show`.
    """

    answer: str | None
    tool_result: list[Any] | None = None
    score: float | None = None
    stop: str | None = None
    detail: str = ""
    run: str = ""

    def __str__(self) -> str:
        return self.answer or ""


class Transcript(list[BaseMessage]):
    """The messages of a run; asked for an attribute, the last one answers: one documentation of `_parse_final_result`
    hands over all messages, the other the last."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not self:
            raise AttributeError(name)
        return getattr(self[-1], name)


class Conversation:
    """What a conversation factory made, with its chat model journalled."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self.chat = journalled(made.chat)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


class ReflexionAgent(ABC):
    """Draft, execute, revise, until it is good enough or the steps are used up.

    conversation_factory: makes an object with a LangChain chat model as `.chat`. max_steps: drafts and revisions at
    most; 0 or less: 30. good_score: the score of a revision that ends it, 0 to 10. store: where runs are recorded;
    None: where `mulligan runs` looks; False: nowhere. agent_id: whose record it is. Raises `InvalidInput`.
    """

    def __init__(
        self,
        conversation_factory: Callable[[], Any],
        max_steps: int = STEPS,
        agent_logger: ReflexionAgentLogger | None = None,
        *,
        good_score: float = GOOD_SCORE,
        store: Store | bool | None = None,
        agent_id: str = "",
    ) -> None:
        self.conversation = Conversation(conversation_factory())
        self.max_steps = max_steps if max_steps > 0 else STEPS
        self.agent_logger = agent_logger or ReflexionAgentLogger()
        self.good_score = good_score
        self._given_store, self._agent_id = store, agent_id

    # --- to be written by a subclass ------------------------------------------------------------------------------

    @abstractmethod
    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Executes what the newest draft or revision proposes."""

    @abstractmethod
    def _create_initial_responder(self, prompt: str | None = None) -> Any:
        """What drafts: an object with `respond(messages)`, a runnable over {"messages": …}, or a function of them."""

    @abstractmethod
    def _create_revise_responder(self, prompt: str | None = None) -> Any:
        """What scores the newest result, reflects on it and revises: as above."""

    @abstractmethod
    def _parse_final_result(self, output: Any) -> Any:
        """What `execute` returns, made of all messages; where the last one's attributes are asked for, it answers."""

    # --- may be overridden ----------------------------------------------------------------------------------------

    def _should_continue(self, state: list[BaseMessage]) -> str:
        """ "execute_tool" or END, after each revision; the limit of steps holds whatever it says."""
        raise NotImplementedError

    def _log_step_message(self, step: int, node: str, output: BaseMessage) -> None:
        self.agent_logger.log_step_message(step, node, output)

    def _log_final_result(self, output: Any) -> None:
        self.agent_logger.log_final_result(output)

    def _read(self, message: AIMessage) -> Reading:
        """Of the first tool call, the fields of `GenerateQuery` and `ReviseQuery`; without one, the text."""
        if not message.tool_calls:
            return Reading(message.text)
        given = message.tool_calls[0]["args"]
        answer = given.get("revised_query") or given.get("answer") or message.text
        return Reading(str(answer), str(given.get("reflection") or ""), score_of(given.get("score")))

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        return reading.answer

    def _passed(self, reading: Reading, message: ToolMessage) -> bool:
        return reading.score is not None and reading.score >= self.good_score

    # --- running --------------------------------------------------------------------------------------------------

    def execute(self, question: str, prompt: str | None = None) -> Any:
        """Answers the question; what `_parse_final_result` makes of the messages. See `aexecute`."""
        return run(self.aexecute(question, prompt))

    async def aexecute(self, question: str, prompt: str | None = None) -> Any:
        """prompt: what the model is told besides the question, at the draft and at each revision.

        Raises `InvalidInput` for an empty question, and what the model or the tool raises.
        """
        step, messages, result = 0, Transcript(), cast(dict[str, Any], {})
        graph = self.graph(prompt).compile()
        given = {"messages": [("user", question)]}
        async for update in graph.astream(given, {"recursion_limit": 2 * self.max_steps + 5}, stream_mode="updates"):
            for node, values in update.items():
                step += 1
                for message in values.get("messages", ()):
                    messages.append(message)
                    self._log_step_message(step, node, message)
                result = values.get("result") or result
        self._result = _result(result)
        final = self._parse_final_result(messages)
        self._log_final_result(final)
        return final

    def graph(self, prompt: str | None = None) -> Any:
        """The agent as a `StateGraph` that is not compiled: for checkpointers, interrupts, or as a part of another."""
        draft, revise = self._create_initial_responder(prompt), self._create_revise_responder(prompt)
        own = type(self)._should_continue is not ReflexionAgent._should_continue
        parts = Parts(
            lambda messages: respond(draft, messages),
            self._tool_function,
            lambda messages: respond(revise, messages),
            self._read,
            self._answered,
            self._passed,
            self._should_continue if own else None,
        )
        return wired(Nodes(parts, Recorder(self._store()), self.max_steps, self._agent_id))

    def get_logs(self) -> str:
        return self.agent_logger.logs

    def _store(self) -> Store | None:
        if isinstance(self._given_store, bool):
            return None
        if self._given_store is None:
            from mulligan.app.session import open_store

            self._given_store = open_store()
        return self._given_store


class ResponderWithRetries:
    """Asks until the answer is valid, three times at most. An answer that is not goes back with what is wrong with it.

    validator: a runnable or a function that raises for a message that cannot be used, or gives nothing for it.
    Raises `BadAnswer` after the third.
    """

    TIMES = 3

    def __init__(self, runnable: Any, validator: Any) -> None:
        self.runnable, self.validator = runnable, validator

    def respond(self, state: Sequence[BaseMessage]) -> AIMessage:
        messages, wrong = list(state), ""
        for _ in range(self.TIMES):
            message: AIMessage = self.runnable.invoke({"messages": messages})
            wrong = self._wrong(message)
            if not wrong:
                return message
            messages += [message, *returned(message, wrong)]
        raise BadAnswer(f"The model gave nothing that can be used, {self.TIMES} times: {wrong}")

    def _wrong(self, message: AIMessage) -> str:
        """What is wrong with it; "" for nothing."""
        if message.invalid_tool_calls:
            return f"The arguments are no JSON: {message.invalid_tool_calls[0].get('error') or 'they cannot be read'}"
        if not message.tool_calls:
            return "There was no tool call in the answer. Answer with a call of the tool."
        try:
            check = getattr(self.validator, "invoke", self.validator)
            return "" if check(message) else "The tool call is none that was asked for."
        except Exception as error:  # whatever a validator raises is told to the model
            return str(error)


def returned(message: AIMessage, wrong: str) -> list[BaseMessage]:
    """What is wrong with a model's message, as the next messages of the conversation: a tool's answer to each call."""
    from langchain_core.messages import HumanMessage

    said = f"That cannot be used: {wrong}"
    answers = [ToolMessage(said, tool_call_id=call["id"] or "", status="error") for call in message.tool_calls]
    return [*answers] or [HumanMessage(said)]


def respond(responder: Any, messages: list[BaseMessage]) -> Any:
    """The responder's message: of an object with `respond`, a runnable, or a function."""
    if hasattr(responder, "respond"):
        return responder.respond(messages)
    if hasattr(responder, "invoke"):
        return responder.invoke({"messages": messages})
    return responder(messages)


def score_of(said: Json) -> float | None:
    """A score such as "8", 8 or "8/10", 0 to 10; None for what is none."""
    try:
        score = float(str(said).partition("/")[0])
    except ValueError:
        return None
    return score if 0 <= score <= 10 else None


def _result(found: dict[str, Any]) -> ReflexionAgentResult:
    content: Any = found.get("tool_result")
    rows: Any = None
    try:
        rows = json.loads(content)["result"] if content else None
    except (ValueError, KeyError, TypeError):
        rows = [content]
    named: dict[str, Any] = {key: found.get(key) for key in ("answer", "score", "stop")}
    return ReflexionAgentResult(tool_result=rows, detail=found.get("detail", ""), run=found.get("run", ""), **named)
