"""The state of a Reflexion graph: its input, its output, and the record that its nodes pass on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Json, StopReason

M = TypeVar("M", bound=BaseMessage)

DRAFT, EXECUTE_TOOL, REVISE = "draft", "execute_tool", "revise"


class ReflexionResult(TypedDict):
    """The result of a question.

    Attributes:
        answer, tool_result: What was executed last, and the tool's message as text; None if nothing was executed.
        score: The score of the answer, 0 to 10; higher is better. None: it has no score.
        solved: Whether the answer was good enough.
        stop, detail: Why the run ended.
        reflections: The critiques, oldest first.
        steps: The number of drafts and revisions.
        run: The id for `mulligan runs show`.
        usage: {"input_tokens", "output_tokens", "calls", "cost"}; a cost of None is unknown.
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
    """An episode so far; `episode_of` turns it into an object. It is JSON, which any checkpointer can keep, unless
    nothing is recorded and no thread is named: then the episode and its events are objects.

    Attributes:
        begun: The episode at its beginning.
        events: What happened since.
        question: The id of the message with the question.
        steps: The number of drafts and revisions so far.
        next: The next node, or END.
        spent: Usage and seconds that belong to the next event.
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
        messages: The question, then the draft, the tool's message, the revision, the tool's message, ….
        record: The episode so far. A checkpoint holds what its node added to it.
        reflexion: The result; None until the run ends.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    record: Annotated[Record, DeltaChannel(grown)]
    reflexion: ReflexionResult | None


@dataclass(frozen=True)
class Reading:
    """The contents of a draft or a revision: the answer to execute, the critique of the previous answer, and its score,
    0 to 10; higher is better (None: no score)."""

    answer: str
    reflection: str = ""
    score: float | None = None


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
    for message in reversed(messages):
        if isinstance(message, kind):
            return message
    raise InvalidInput(f"The state's messages lack the {kind.__name__} that this node needs. It was removed.")


def text_of(message: ToolMessage | AIMessage) -> str:
    """Return the text of a message; content without text as JSON."""
    if isinstance(message.content, str):
        return message.content
    return message.text or json.dumps(message.content, ensure_ascii=False, default=str)


def result_of(episode: Episode, steps: int, tool: ToolMessage | None) -> ReflexionResult:
    """Return the result of an episode that has ended. tool: the newest tool message."""
    trial, stop, used = (episode.trials[-1] if episode.trials else None), episode.stop, episode.usage
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
        "usage": cast(Any, {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "calls", "cost")}),
    }


def check_limits(max_steps: int, good_score: float) -> None:
    """Raise `InvalidInput` unless max_steps is a whole number and good_score is a score."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int):
        raise InvalidInput(f"max_steps must be a whole number, not {max_steps!r}. It limits drafts and revisions.")
    if isinstance(good_score, bool) or not isinstance(good_score, int | float) or not 0 <= good_score <= 10:
        raise InvalidInput(f"good_score must be a number from 0 to 10, not {good_score!r}.")
