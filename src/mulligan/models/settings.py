"""How a provider is called: where, how long, how often, how many at once, at what price. Plain values only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json


@dataclass(frozen=True)
class CallSettings:
    """How a provider is called.

    Each setting is described in its annotation, which the docs show. Raises `InvalidInput` for values that can never
    work.
    """

    base_url: Annotated[
        str | None, "The server to use instead of the provider's own; with `openai:NAME`, any OpenAI-compatible server."
    ] = None
    key: Annotated[
        str | None, "The name of the environment variable that holds the key, if it is not the provider's own."
    ] = None
    timeout: Annotated[float, "The time limit of one whole attempt, in seconds."] = 300.0
    connect: Annotated[float, "The time limit for connecting to the server, in seconds."] = 10.0
    attempts: Annotated[int, "Maximum number of times that one question is sent, including the first."] = 4
    first_wait: Annotated[float, "Seconds before the second attempt; doubled each time, and varied at random."] = 1.0
    longest_wait: Annotated[float, "Maximum seconds between two attempts, even if a `Retry-After` asks for more."] = (
        60.0
    )
    parallel: Annotated[int, "Maximum number of concurrent calls to one provider, in the whole process."] = 8
    input_price: Annotated[
        float | None, "US dollars per million input tokens, for models that the price tables do not know."
    ] = None
    output_price: Annotated[
        float | None, "US dollars per million output tokens, for models that the price tables do not know."
    ] = None
    sees: Annotated[
        bool | None,
        "Whether the model can read images; overrides what Mulligan knows. If false, it gets descriptions instead.",
    ] = None

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name), optional=field.default is None)
        if (self.input_price is None) != (self.output_price is None):
            raise InvalidInput("Set both input_price and output_price, or neither.")

    @classmethod
    def parse(cls, table: Mapping[str, Json]) -> CallSettings:
        """From a table of a settings file. Raises `UnknownName` for an unknown setting."""
        known = [field.name for field in fields(cls)]
        for name in table:
            if name not in known:
                raise UnknownName("model setting", name, known)
        return cls(**table)


_TEXTS = frozenset({"base_url", "key"})
_COUNTS = frozenset({"attempts", "parallel"})
_MAY_BE_ZERO = frozenset({"first_wait", "longest_wait", "input_price", "output_price"})


def _check(name: str, value: object, *, optional: bool) -> None:
    if value is None and optional:
        return
    if name in _TEXTS:
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"The model setting '{name}' must be a string, not {value!r}.")
        if name == "base_url" and not value.startswith(("http://", "https://")):
            raise InvalidInput("The model setting 'base_url' must begin with http:// or https://.")
        return
    if name == "sees":
        if not isinstance(value, bool):
            raise InvalidInput(f"The model setting 'sees' must be true or false, not {value!r}.")
        return
    kind = int if name in _COUNTS else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
        raise InvalidInput(
            f"The model setting '{name}' must be a {'whole ' if kind is int else ''}number, not {value!r}."
        )
    if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
        raise InvalidInput(f"The model setting '{name}' must be more than 0, not {value!r}.")
