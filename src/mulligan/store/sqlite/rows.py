"""Rows as the records that they hold, and back. Lists leave out what cannot be read, with a warning."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from mulligan.core.codec import event_from_json, from_json, record_text
from mulligan.core.episode import Event
from mulligan.core.errors import InvalidInput, StoreError, Unreadable
from mulligan.core.records import Json

R = TypeVar("R")
T = TypeVar("T")

log = logging.getLogger("mulligan")

LAST = chr(0x10FFFF)
"""Sorts behind whatever may follow a prefix: `id >= prefix AND id < prefix + LAST`."""

NO_CHARACTER = "\ufffd"
"""What bytes that are not UTF-8 are read as. Records are stored as ASCII, so no intact one contains it."""


def unreadable(what: str, why: object) -> Unreadable:
    return Unreadable(f"{what} cannot be read: {str(why).rstrip('.')}. See: mulligan memory verify")


def json_of(what: str, text: Any) -> Any:
    """The JSON in this column. Raises `Unreadable`, which names `what` it is."""
    if not isinstance(text, str):
        raise unreadable(what, f"its row holds no text but a {type(text).__name__}")
    if NO_CHARACTER in text:
        raise unreadable(what, f"it is not UTF-8 (character {text.index(NO_CHARACTER)})")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(what, error) from error


def object_of(what: str, text: Any) -> dict[str, Any]:
    """The JSON object in this column. Raises `Unreadable`."""
    value = json_of(what, text)
    if not isinstance(value, dict):
        raise unreadable(what, f"it is no object but a {type(value).__name__}")
    return cast(dict[str, Any], value)


def record_of(cls: type[T], what: str, schema: Any, text: Any) -> T:
    """The record of this class in a row. Raises `Unreadable`, which names `what` it is."""
    return _decoded(what, schema, text, lambda data, schema: from_json(cls, data, schema))


def event_of(what: str, schema: Any, text: Any) -> Event:
    """The event in a row. Raises `Unreadable`, which names `what` it is."""
    return _decoded(what, schema, text, event_from_json)


def _decoded(what: str, schema: Any, text: Any, decode: Callable[[Json, int], T]) -> T:
    if not isinstance(schema, int):
        raise unreadable(what, f"its row names no version of the record but {schema!r:.40}")
    try:
        return decode(json_of(what, text), schema)
    except (InvalidInput, TypeError, RecursionError) as error:
        raise unreadable(what, error) from error


def encoded(record: object, what: str) -> str:
    """The text of a record as it is stored. Raises `StoreError`, which names `what` cannot be stored."""
    try:
        return record_text(record)
    except InvalidInput as error:
        raise StoreError(f"{what} cannot be kept: {error}") from error


def broken(rows: Iterable[R], read: Callable[[R], object]) -> Iterator[tuple[R, str]]:
    """The rows for which `read` raises `Unreadable`, each with the reason, as a sentence."""
    for row in rows:
        try:
            read(row)
        except Unreadable as error:
            yield row, str(error).partition(" See:")[0]


def json_in(what: str) -> Callable[[tuple[Any, ...]], object]:
    """Reads the JSON in the last column of a row, and raises `Unreadable`. `what` is formatted with the row."""
    return lambda row: json_of(what.format(*row), row[-1])


def readable(rows: Iterable[R], read: Callable[[R], T]) -> Iterator[T]:
    """What `read` makes of each row. Rows for which it raises `Unreadable` are left out, with a warning."""
    for row in rows:
        try:
            yield read(row)
        except Unreadable as error:
            log.warning("left out: %s", error)
