"""Patterns that are compiled late: none is passed over for a text that it matches."""

import pkgutil
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pytest

import mulligan.sessions
from mulligan.core.late_pattern import LatePattern
from mulligan.core.pattern_needs import needs
from mulligan.hooks import recall
from mulligan.text.safeguards import patterns

regex: Any = import_module("re._parser")
TABLES = ("commands", "remedies", "languages")
WITHOUT_DIGITS = ("signature._UUID", "signature._IP")
"""These need a digit, though an identifier or an address of letters only is possible."""


def characters(members: Any) -> list[str] | None:
    """The characters of a class; None if it has others than letters, ranges and digits."""
    listed = list[str]()
    for kind, value in members:
        if kind is regex.LITERAL:
            listed.append(chr(value))
        elif kind is regex.RANGE:
            listed += map(chr, range(value[0], value[1] + 1))
        elif kind is regex.CATEGORY and value is regex.CATEGORY_DIGIT:
            listed += "0123456789"
        else:
            return None
    return listed


def has_one(tree: Sequence[Any], parts: Sequence[str], before: str = "") -> bool:
    """Whether every match of a parsed pattern contains one of these parts. before: the characters in front of it."""
    for number, (kind, value) in enumerate(tree):
        if any(part in before for part in parts):
            return True
        rest = [*tree[number + 1 :]]
        if kind is regex.SUBPATTERN:
            return has_one([*value[3], *rest], parts, before)
        if kind is regex.BRANCH:
            return all(has_one([*branch, *rest], parts, before) for branch in value[1])
        if kind is regex.LITERAL:
            before += chr(value)
        elif kind is regex.IN and (listed := characters(value)):
            if all(has_one([(regex.LITERAL, ord(one))], parts, before) for one in listed):
                return True
            before = ""
        elif kind in (regex.MAX_REPEAT, regex.MIN_REPEAT, regex.POSSESSIVE_REPEAT, regex.ASSERT):
            required = value[1] if kind is regex.ASSERT else value[2] if value[0] else ()
            if has_one([*required], parts, before):
                return True
            before = ""
        elif kind is not regex.AT:
            before = ""
    return any(part in before for part in parts)


def late_patterns() -> Iterator[tuple[str, LatePattern]]:
    for one in pkgutil.iter_modules(mulligan.sessions.__path__):
        for name, value in vars(import_module(f"mulligan.sessions.{one.name}")).items():
            if isinstance(value, LatePattern):
                yield f"{one.name}.{name}", value
    yield from ((name, value) for name, value in vars(recall).items() if isinstance(value, LatePattern))
    for table in TABLES:
        yield from ((f"{table}: {flag}", pattern) for flag, pattern in patterns(table))


def test_a_pattern_is_passed_over_only_for_texts_that_it_cannot_match() -> None:
    for name, late in late_patterns():
        if late.needs and name not in WITHOUT_DIGITS:
            assert has_one(regex.parse(late.pattern, int(late.flags)), late.needs), (name, late.pattern)


def test_few_patterns_of_commands_are_compiled_for_any_text() -> None:
    wanted = [late.needs for table in TABLES for _, late in patterns(table)]
    assert sum(map(bool, wanted)) > 0.95 * len(wanted)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ab|c", ("ab", "c")),
        ("ab?c", ("a",)),
        (r"\bx{0,2}y", ("y",)),
        ("(?:ab|cd)e", ("ab", "cd")),
        ("(?:a|[bc])? (?:d)e", ("d",)),
        ("[ab]", ()),
        ("a|", ()),
        ("(a)b", ("b",)),
        (r"\)?\.", (".",)),
        ("(?i)ab", ()),
        (r"\x1b\[m|\u2026 a|\033b", ("[m", " a", "b")),
        ("(?<=[)a])x", ("x",)),
    ],
)
def test_what_a_pattern_needs(pattern: str, expected: Sequence[str]) -> None:
    assert needs(pattern) == expected


def test_letters_of_any_case_are_found() -> None:
    late = LatePattern("(?:sit|kelvin)", ("sit", "kelvin"), re.IGNORECASE)
    texts = ("SIT", "sit", "ſit", "\N{KELVIN SIGN}elvin", "s\u0131t")
    assert [bool(late.search(text)) for text in texts] == [bool(re.search("(?i)sit|kelvin", text)) for text in texts]
    assert late.search("set") is None
