"""Read files of memories and the records in them. Errors say where the fault is."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.text.files import read_text

LARGEST = 500_000_000
"""Maximum bytes of a file, because it is read whole."""


def file_text(path: Path) -> str:
    """The whole text of a file. Raises `InvalidInput` if it cannot be read or is empty."""
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder: specify a file in it.")
        if (size := path.stat().st_size) > LARGEST:
            raise InvalidInput(f"{path} has {size:,} bytes; at most {LARGEST:,} are accepted.")
    except OSError:
        pass  # read_text says why
    text = read_text(path)
    if not text.strip():
        raise InvalidInput(f"{path} is empty.")
    return text


def imported_id(format: str, agent_id: str, theirs: str) -> str:
    """The id of the lesson made from a foreign record: the same at each import, and different for each agent."""
    return hashlib.sha256("\0".join((format, agent_id, theirs)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class JsonRecord:
    """A JSON object whose values are checked as they are read. Methods raise `InvalidInput`, which says where."""

    def __init__(self, value: Json, at: str) -> None:
        self.at = at
        if not isinstance(value, dict):
            raise InvalidInput(f"{at} must be an object, not {quoted_value(value)}.")
        self.values = cast(dict[str, Json], value)

    def get(
        self, key: str, kind: type | tuple[type, ...], words: str, default: Json = None, *, need: bool = False
    ) -> Any:
        value = self.values.get(key)
        if value is None:
            if need:
                raise InvalidInput(f"{self.at}.{key} is missing: it must be {words}.")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidInput(f"{self.at}.{key} must be {words}, not {quoted_value(value)}.")
        return value

    def text(self, key: str, *, need: bool = False) -> str:
        value = self.get(key, str, "a string", "", need=need)
        if need and not value.strip():
            raise InvalidInput(f"{self.at}.{key} must not be empty.")
        return value

    def count(self, key: str) -> int:
        return max(0, int(self.get(key, int, "an integer", 0)))

    def texts(self, key: str, *, need: bool = False) -> tuple[str, ...]:
        items = cast(list[Json], self.get(key, list, "a list of strings", [], need=need))
        for n, item in enumerate(items):
            if not isinstance(item, str):
                raise InvalidInput(f"{self.at}.{key}.{n} must be a string, not {quoted_value(item)}.")
        return tuple(cast(list[str], items))

    def time(self, key: str) -> float | None:
        """Seconds since the epoch; None if there is no time. A time without a zone is in UTC."""
        text = self.get(key, str, "a time such as 2025-10-31T12:00:00+00:00")
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(moment.timestamp(), 6)
        except (ValueError, OverflowError):
            raise InvalidInput(f"{self.at}.{key}: {text[:60]!r} is not a time such as 2025-10-31T12:00:00Z.") from None


def quoted_value(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
