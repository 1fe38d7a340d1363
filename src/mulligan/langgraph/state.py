"""What a reflexion graph keeps between its nodes, and what of it concerns the outside."""

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
    """What came of a question. Executing `answer` gave `tool_result`, the tool's message as text; both are None where
    nothing was executed.

    score: of the answer, 0 to 10, higher is better; None: it was not scored. solved: whether it was good enough. stop,
    detail: why it ended. reflections: the critiques, oldest first. steps: drafts and revisions. run: for `mulligan runs
    show`. usage: {"input_tokens", "output_tokens", "calls", "cost"}; a cost of None is unknown.
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
    """messages: the question is the newest message of a person."""

    messages: Annotated[list[AnyMessage], add_messages]


class ReflexionOutput(TypedDict):
    """messages: with the drafts, the tool's answers and the revisions. reflexion: what came of it."""

    messages: Annotated[list[AnyMessage], add_messages]
    reflexion: ReflexionResult | None


class Record(TypedDict):
    """An episode as far as it has come: `episode_of` makes the object of it. As JSON, which any checkpointer keeps; but
    the episode and its events are objects as they are where nothing is recorded and no thread is named.

    begun: as it began; events: what happened since. question: the id of the message that asked. steps: drafts and
    revisions so far. next: the node that comes next, or END. spent: usage and seconds that belong to the next event.
    """

    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    spent: Json


def grown(record: Record, writes: Sequence[Any]) -> Record:
    """The record with what nodes wrote of it: a whole one begins anew, else `events` holds those that are new."""
    for write in writes:
        events = write["events"] if "begun" in write else [*record["events"], *write["events"]]
        record = cast(Record, {**record, **write, "events": events})
    return record


class ReflexionState(TypedDict):
    """messages: the question, then draft, tool's answer, revision, tool's answer, … record: how far it has come; a
    checkpoint holds what its node added to it. reflexion: what came of it, None as long as it goes on."""

    messages: Annotated[list[AnyMessage], add_messages]
    record: Annotated[Record, DeltaChannel(grown)]
    reflexion: ReflexionResult | None


@dataclass(frozen=True)
class Reading:
    """What a draft or a revision says: the answer to be executed, the critique of the last one, and its score, 0 to 10,
    higher is better (None: it named none)."""

    answer: str
    reflection: str = ""
    score: float | None = None


def since_question(messages: Sequence[BaseMessage], question: str | None = None) -> list[BaseMessage]:
    """The question and what followed it: the message of this id or, without it, the newest of a person's.

    Raises `InvalidInput` where nobody asked anything.
    """
    for n in range(len(messages) - 1, -1, -1):
        if question and messages[n].id == question:
            return list(messages[n:])
    for n in range(len(messages) - 1, -1, -1):
        if isinstance(messages[n], HumanMessage):
            return list(messages[n:])
    raise InvalidInput('There is no question: begin with {"messages": [("user", "…")]}.')


def newest(messages: Sequence[BaseMessage], kind: type[M]) -> M:
    """The newest message of this kind. Raises `InvalidInput` for none."""
    for message in reversed(messages):
        if isinstance(message, kind):
            return message
    raise InvalidInput(f"The state's messages lack the {kind.__name__} that this node goes on from: it was removed.")


def text_of(message: ToolMessage | AIMessage) -> str:
    """What it says, as text; blocks that are no text as JSON."""
    if isinstance(message.content, str):
        return message.content
    return message.text or json.dumps(message.content, ensure_ascii=False, default=str)


def result_of(episode: Episode, steps: int, tool: ToolMessage | None) -> ReflexionResult:
    """Of an episode that is over. tool: what the newest answer gave."""
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
    """Raises `InvalidInput` for a limit of steps that is no whole number, and for a score that none can be."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int):
        raise InvalidInput(f"max_steps is a whole number: drafts and revisions at most; not {max_steps!r}.")
    if isinstance(good_score, bool) or not isinstance(good_score, int | float) or not 0 <= good_score <= 10:
        raise InvalidInput(f"good_score is a number from 0 to 10, as the model's scores are, not {good_score!r}.")
