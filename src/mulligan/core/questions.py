"""Questions and answers. A thinker creates a question, and converts the answer to its result; both are pure.

Either a model answers at once, or the question is stored and the calling agent answers it.
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
    """Returns the JSON Schema of an object with exactly these properties."""
    required: list[Json] = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@dataclass(frozen=True)
class Tool:
    """A tool that a model can call.

    Attributes:
        parameters: the JSON Schema of an object.
        repeatable: whether calling the tool twice does no harm.
        changes: whether the tool can change the workspace's files.
        critical: whether a call can do irreversible harm, so that a foresight checks it first.
    """

    name: str
    description: str
    parameters: Json
    repeatable: bool = False
    changes: bool = False
    critical: bool = False


@dataclass(frozen=True)
class ToolCall:
    """A call to a tool. `arguments` is the object from the model, or the model's text if it is not a JSON object.

    Calls have no ids, which would differ between runs: the tools' answers follow the calls in order.
    """

    name: str
    arguments: Json


@dataclass(frozen=True)
class Message:
    """A message. Only an assistant's has `calls`; a message with the role "tool" for each call follows, in order."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Question:
    """Messages, and the JSON Schema of the answer. Without a schema, the answer is free text.

    With tools and no schema, the answer can contain calls. A model that cannot call tools is given their descriptions
    and answers with JSON for a call; the `Answer` is the same.
    """

    messages: tuple[Message, ...]
    schema: Json = None
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True)
class Sampling:
    """How an answer is sampled. None: the provider's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A model's answer.

    Attributes:
        content: the text or, for a question with a schema, the parsed JSON (`take` validates it).
        calls: the calls that the model requests, in order.
        raw: the model's entire text, if `content` omits a part, such as thoughts.
        repairs: the errors in the model's JSON that were repaired.
    """

    content: Json
    model: str
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()
    raw: str = ""
    repairs: tuple[str, ...] = ()


@runtime_checkable
class Thinker(Protocol[T_co]):
    """A step that needs one answer from a model, such as a judge, a reflector or an extractor. It is pure."""

    def ask(self, episodes: Sequence[Episode]) -> Question:
        """Returns the question, with everything needed to answer it."""
        ...

    def take(self, episodes: Sequence[Episode], answer: Json) -> T_co:
        """Returns the result.

        Raises:
            BadAnswer: the answer does not fit the question.
        """
        ...


class Answerer(Protocol):
    """The part of a `Model` that thinking needs."""

    async def ask(self, question: Question, sampling: Sampling = ...) -> Answer: ...


async def think(thinker: Thinker[T_co], model: Answerer, episodes: Sequence[Episode], sampling: Sampling) -> T_co:
    """Asks the model, and returns the result of its answer. If the answer does not fit, asks once more with the error.

    Raises:
        BadAnswer: the second answer does not fit either.
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
