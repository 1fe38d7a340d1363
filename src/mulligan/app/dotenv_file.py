"""Reads a `.env` file, which is never written. What is wrong is said with its line, never with what stands there."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

from mulligan.app.config import read_text
from mulligan.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_dotenv(file: Path) -> dict[str, str]:
    """The variables as they stand there: `$NAME` and `${NAME}` stay as they are. The last of a name counts.

    Raises `InvalidInput` for a file that is not UTF-8, or a line that is not of the form NAME=VALUE.
    """
    from dotenv.parser import parse_stream

    found: dict[str, str] = {}
    for binding in parse_stream(StringIO(read_text(file))):
        text = binding.original.string
        line = binding.original.line + _lines(text[: len(text) - len(text.lstrip())])
        if binding.error or (binding.key is not None and binding.value is None):
            raise InvalidInput(f"{file}:{line}: a line must be of the form NAME=VALUE, with each quote closed.")
        if binding.key is None or binding.value is None:
            continue
        if not _NAME.fullmatch(binding.key):
            raise InvalidInput(f"{file}:{line}: before the = must stand a name of letters, digits and _.")
        if "\0" in binding.value:
            raise InvalidInput(f"{file}:{line}: the value holds a NUL character.")
        found[binding.key] = binding.value
    return found


def _lines(text: str) -> int:
    return len(re.findall(r"\r\n|\n|\r", text))
