"""The export of a bank as JSON, whole and lossless, and how a file is read for an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.core.codec import SCHEMA, from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Archive
from mulligan.core.records import Json
from mulligan.text.secrets import mask_json

LARGEST = 500_000_000
"""Bytes of a file: it is read whole."""


@dataclass(frozen=True)
class _Export:
    agents: tuple[Archive, ...]


def archives_to_json(archives: Sequence[Archive]) -> Json:
    """The export: the version of Mulligan, that of the records, then what there is of each agent; secrets masked.
    Raises `InvalidInput` for what has no place in JSON."""
    from importlib.metadata import version

    return mask_json({"mulligan": version("mulligan"), "schema": SCHEMA, **to_json(_Export(tuple(archives)))})


def archives_from_json(data: Mapping[str, Json], path: Path | str = "The export") -> tuple[Archive, ...]:
    """Raises `InvalidInput` that names the way to what is wrong."""
    schema = data.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidInput(f"{path}: schema: the version of the records is missing, so this is no export of ours.")
    try:
        archives = from_json(_Export, dict(data), schema).agents
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {str(error).removeprefix('_Export.')}") from error
    agents: set[str | None] = set()
    for n, archive in enumerate(archives):
        if archive.agent_id in agents:
            raise InvalidInput(f"{path}: agents.{n}.agent_id: {archive.agent_id!r} is there twice.")
        agents.add(archive.agent_id)
        if wrong := _wrong(archive):
            raise InvalidInput(f"{path}: agents.{n}.{wrong}")
    return archives


def _wrong(archive: Archive) -> str:
    """What does not belong together: a lesson that is there twice, or something told of one that is not there."""
    ids: set[str] = set()
    for n, lesson in enumerate(archive.lessons):
        at = f"lessons.{n}"
        if lesson.agent_id != archive.agent_id:
            return f"{at}: it is of another agent, {lesson.agent_id!r}."
        if not lesson.id or lesson.id in ids:
            return f"{at}: the id {lesson.id} is there twice." if lesson.id else f"{at}: it has no id."
        if not lesson.title.strip() or not lesson.content.strip():
            return f"{at}: a lesson needs a title and a content."
        if not 0 <= lesson.confidence <= 1 or lesson.uses < 0 or lesson.support < 1:
            return f"{at}: confidence is from 0 to 1, uses at least 0, support at least 1."
        ids.add(lesson.id)
    for id, versions in archive.history.items():
        if id not in ids:
            return f"history.{id}: this lesson is not in the file."
        for n, version in enumerate(versions):
            if version.lesson and (version.lesson.id, version.lesson.agent_id) != (id, archive.agent_id):
                return f"history.{id}.{n}: it tells of another lesson."
    for n, link in enumerate(archive.links):
        if {link.a, link.b} - ids:
            return f"links.{n}: it links a lesson that is not in the file."
    for n, receipt in enumerate(archive.receipts):
        if receipt.agent_id != archive.agent_id:
            return f"receipts.{n}: it is of another agent, {receipt.agent_id!r}."
    return ""


def file_text(path: Path) -> str:
    """All of a file. Raises `InvalidInput` for one that cannot be read, or has nothing in it."""
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder: name a file in it.")
        if (size := path.stat().st_size) > LARGEST:
            raise InvalidInput(f"{path} has {size:,} bytes; {LARGEST:,} can be read.")
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{path}:{line}: not UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    if not text.strip():
        raise InvalidInput(f"{path} is empty.")
    return text
