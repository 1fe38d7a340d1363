"""On which line of a TOML file a key stands: what `tomllib` does not tell. It takes text that `tomllib` could read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|\n|[^\S\n]+|[\w-]+|.",
    re.DOTALL,
)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The first line, counted from 1, of each table and each key outside inline tables."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    keys: list[str] = []
    line, depth = 1, 0
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
            state = "header" if token == "[" else "key"
        elif state == "key" and token == "=":
            _note(found, (*table, *keys), line)
            state = "value"
        elif state == "header" and token == "]":
            table = tuple(keys)
            _note(found, table, line)
            state = "end"
        elif state in ("key", "header") and not blank and token not in (".", "["):
            keys.append(_key(token))
        line += token.count("\n")
    return found


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line of a key, such as ("models", "thinker", "name"), or of the nearest table or key above it."""
    lines = key_lines(text)
    return next((lines[at] for n in range(len(keys), 0, -1) if (at := tuple(keys[:n])) in lines), None)


def _note(found: dict[tuple[str, ...], int], keys: tuple[str, ...], line: int) -> None:
    """With what stands above it, which a dotted key or header makes too."""
    for n in range(1, len(keys) + 1):
        found.setdefault(keys[:n], line)


def _key(token: str) -> str:
    return tomllib.loads(f"key = {token}")["key"] if token[0] in "\"'" else token
