"""Turns the messages of an agent into the steps of an attempt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Step


@dataclass(frozen=True)
class Said:
    """A text that the agent wrote."""

    text: str


@dataclass(frozen=True)
class Called:
    """A call of a tool."""

    id: str
    tool: str
    arguments: Any


@dataclass(frozen=True)
class Returned:
    """The result of a call of a tool."""

    id: str
    text: str


def steps_of(parts: Iterable[Said | Called | Returned]) -> tuple[Step, ...]:
    """A step for each call, with the text before it and its result. Text after the last call is left out: it is the
    answer."""
    steps = list[Step]()
    step_of_call = dict[str, int]()
    thought = ""
    for part in parts:
        match part:
            case Said(text):
                thought = "\n".join(one for one in (thought, text.strip()) if one)
            case Called(id, tool, arguments):
                step_of_call[id] = len(steps)
                steps.append(Step(thought, f"{tool}({_arguments_text(arguments)})"))
                thought = ""
            case Returned(id, text):
                if id in step_of_call:
                    steps[step_of_call[id]] = replace(steps[step_of_call[id]], observation=text)
    return tuple(steps)


def _arguments_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json_text(arguments)
    except InvalidInput:
        return repr(arguments)
