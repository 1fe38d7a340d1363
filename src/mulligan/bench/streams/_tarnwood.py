"""Tasks of one made-up code base: write functions in formats that tests expect and the task does not state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from mulligan.bench.streams._drawing import drawn
from mulligan.bench.streams.reader.code import OPENING, Convention, conventions
from mulligan.plugins import Json

KINDS = 12
"""The most conventions of one code base, drawn from all; the change replaces a third of them, or all."""
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
        visible: the text of the visible tests, one assert a line.
        hidden: the text of the hidden tests.
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
    chance = drawn("tarnwood", seed)
    found = list[tuple[Convention, str]]()
    replaced = set(chance.sample(range(kinds), -(-kinds // 3)))
    for n, convention in enumerate(chance.sample(conventions(), kinds)):
        before, after = chance.sample(convention.values, 2)
        found.append((convention, after if changed and (all_change or n in replaced) else before))
    return found


def task(seed: int, number: int, changed: bool, kinds: int = KINDS, all_change: bool = False) -> CodeTask:
    """The task with this number, from 0 over the whole stream. kinds: how many kinds of functions come in rotation."""
    turn, which = divmod(number, kinds)
    convention, value = values(seed, changed, kinds, all_change)[which]
    themes = _THEMES.split()
    drawn("themes", seed, convention.suffix).shuffle(themes)
    again, place = divmod(turn, len(themes))
    name = f"{themes[place]}{again + 1 if again else ''}_{convention.suffix}"
    checks = _inputs(convention, value, drawn("inputs", seed, number))
    tests = [f"assert {name}({', '.join(map(repr, given))}) == {convention.result(value, given)!r}" for given in checks]
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
        found = list[tuple[Any, ...]]()
        while len(found) < VISIBLE + HIDDEN:
            given = tuple(_one(kind, chance) for kind in convention.inputs)
            if given not in found:
                found.append(given)
        others = [other for other in (*convention.values, convention.plain) if other != value]
        if all(any(_differ(convention, value, other, given) for given in found[:VISIBLE]) for other in others):
            return found


def _one(kind: Sequence[Json], chance: Random) -> Json:
    """A value for an argument: one of the list, or a number in the range that a pair of integers gives."""
    if len(kind) == 2 and all(isinstance(end, int) for end in kind):
        return chance.randint(*cast(tuple[int, int], tuple(kind)))
    return chance.choice(kind)


def _differ(convention: Convention, one: str, other: str, given: Sequence[Any]) -> bool:
    return convention.result(one, given) != convention.result(other, given)
