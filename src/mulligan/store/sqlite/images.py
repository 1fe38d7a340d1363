"""Stores each image once, in the table `images`. The rows that show it hold only its sha256.

A row has {"media_type": T, "data": {"sha256": hash}} in place of {"media_type": T, "data": base64}. If a user's own
JSON has the same form, its data is wrapped: {"data": {"json": …}}. Rows of older versions hold whole images, and are
read as they are.
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

_IMAGE_KEYS = {"media_type", "data"}
_IMAGE_SIGN = '"media_type":'
"""A text without it contains no image."""
_RESERVED = ({"sha256"}, {"json"})
"""The keys of `data` that have a meaning here, so that a user's own must be wrapped."""


def packed(text: str) -> tuple[str, dict[str, bytes]]:
    """The text of a row with hashes in place of its images, and the bytes of the images by their hash."""
    images: dict[str, bytes] = {}
    if _IMAGE_SIGN not in text:
        return text, images

    def pack(data: Json) -> Json:
        content = _bytes(data) if isinstance(data, str) else None
        if content is not None:
            sha256 = hashlib.sha256(content).hexdigest()
            images[sha256] = content
            return {"sha256": sha256}
        must_wrap = isinstance(data, dict) and set(cast(dict[str, Json], data)) in _RESERVED
        return {"json": _map_images(data, pack)} if must_wrap else _map_images(data, pack)

    return json_text(_map_images(json.loads(text), pack)), images


def keep(db: Connection, episode: int, images: Mapping[str, bytes]) -> None:
    """Stores images that this episode shows."""
    for sha256, content in images.items():
        db.execute("INSERT INTO images (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (sha256, content))
        db.execute("INSERT INTO shown (episode, sha256) VALUES (?, ?) ON CONFLICT DO NOTHING", (episode, sha256))


def forget(db: Connection, episode: int) -> None:
    """Removes the images that only this episode shows."""
    hashes = [sha256 for (sha256,) in db.execute("SELECT sha256 FROM shown WHERE episode = ?", (episode,))]
    db.execute("DELETE FROM shown WHERE episode = ?", (episode,))
    for sha256 in hashes:
        db.execute("DELETE FROM images WHERE sha256 = :a AND :a NOT IN (SELECT sha256 FROM shown)", {"a": sha256})


def unpacked(db: Connection, what: str, text: Any) -> Any:
    """The text of a row with its images. Raises `Unreadable`, which names `what` it is, if an image is missing."""
    if not isinstance(text, str) or _IMAGE_SIGN not in text:
        return text

    def unpack(data: Json) -> Json:
        table = cast(dict[str, Json], data) if isinstance(data, dict) else {}
        if set(table) == {"sha256"}:
            return _content(db, what, table["sha256"])
        return _map_images(table["json"] if set(table) == {"json"} else data, unpack)

    try:
        return json_text(_map_images(json.loads(text), unpack))
    except (ValueError, RecursionError, InvalidInput):  # it is damaged; the reader of the row reports that
        return text


def _content(db: Connection, what: str, sha256: Json) -> str:
    row = db.execute("SELECT content FROM images WHERE sha256 = ?", (sha256,)).fetchone()
    content: object = row[0] if row else None
    if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != sha256:
        raise unreadable(what, f"its image {str(sha256)[:12]} is {'damaged' if row else 'gone'}")
    return base64.b64encode(content).decode()


def _map_images(value: Json, change: Callable[[Json], Json]) -> Json:
    """A copy of the value in which `change` is applied to the data of each object that has the form of an image."""
    if isinstance(value, list):
        return [_map_images(item, change) for item in cast(list[Json], value)]
    if not isinstance(value, dict):
        return value
    table = cast(dict[str, Json], value)
    is_image = set(table) == _IMAGE_KEYS
    return {
        key: change(item) if is_image and key == "data" else _map_images(item, change) for key, item in table.items()
    }


def _bytes(text: str) -> bytes | None:
    """The bytes that the text encodes; None unless it is exactly their base64 form."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == text else None
