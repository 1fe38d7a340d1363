"""Finds the line of each key in a TOML file, which `tomllib` does not return. The text must be valid TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|\n|[^\S\n]+|[\w-]+|.",
    re.DOTALL,
)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Returns the first line, counted from 1, of each table and of each key outside inline tables."""
    found: dict[tuple[str, ...], int] = {}
    for keys, line, _ in _keys(text):
        _note(found, keys, line)
    return found


def array_lines(text: str, name: str) -> list[dict[tuple[str, ...], int]]:
    """Returns the same for each table of the array `[[name]]`, in order. The key () has the line of the header."""
    tables: list[dict[tuple[str, ...], int]] = []
    for keys, line, begins in _keys(text):
        if begins and keys == (name,):
            tables.append({(): line})
        elif tables and keys[0] == name:
            _note(tables[-1], keys[1:], line)
    return tables


def _keys(text: str) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Yields each key and each header with its line, and whether it is the header of a table in an array."""
    table: tuple[str, ...] = ()
    keys: list[str] = []
    line, depth, opened = 1, 0, 0
    state = "start"  # of a line; then "header" and "end", or "key" and "value"
    for token in _TOKEN.findall(text.replace("\r\n", "\n")):
        blank = token.isspace() or token.startswith("#")
        if state == "value":
            depth += (token in "[{") - (token in "]}")
            if token == "\n" and depth == 0:
                state = "start"
        elif token == "\n":
            state = "start"
        elif state == "start" and not blank:
            keys = [] if token == "[" else [_key(token)]
            opened = 1
            state = "header" if token == "[" else "key"
        elif state == "key" and token == "=":
            yield (*table, *keys), line, False
            state = "value"
        elif state == "header" and token == "]":
            table = tuple(keys)
            yield table, line, opened > 1
            state = "end"
        elif state == "header" and token == "[":
            opened += 1
        elif state in ("key", "header") and not blank and token != ".":
            keys.append(_key(token))
        line += token.count("\n")


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """Returns the line of a key, such as ("models", "thinker", "name"), or of the nearest table or key above it."""
    lines = key_lines(text)
    return next((lines[at] for n in range(len(keys), 0, -1) if (at := tuple(keys[:n])) in lines), None)


def _note(found: dict[tuple[str, ...], int], keys: tuple[str, ...], line: int) -> None:
    """Records the line of a key and of the tables above it, which a dotted key or header also creates."""
    for n in range(1, len(keys) + 1):
        found.setdefault(keys[:n], line)


def _key(token: str) -> str:
    return tomllib.loads(f"key = {token}")["key"] if token[0] in "\"'" else token
