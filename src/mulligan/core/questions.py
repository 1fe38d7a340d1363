"""Questions and answers: every thinker makes a question, and turns the answer into its result; both are pure.

Either a model of ours answers at once, or the question is stored and the calling agent answers it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar, runtime_checkable

from mulligan.core.errors import BadAnswer
from mulligan.core.records import Episode, Image, Json, Usage

T_co = TypeVar("T_co", covariant=True)


def object_schema(**properties: Json) -> dict[str, Json]:
    """The JSON schema of an object with these properties, all of them and no others."""
    required: list[Json] = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True)
class Tool:
    """A tool that a model may call. `parameters` is the JSON schema of an object; `repeatable`: calling it twice does
    no harm.

    `changes`: it may change the files of the workspace. `critical`: a call may do harm that cannot be undone, so that a
    foresight checks it first.
    """

    name: str
    description: str
    parameters: Json
    repeatable: bool = False
    changes: bool = False
    critical: bool = False


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool. `arguments` is the object that the model gave, or its text if that is not a JSON object.

    It has no id: the answers of tools follow the calls in order, so a record has nothing that differs between runs.
    """

    name: str
    arguments: Json


@dataclass(frozen=True)
class Message:
    """`calls`: only of the assistant. A message of the role "tool" for each call follows, in order."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Question:
    """Messages, and the JSON schema of the answer; without a schema the answer is free text.

    With tools (and no schema), the answer may contain calls. A model that cannot call tools gets their description and
    answers with JSON for a call: the `Answer` is the same.
    """

    messages: tuple[Message, ...]
    schema: Json = None
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True)
class Sampling:
    """How an answer is sampled. None leaves the provider's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`content` is text, or with a schema the parsed JSON (not yet validated: `take` does that).

    `calls` are the calls that the model wants, in order; the text is then what it said besides.
    `raw` is the model's whole text if `content` leaves out a part, such as thoughts; `repairs` are the faults in its
    JSON that were repaired.
    """

    content: Json
    model: str
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()
    raw: str = ""
    repairs: tuple[str, ...] = ()


@runtime_checkable
class Thinker(Protocol[T_co]):
    """Judge, reflector, extractor, merger, condenser: anything that needs a model for one pure step."""

    def ask(self, episodes: Sequence[Episode]) -> Question:
        """The question, with all that is needed to answer it."""
        ...

    def take(self, episodes: Sequence[Episode], answer: Json) -> T_co:
        """The result. Raises `BadAnswer` when the answer does not fit the question."""
        ...


class Answerer(Protocol):
    """The part of a `Model` that thinking needs."""

    async def ask(self, question: Question, sampling: Sampling = ...) -> Answer: ...


async def think(thinker: Thinker[T_co], model: Answerer, episodes: Sequence[Episode], sampling: Sampling) -> T_co:
    """Hosted thinking: ask the model, take its answer; an answer that does not fit is sent back once with the error.

    Raises `BadAnswer` when the second answer does not fit either.
    """
    question = thinker.ask(episodes)
    answer = await model.ask(question, sampling)
    try:
        return thinker.take(episodes, answer.content)
    except BadAnswer as error:
        question = asked_again(question, answer.content, str(error))
    return thinker.take(episodes, (await model.ask(question, sampling)).content)


def asked_again(question: Question, answer: Json, why: str) -> Question:
    """The question, followed by the unusable answer and a user turn that says why. why: whole sentences."""
    said = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    again = (
        Message("assistant", said or "(nothing)"),
        Message("user", f"That answer cannot be used: {why} Answer again, as asked."),
    )
    return replace(question, messages=(*question.messages, *again))
