"""Tell what a lesson makes its reader do: by the effects of its commands, and by what its sentences act on.

A command is parsed, however the sentence around it is worded (sessions/effects.py). A passage has an effect where an
object (what is private, a safeguard, what decides the verdict) meets an action on it, in any order and in several
languages (effects.toml).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path

from mulligan.core.late_pattern import LatePattern
from mulligan.sessions.effects import NEGATION, command_effects
from mulligan.text.safeguards import compiled, folded

_PASSAGE = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.))")
"""Between these, a paragraph or an item of a list, concepts may meet."""
_NEGATION_BEHIND = re.compile(
    r"に?(?:し|せ|ら|わ|さ|か)?(?:ない|ないで|ず|てはいけ|てはなら|禁止)|\w{0,8} (?:is|are) (?:never|not|forbidden)\b"
)
_DENIABLE = (
    *("moves", "off", "weaken", "puts", "fetches", "overwrites", "shared", "approves", "omits"),
    *("plants", "sets", "grants", "home_config", "rights", "orders", "resident", "constant", "swaps", "shell", "runs"),
    *("drops", "gets", "copies", "got", "gut"),
)
"""Concepts that do not count behind a negation."""
_MOST = 8
"""Matches of one concept in a passage that are compared."""


@cache
def _rules() -> Sequence[tuple[str, Sequence[str], int]]:
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["rules"]
    return [(flag, rule["of"], rule["within"]) for flag, rules in tables.items() for rule in rules]


@cache
def _concepts() -> dict[str, LatePattern]:
    concepts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["concepts"]
    joined = {name: text.replace("\n", "") for name, text in concepts.items()}
    return dict(compiled(joined, concepts, look_alikes=True))


def effects_of(text: str) -> Iterator[str]:
    """The flags of what this text makes its reader do; one may come twice."""
    yield from command_effects(text)
    for passage in _PASSAGE.split(text):
        yield from _passage_effects(folded(passage))


def _passage_effects(passage: str) -> Iterator[str]:
    spans = dict[str, list[tuple[int, int]]]()
    for flag, names, within in _rules():
        for name in names:
            if name not in spans:
                spans[name] = list(_spans(name, passage))
            if not spans[name]:
                break
        else:
            if any(_near(chosen, within) for chosen in product(*(spans[name] for name in names))):
                yield flag


def _spans(concept: str, passage: str) -> Iterator[tuple[int, int]]:
    for number, match in enumerate(_concepts()[concept].finditer(passage)):
        if number == _MOST:
            return
        at, end = match.span()
        negated = concept in _DENIABLE and (
            NEGATION.search(passage[max(at - 60, 0) : at]) or _NEGATION_BEHIND.match(passage, end)
        )
        if not negated:
            yield at, end


def _near(spans: Sequence[tuple[int, int]], within: int) -> bool:
    """Whether these stand close together and none in another."""
    ordered = sorted(spans)
    apart = all(before[1] <= behind[0] for before, behind in pairwise(ordered))
    return apart and ordered[-1][1] - ordered[0][0] <= within + sum(end - at for at, end in ordered) // 2
