"""Tasks of one made-up code base: write functions in formats that tests expect and the task does not state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from mulligan.bench.streams._drawing import generator
from mulligan.bench.streams.reader.code import OPENING, Convention, conventions
from mulligan.plugins import Json

KINDS = 12
"""The maximum number of conventions in one code base, drawn from all. The change replaces a third of them, or all."""
VISIBLE, HIDDEN = 2, 4
_THEMES = (
    "stage ferry coach arena harbour museum clinic orchard station library market depot garden studio kitchen "
    "bakery tower bridge canal chapel school hostel stable mill brewery dairy quarry forge vault cellar"
)


@dataclass(frozen=True)
class CodeTask:
    """A task.

    Attributes:
        kind: the last word of the names of such functions.
        value: the right expression.
        visible: the visible tests, one assert a line.
        hidden: the hidden tests.
    """

    name: str
    kind: str
    prompt: str
    value: str
    solution: str
    visible: str
    hidden: str


def values(seed: int, changed: bool, kinds: int = KINDS, all_change: bool = False) -> Sequence[tuple[Convention, str]]:
    """The conventions of a code base in the order of rotation, each with the value in force."""
    chance = generator("tarnwood", seed)
    replaced = set(range(kinds) if all_change else ()) | set(chance.sample(range(kinds), -(-kinds // 3)))
    selection = chance.sample(conventions(), kinds)
    pairs = [chance.sample(convention.values, 2) for convention in selection]
    return [(selection[n], pairs[n][changed and n in replaced]) for n in range(kinds)]


def task(seed: int, number: int, changed: bool, kinds: int = KINDS, all_change: bool = False) -> CodeTask:
    """The task with this number, from 0 over the whole stream. kinds: how many kinds of functions rotate."""
    turn, which = divmod(number, kinds)
    convention, value = values(seed, changed, kinds, all_change)[which]
    themes = _THEMES.split()
    generator("themes", seed, convention.suffix).shuffle(themes)
    again, place = divmod(turn, len(themes))
    name = f"{themes[place]}{again + 1 if again else ''}_{convention.suffix}"
    inputs = _inputs(convention, value, generator("inputs", seed, number))
    tests = [f"assert {name}({', '.join(map(repr, each))}) == {convention.result(value, each)!r}" for each in inputs]
    prompt = (
        f"{OPENING} `{name}({convention.arguments})`.\n"
        f"It returns {convention.asks}, in the form that this code base uses for it; tests check the form. "
        f"Write the function in Python."
    )
    solution = convention.code(name, value)
    return CodeTask(
        name, convention.suffix, prompt, value, solution, "\n".join(tests[:VISIBLE]), "\n".join(tests[VISIBLE:])
    )


def _inputs(convention: Convention, value: str, chance: Random) -> Sequence[Sequence[Any]]:
    """Distinct arguments for the tests. Those of the visible tests distinguish the value from every other value."""
    while True:
        inputs = list[tuple[Any, ...]]()
        while len(inputs) < VISIBLE + HIDDEN:
            arguments = tuple(_argument(values, chance) for values in convention.inputs)
            if arguments not in inputs:
                inputs.append(arguments)
        others = [other for other in (*convention.values, convention.plain) if other != value]
        if all(any(_differ(convention, value, other, each) for each in inputs[:VISIBLE]) for other in others):
            return inputs


def _argument(values: Sequence[Json], chance: Random) -> Json:
    """One of the values. Two integers are the ends of a range."""
    if len(values) == 2 and all(isinstance(end, int) for end in values):
        return chance.randint(*cast(tuple[int, int], tuple(values)))
    return chance.choice(values)


def _differ(convention: Convention, one: str, other: str, arguments: Sequence[Any]) -> bool:
    return convention.result(one, arguments) != convention.result(other, arguments)
