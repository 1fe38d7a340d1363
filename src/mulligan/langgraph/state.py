"""The state of a Reflexion graph: its messages, the record of its episode, and its result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from mulligan.plugins import Episode, InvalidInput, Json, Trial
from mulligan.running import Event, StopReason, advance, from_json

M = TypeVar("M", bound=BaseMessage)

DRAFT, EXECUTE_TOOL, REVISE = "draft", "execute_tool", "revise"
"""The names of the nodes."""
GOOD_SCORE = 7.0
"""The default score, of 10, from which an answer is good enough."""


class ReflexionResult(TypedDict):
    """The result of a question.

    Attributes:
        answer, tool_result: The answer that was executed last (or the best, if the run ended unsure), and the tool's
            message as text; None if nothing was executed. If the run ended absent, there is no tool_result.
        score: The answer's score, from 0 to 10; higher is better. None: it has no score.
        solved: Whether the answer was good enough.
        stop, detail: Why the run ended.
        reflections: The critiques, oldest first.
        steps: The number of drafts and revisions.
        run: The id for `mulligan runs show`.
        usage: {"input_tokens", "output_tokens", "calls", "cost"}. A cost of None is unknown.
    """

    answer: str | None
    tool_result: str | None
    score: float | None
    solved: bool
    stop: StopReason | None
    detail: str
    reflections: list[str]
    steps: int
    run: str
    usage: Json


class ReflexionInput(TypedDict):
    """The input. The newest human message is the question."""

    messages: Annotated[list[AnyMessage], add_messages]


class ReflexionOutput(TypedDict):
    """The output: all messages with the drafts, tool messages and revisions, and the result."""

    messages: Annotated[list[AnyMessage], add_messages]
    reflexion: ReflexionResult | None


class Record(TypedDict):
    """An episode so far, as JSON, which any checkpointer can keep; `episode_of` turns it into an object.

    If nothing is recorded and no thread is named, the episode and its events are objects.

    Attributes:
        begun: The episode at its beginning.
        events: The events since.
        question: The id of the message with the question.
        steps: The number of drafts and revisions so far.
        next: The next node, or END.
        spent: The usage and seconds that count for the next event.
    """

    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    spent: Json


def grown(record: Record, writes: Sequence[Any]) -> Record:
    """Apply the writes of nodes to a record. A write with "begun" replaces it; the events of others are appended."""
    for write in writes:
        events = write["events"] if "begun" in write else [*record["events"], *write["events"]]
        record = cast(Record, {**record, **write, "events": events})
    return record


class ReflexionState(TypedDict):
    """The state of the graph.

    Attributes:
        messages: The question, the draft, the tool's message, the revision, the tool's message, and so on.
        record: The episode so far. A checkpoint contains what its node added.
        reflexion: The result; None until the run ends.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    record: Annotated[Record, DeltaChannel(grown)]
    reflexion: ReflexionResult | None


@dataclass(frozen=True)
class Reading:
    """The contents of a draft or a revision: the answer to execute, and the previous answer's critique and score.

    The score is from 0 to 10; higher is better. None: no score."""

    answer: str
    reflection: str = ""
    score: float | None = None

    def passes(self, good_score: float) -> bool | None:
        """Whether the score is good enough; None if there is no score."""
        return None if self.score is None else self.score >= good_score


def since_question(messages: Sequence[BaseMessage], question: str | None = None) -> list[BaseMessage]:
    """Return the question and what followed it: the message with this id, or the newest human message.

    Raises `InvalidInput` if there is no question.
    """
    for n in range(len(messages) - 1, -1, -1):
        if question and messages[n].id == question:
            return list(messages[n:])
    for n in range(len(messages) - 1, -1, -1):
        if isinstance(messages[n], HumanMessage):
            return list(messages[n:])
    raise InvalidInput('There is no question. Start with {"messages": [("user", "…")]}.')


def newest(messages: Sequence[BaseMessage], kind: type[M]) -> M:
    """Return the newest message of this kind. Raises `InvalidInput` if there is none."""
    if (message := last(messages, kind)) is not None:
        return message
    raise InvalidInput(f"The state's messages lack the {kind.__name__} that this node needs. It was removed.")


def last(messages: Sequence[BaseMessage], kind: type[M]) -> M | None:
    """Return the newest message of this kind; None if there is none."""
    return next((message for message in reversed(messages) if isinstance(message, kind)), None)


def answered(proposal: AIMessage, content: Any, status: Any) -> ToolMessage:
    """Return a tool message that answers the first call of a draft or a revision."""
    call = proposal.tool_calls[0] if proposal.tool_calls else {"id": "", "name": None}
    return ToolMessage(content, tool_call_id=call["id"] or "", name=call["name"], status=status)


def text_of(message: ToolMessage | AIMessage) -> str:
    """Return the text of a message; content without text as JSON."""
    if isinstance(message.content, str):
        return message.content
    return message.text or json.dumps(message.content, ensure_ascii=False, default=str)


def answer_of(episode: Episode) -> Trial | None:
    """Return the trial whose answer counts: the newest, but the best of an episode that ended unsure."""
    if episode.stop is not None and episode.stop.reason == "unsure":
        return episode.best
    return episode.trials[-1] if episode.trials else None


def message_of(episode: Episode, messages: Sequence[BaseMessage]) -> ToolMessage | None:
    """Return the tool message of the answer that counts; None if nothing was executed or the run ended absent."""
    trial, tools = answer_of(episode), [message for message in messages if isinstance(message, ToolMessage)]
    if trial is None or (episode.stop is not None and episode.stop.reason == "absent"):
        return None
    return tools[trial.number - 1] if trial.number <= len(tools) else last(messages, ToolMessage)


def result_of(episode: Episode, steps: int, tool: ToolMessage | None) -> ReflexionResult:
    """Return the result of an episode that has ended. tool: the tool message of the answer that counts."""
    trial, stop, usage = answer_of(episode), episode.stop, episode.usage
    return {
        "answer": trial.attempt.output if trial else None,
        "tool_result": None if tool is None else text_of(tool),
        "score": trial.feedback.score if trial and trial.feedback else None,
        "solved": episode.solved,
        "stop": stop.reason if stop else None,
        "detail": stop.detail if stop else "",
        "reflections": [reflection.text for reflection in episode.reflections],
        "steps": steps,
        "run": episode.run,
        "usage": cast(Any, {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "calls", "cost")}),
    }


def check_limits(max_steps: int, good_score: float) -> None:
    """Raise `InvalidInput` unless max_steps is an integer and good_score is a score."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int):
        raise InvalidInput(f"max_steps must be an integer, not {max_steps!r}. It limits drafts and revisions.")
    if isinstance(good_score, bool) or not isinstance(good_score, int | float) or not 0 <= good_score <= 10:
        raise InvalidInput(f"good_score must be a number from 0 to 10, not {good_score!r}.")


def episode_of(record: Record) -> Episode:
    """Return the episode in a graph state's `record`, with its trials.

    Raises:
        InvalidInput, OutOfOrder
    """
    begun: Any = record["begun"]
    episode = begun if isinstance(begun, Episode) else from_json(Episode, begun)
    for event in record["events"]:
        episode = advance(episode, from_json(Event, event) if isinstance(event, dict) else event)
    return episode
