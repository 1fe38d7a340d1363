"""What the reader knows of `stream:code`: the forms from which a code base chooses, but not its choice."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from mulligan.bench.streams.reader.facts import Fact, Form, Notes
from mulligan.plugins import Json

OPENING = "A function for the code base Tarnwood:"
CHECK = Form("", ("suffix",), "Tarnwood: the form of ..._{suffix}")

_NAME = re.compile(r"`(\w+)_([a-z]+)\(")
_CHECK = re.compile(r"\b\w+_([a-z]+)\(([^()\n]{1,120})\) == ('[^'\n]*'|\"[^\"\n]*\")")


@dataclass(frozen=True)
class Convention:
    """The forms of one kind of function.

    Attributes:
        suffix: the last word of the names of these functions.
        plain: the expression that one would write without knowing the convention.
        values: the expressions from which a code base chooses.
        inputs: values for each argument. Two integers are a range.
    """

    suffix: str
    arguments: str
    asks: str
    plain: str
    values: Sequence[str]
    inputs: Sequence[Sequence[Json]]

    def code(self, name: str, value: str) -> str:
        return f"def {name}({self.arguments}):\n    return {value}\n"

    def result(self, value: str, arguments: Sequence[Any]) -> str:
        """The result of a function with this value. Raises what the function raises for other kinds of arguments."""
        namespace: dict[str, Any] = {}
        exec(self.code("f", value), namespace)  # our own expression, not the model's
        return namespace["f"](*arguments)


@cache
def conventions() -> tuple[Convention, ...]:
    rows = tomllib.loads(Path(__file__).with_name("conventions.toml").read_text(encoding="utf-8"))["convention"]
    return tuple(Convention(**row) for row in cast(list[dict[str, Any]], rows))


def act(notes: Notes) -> str:
    """The function with the value that fits the checks of its kind in the text, else with the plain expression.

    Checks are used in the order in which facts count. A check that fits no remaining value is out of date, and ignored.
    """
    name = _NAME.search(notes.own)
    assert name is not None, f"this is not a task from the stream: {notes.task!r}"
    convention = next(one for one in conventions() if one.suffix == name[2])
    candidates, value = convention.values, convention.plain
    for part in (notes.own, notes.recalled, notes.marked):
        for check in _CHECK.finditer(part):
            if check[1] == convention.suffix and (fitting := [v for v in candidates if _fits(convention, v, check)]):
                candidates, value = fitting, fitting[0]
    return f"```python\n{convention.code(f'{name[1]}_{name[2]}', value)}```"


def facts(text: str) -> Iterator[Fact]:
    """Each check in the text is a fact: the form of one kind of function, shown by an example."""
    for check in _CHECK.finditer(text):
        yield Fact(CHECK, (check[1],), check[3], f"assert {check[0]}", CHECK.title.format(suffix=check[1]))


def _fits(convention: Convention, value: str, check: re.Match[str]) -> bool:
    try:
        return convention.result(value, ast.literal_eval(f"({check[2]},)")) == ast.literal_eval(check[3])
    except Exception:  # a prompt can contain anything
        return False
