"""What the reader knows of `stream:code`: which forms a code base may choose from. Not which one it chose."""

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
        suffix: what the names of these functions end in.
        plain: a newcomer's expression.
        values: the expressions that it may have to return.
        inputs: values for each argument; two whole numbers are a range.
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
        """What a function with this value returns. Raises whatever it raises for arguments that are none of its own."""
        namespace: dict[str, Any] = {}
        exec(self.code("f", value), namespace)  # our own expression, not the model's
        return namespace["f"](*arguments)


@cache
def conventions() -> tuple[Convention, ...]:
    rows = tomllib.loads(Path(__file__).with_name("conventions.toml").read_text(encoding="utf-8"))["convention"]
    return tuple(Convention(**row) for row in cast(list[dict[str, Any]], rows))


def act(notes: Notes) -> str:
    """The function with the value that fits the checks of its kind which the text shows, else with the plain one.

    The checks are taken in the order in which facts count. One that fits no value that is left is older: passed over.
    """
    named = _NAME.search(notes.own)
    assert named is not None, f"this is not a task of the stream: {notes.task!r}"
    convention = next(one for one in conventions() if one.suffix == named[2])
    left: Sequence[str] = convention.values
    seen = False
    for part in (notes.own, notes.recalled, notes.marked):
        for check in _CHECK.finditer(part):
            if check[1] == convention.suffix and (fitting := [v for v in left if _fits(convention, v, check)]):
                left, seen = fitting, True
    code = convention.code(f"{named[1]}_{named[2]}", left[0] if seen else convention.plain)
    return f"```python\n{code}```"


def facts(text: str) -> Iterator[Fact]:
    """Each check in the text is a fact: the form of one kind of function, shown by an example."""
    for check in _CHECK.finditer(text):
        yield Fact(CHECK, (check[1],), check[3], f"assert {check[0]}", CHECK.title.format(suffix=check[1]))


def _fits(convention: Convention, value: str, check: re.Match[str]) -> bool:
    try:
        return convention.result(value, ast.literal_eval(f"({check[2]},)")) == ast.literal_eval(check[3])
    except Exception:  # the text of a prompt can hold anything
        return False
