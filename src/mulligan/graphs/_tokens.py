"""Splits a Cypher query into tokens. It knows no clauses, and refuses text that databases could read differently.

The supported dialects (Neo4j, Memgraph, ArcadeDB, Ladybug) agree on the tokens below and on little else: they differ in
what ends a comment, what counts as white space, and whether \\uXXXX is decoded before anything is parsed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "quoted", "number", "string", "parameter", "sign"]

SIGNS = frozenset("()[]{},;:.+-*/%^=<>|&!?~")
_SPACE = frozenset(" \t\r\n")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"(\\+)u+([0-9a-fA-F]{4})|(\\+)U([0-9a-fA-F]{8})")
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
DECODINGS = 4
"""How many times a decoded text is decoded again, as long as it changes."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token. text: without the backticks of a name and the $ of a parameter. at: its offset in the query."""

    kind: Kind
    text: str
    at: int


class Unreadable(Exception):
    """A text that cannot be split into tokens safely. ambiguous: databases could read it in two ways."""

    def __init__(self, message: str, at: int, *, ambiguous: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.ambiguous = ambiguous


def tokens(text: str) -> list[Token]:
    """Return the tokens of a query. Raises `Unreadable`."""
    return list(_scan(text))


def decoded(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the text as databases see it that decode \\uXXXX first, each with the original offset of each character."""
    seen = {text}
    for every in (True, False):
        now, origins = text, list(range(len(text) + 1))
        for _ in range(DECODINGS):
            now, origins = _decode(now, origins, every)
            if now in seen:
                break
            seen.add(now)
            yield now, origins


def _decode(text: str, origins: list[int], every: bool) -> tuple[str, list[int]]:
    """Decode once. every: also where the backslash is itself escaped, which some databases ignore."""
    parts: list[str] = []
    where: list[int] = []
    done = 0
    for found in _ESCAPE.finditer(text):
        slashes, digits = (found[1], found[2]) if found[1] else (found[3], found[4])
        if (len(slashes) % 2 == 0 and not every) or int(digits, 16) > 0x10FFFF:
            continue
        start = found.start() + len(slashes) - 1
        parts += [text[done:start], chr(int(digits, 16))]
        where += [*origins[done:start], origins[start]]
        done = found.end()
    return "".join([*parts, text[done:]]), [*where, *origins[done:]]


def _scan(text: str) -> Iterator[Token]:
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char in _SPACE:
            at += 1
        elif char == "/" and text[at + 1 : at + 2] in ("/", "*"):
            at = _after_comment(text, at)
        elif char in "'\"":
            after = _after_string(text, at)
            yield Token("string", text[at + 1 : after - 1], at)
            at = after
        elif char == "`":
            after = _after_quoted(text, at)
            yield Token("quoted", text[at + 1 : after - 1].replace("``", "`"), at)
            at = after
        elif char == "$":
            token, at = _parameter(text, at)
            yield token
        elif "0" <= char <= "9":
            after = _after_number(text, at)
            yield Token("number", text[at:after], at)
            at = after
        elif char == "_" or char.isalpha():
            after = _after_word(text, at)
            yield Token("word", text[at:after], at)
            at = after
        elif char in SIGNS:
            double = text[at : at + 2] if text[at : at + 2] in ("..", "::") else char
            yield Token("sign", double, at)
            at += len(double)
        else:
            raise Unreadable(f"{_named(char)} is not allowed here", at, ambiguous=True)


def _after_comment(text: str, at: int) -> int:
    if text[at + 1] == "*":
        close = text.find("*/", at + 2)
        if close < 0:
            raise Unreadable("this comment is not closed", at)
        if "/*" in text[at + 2 : close + 1] or text[at + 2] == "/":
            raise Unreadable("this comment has another /* or */ in it", at, ambiguous=True)
        _printable(text, at, close)
        return close + 2
    close = text.find("\n", at)
    close = len(text) if close < 0 else close
    line = text[at:close]
    odd = next((n for n, char in enumerate(line) if char in "\r\x0b\x0c\x85\u2028\u2029"), None)
    if odd is not None and not (line[odd] == "\r" and at + odd + 1 == close < len(text)):
        raise Unreadable(f"{_named(line[odd])} ends this comment for some databases only", at + odd, ambiguous=True)
    _printable(text, at, close)
    return close


def _after_string(text: str, at: int) -> int:
    quote, here = text[at], at + 1
    while here < len(text):
        if text[here] == "\\":
            here += 2
        elif text[here] == quote:
            _printable(text, at, here)
            return here + 1
        else:
            here += 1
    raise Unreadable("this string is not closed", at)


def _after_quoted(text: str, at: int) -> int:
    here = at + 1
    while (close := text.find("`", here)) >= 0:
        if text[close + 1 : close + 2] != "`":
            _printable(text, at, close)
            return close + 1
        here = close + 2
    raise Unreadable("this name in backticks is not closed", at)


def _parameter(text: str, at: int) -> tuple[Token, int]:
    following = text[at + 1 : at + 2]
    if following == "`":
        after = _after_quoted(text, at + 1)
        return Token("parameter", text[at + 2 : after - 1].replace("``", "`"), at), after
    if not (following == "_" or following.isalnum()):
        raise Unreadable("a parameter is a $ followed by a name", at)
    after = _after_word(text, at + 1)
    return Token("parameter", text[at + 1 : after], at), after


def _after_number(text: str, at: int) -> int:
    found = _NUMBER.match(text, at)
    after = found.end() if found else at + 1
    following = text[after : after + 1]
    if following and (following in "_$" or following.isalnum()):
        raise Unreadable("this number runs into a word: put a space between them", at, ambiguous=True)
    return after


def _after_word(text: str, at: int) -> int:
    plain = _PLAIN.match(text, at)
    here = plain.end() if plain else at
    while here < len(text) and (
        text[here] == "_" or text[here].isalnum() or unicodedata.category(text[here])[0] == "M"
    ):
        here += 1
    if text[here : here + 1] == "$":
        raise Unreadable("a $ inside a name: put the name in backticks", here, ambiguous=True)
    return here


def _printable(text: str, start: int, end: int) -> None:
    """Refuse control characters, which databases treat differently, and lone surrogates."""
    if odd := _ODD.search(text, start, end):
        raise Unreadable(f"{_named(odd[0])} is not allowed in a query", odd.start(), ambiguous=True)


def _named(char: str) -> str:
    name = unicodedata.name(char, "").lower()
    shown = f" {char!r}" if char.isascii() and char.isprintable() else ""
    return f"the character{shown} U+{ord(char):04X}{f' ({name})' if name and not shown else ''}"
