"""Reads JSON and JSON Lines, which has an object on each line. Errors name the file and line."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json


def objects(raw: bytes, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields the objects in these bytes, which can be gzipped, with their line numbers.

    Blank lines are skipped.

    Args:
        name: the file's name, for errors.

    Raises:
        InvalidInput
    """
    try:
        text = (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{name} cannot be read: {error}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{name}, line {number}: not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InvalidInput(f"{name}, line {number}: must be an object, not {type(row).__name__}.")
        yield number, cast(dict[str, Any], row)


def text_in(name: str, line: int, row: Mapping[str, Any], *keys: str) -> str:
    """Returns the text of the first of these keys that has one.

    Raises:
        InvalidInput: none of the keys has a text.
    """
    for key in keys:
        if isinstance(value := row.get(key), str):
            return value
    raise InvalidInput(f"{name}, line {line}: there is no text under {' or '.join(map(repr, keys))}.")


def parsed(path: Path | str, text: str, first: int = 1) -> Json:
    """Returns the value of a JSON text. Raises `InvalidInput` with `path` and the line, counted from `first`."""

    def refuse(constant: str) -> NoReturn:
        raise InvalidInput(f"{path}: {constant[:20]} is not a JSON number.")

    def finite(number: str) -> float:
        return value if math.isfinite(value := float(number)) else refuse(number)

    try:
        return json.loads(text, parse_constant=refuse, parse_float=finite)
    except json.JSONDecodeError as error:
        line = first + error.lineno - 1
        cut = " The file seems to be cut off." if error.pos >= len(text.rstrip()) else ""
        raise InvalidInput(f"{path}:{line}: this is not JSON: {error.msg} (column {error.colno}).{cut}") from error
    except InvalidInput:
        raise
    except (RecursionError, ValueError) as error:
        raise InvalidInput(f"{path}:{first}: this JSON cannot be read: {error}.") from error
