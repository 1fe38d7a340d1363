"""Writes the public Python API, each name with its signature, into tests/public_api.txt: `make docs`.

A test compares the file with what this makes, so a change of the API stands in the diff. docs/python.md has the policy.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = (
    *("mulligan", "mulligan.plugins", "mulligan.langgraph", "mulligan.store"),
    *("mulligan.pages", "mulligan.running", "mulligan.serving", "mulligan.terminal"),
)


class _Text:
    """What `inspect` prints as it is: an annotation without quotes, or a default that is an object."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def signature(value: Callable[..., Any]) -> str:
    """The parameters as they are written; a default that is an object is shown as `...`."""
    try:
        shown = inspect.signature(value)
    except ValueError:  # an exception without an __init__ of its own
        return ""

    def plain(parameter: inspect.Parameter) -> inspect.Parameter:
        default: object = parameter.default
        known = default is parameter.empty or isinstance(default, (str, int, float, tuple, type(None)))
        return parameter.replace(annotation=_bare(parameter.annotation), default=default if known else _Text("..."))

    parameters = [plain(parameter) for parameter in shown.parameters.values()]
    return str(shown.replace(parameters=parameters, return_annotation=_bare(shown.return_annotation)))


def members(cls: type) -> Iterator[str]:
    """The public attributes of a class that it or a class of ours defines, in alphabetical order."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("mulligan")]
    fields = {name: kind for base in reversed(ours) for name, kind in inspect.get_annotations(base).items()}
    values = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    for name in sorted({*fields, *values}):
        if name.startswith("_"):
            continue
        value = values.get(name)
        if isinstance(value, (staticmethod, classmethod)):
            value = getattr(cls, name)
        if isinstance(value, (property, cached_property)):
            yield f"{name}: property"
        elif inspect.isroutine(value):
            yield f"{'async ' * inspect.iscoroutinefunction(value)}{name}{signature(value)}"
        elif name in fields:
            yield f"{name}: {fields[name]}"


def lines() -> Iterator[str]:
    """The API, a line for each name, and one with an indent for each attribute of a class."""
    for module in MODULES:
        home = import_module(module)
        yield f"# {module}"
        for name in sorted(home.__all__):
            value = getattr(home, name)
            if inspect.isclass(value):
                made = "" if getattr(value, "_is_protocol", False) else signature(value)
                yield f"class {name}{made}"
                yield from (f"    {member}" for member in members(value))
            elif callable(value):
                yield f"{'async ' * inspect.iscoroutinefunction(value)}def {name}{signature(value)}"
            else:
                yield f"{name}: {type(value).__name__}"
        yield ""


def text() -> str:
    """The whole file."""
    return "\n".join(lines())


def _bare(annotation: object) -> object:
    if isinstance(annotation, str):
        return _Text(annotation)
    return annotation if isinstance(annotation, type) else _Text(re.sub(" at 0x[0-9a-f]+", "", repr(annotation)))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
