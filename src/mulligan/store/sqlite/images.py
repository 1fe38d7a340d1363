"""Images apart from the rows that show them: a row holds the sha256, the table `images` the bytes, once.

In a row, {"media_type": T, "data": base64} stands as {"media_type": T, "data": {"sha256": hash}}. What a user's own
JSON has in this place and would be mistaken for it is wrapped: {"data": {"json": …}}. Rows of older versions hold
their images whole, and are read as they are.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.rows import unreadable

_IMAGE = {"media_type", "data"}
_SIGN = '"media_type":'
_WRAPS = ({"sha256"}, {"json"})


def packed(text: str) -> tuple[str, dict[str, bytes]]:
    """The text of a row without the bytes of its images, and these by their hash."""
    found: dict[str, bytes] = {}
    if _SIGN not in text:
        return text, found

    def pack(data: Json) -> Json:
        content = _bytes(data) if isinstance(data, str) else None
        if content is not None:
            sha256 = hashlib.sha256(content).hexdigest()
            found[sha256] = content
            return {"sha256": sha256}
        taken = isinstance(data, dict) and set(cast(dict[str, Json], data)) in _WRAPS
        return {"json": _each(data, pack)} if taken else _each(data, pack)

    return json_text(_each(json.loads(text), pack)), found


def keep(db: Connection, episode: int, images: Mapping[str, bytes]) -> None:
    """Stores images that the episode of this row shows."""
    for sha256, content in images.items():
        db.execute("INSERT INTO images (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (sha256, content))
        db.execute("INSERT INTO shown (episode, sha256) VALUES (?, ?) ON CONFLICT DO NOTHING", (episode, sha256))


def forget(db: Connection, episode: int) -> None:
    """Removes the images that only the episode of this row shows."""
    mine = [sha256 for (sha256,) in db.execute("SELECT sha256 FROM shown WHERE episode = ?", (episode,))]
    db.execute("DELETE FROM shown WHERE episode = ?", (episode,))
    for sha256 in mine:
        db.execute("DELETE FROM images WHERE sha256 = :a AND :a NOT IN (SELECT sha256 FROM shown)", {"a": sha256})


def unpacked(db: Connection, what: str, text: Any) -> Any:
    """The text of a row with its images. Raises `Unreadable`, which names `what` it is, if one is gone."""
    if not isinstance(text, str) or _SIGN not in text:
        return text

    def unpack(data: Json) -> Json:
        one = cast(dict[str, Json], data) if isinstance(data, dict) else {}
        if set(one) == {"sha256"}:
            return _content(db, what, one["sha256"])
        return _each(one["json"] if set(one) == {"json"} else data, unpack)

    try:
        return json_text(_each(json.loads(text), unpack))
    except (ValueError, RecursionError, InvalidInput):  # damaged: whoever reads it says so
        return text


def _content(db: Connection, what: str, sha256: Json) -> str:
    row = db.execute("SELECT content FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    content: object = row[0] if row else None
    if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != sha256:
        raise unreadable(what, f"its image {str(sha256)[:12]} is {'damaged' if row else 'gone'}")
    return base64.b64encode(content).decode()


def _each(value: Json, change: Callable[[Json], Json]) -> Json:
    """A copy with the data of whatever has the form of an image changed."""
    if isinstance(value, list):
        return [_each(item, change) for item in cast(list[Json], value)]
    if not isinstance(value, dict):
        return value
    table = cast(dict[str, Json], value)
    if set(table) == _IMAGE:
        return {key: change(item) if key == "data" else _each(item, change) for key, item in table.items()}
    return {key: _each(item, change) for key, item in table.items()}


def _bytes(text: str) -> bytes | None:
    """The bytes, if this is how they are written in base64."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == text else None
