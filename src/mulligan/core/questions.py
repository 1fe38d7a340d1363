"""What is asked of a thinker, and what it answers: the two pure halves that every thinker has.

Hosted, a model of ours answers at once; borrowed, the question is stored and the calling agent thinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

from mulligan.core.records import Episode, Image, Json, Usage

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True)
class Question:
    """Messages, and the JSON schema of the answer; without a schema the answer is free text."""

    messages: tuple[Message, ...]
    schema: Json = None


@dataclass(frozen=True)
class Sampling:
    """How an answer is sampled. None leaves the provider's default."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`content` is text, or with a schema the parsed JSON (not yet validated: `take` does that)."""

    content: Json
    model: str
    usage: Usage = Usage()


@runtime_checkable
class Thinker(Protocol[T_co]):
    """Judge, reflector, extractor, merger, condenser: anything that needs a mind for one pure step."""

    def ask(self, episodes: Sequence[Episode]) -> Question:
        """The question, with all that is needed to answer it."""
        ...

    def take(self, episodes: Sequence[Episode], answer: Json) -> T_co:
        """The result. Raises `BadAnswer` when the answer does not fit the question."""
        ...
