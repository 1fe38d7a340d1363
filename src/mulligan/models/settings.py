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
        str | None,
        "The server to use instead of the provider's. With `openai:NAME`, any OpenAI-compatible server works.",
    ] = None
    key: Annotated[
        str | None, "The environment variable that contains the API key, if it is not the provider's usual one."
    ] = None
    timeout: Annotated[float, "The time limit for each attempt, in seconds."] = 300.0
    connect: Annotated[float, "The time limit for connecting to the server, in seconds."] = 10.0
    attempts: Annotated[int, "Maximum number of times that a request is sent, including the first."] = 4
    first_wait: Annotated[
        float, "Seconds to wait before the second attempt. The wait doubles each time and varies at random."
    ] = 1.0
    longest_wait: Annotated[
        float, "Maximum number of seconds between attempts, even if a `Retry-After` header asks for more."
    ] = 60.0
    parallel: Annotated[int, "Maximum number of concurrent calls to a provider in one process."] = 8
    input_price: Annotated[
        float | None, "US dollars per million input tokens, for models that are not in the price tables."
    ] = None
    output_price: Annotated[
        float | None, "US dollars per million output tokens, for models that are not in the price tables."
    ] = None
    sees: Annotated[
        bool | None,
        "Whether the model accepts images. Set this key if Mulligan's own information is wrong. If it is false, the "
        "model receives descriptions of the images.",
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
        words = "an integer" if kind is int else "a number"
        raise InvalidInput(f"The model setting '{name}' must be {words}, not {value!r}.")
    if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
        raise InvalidInput(f"The model setting '{name}' must be more than 0, not {value!r}.")
