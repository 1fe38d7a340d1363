"""What an agent said and did, as steps, in the order of its messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Step


@dataclass(frozen=True)
class Said:
    """A text of the agent's."""

    text: str


@dataclass(frozen=True)
class Called:
    """A call of a tool."""

    id: str
    tool: str
    arguments: Any


@dataclass(frozen=True)
class Returned:
    """What a call of a tool gave back."""

    id: str
    text: str


def steps_of(parts: Iterable[Said | Called | Returned]) -> tuple[Step, ...]:
    """A step for each call, with what was said before it and what it gave back. The last text is the answer."""
    steps, places, thought = list[Step](), dict[str, int](), ""
    for part in parts:
        match part:
            case Said(text):
                thought = "\n".join(one for one in (thought, text.strip()) if one)
            case Called(id, tool, arguments):
                places[id] = len(steps)
                steps.append(Step(thought, f"{tool}({_written(arguments)})"))
                thought = ""
            case Returned(id, text):
                if id in places:
                    steps[places[id]] = replace(steps[places[id]], observation=text)
    return tuple(steps)


def _written(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json_text(arguments)
    except InvalidInput:
        return repr(arguments)
