"""Import the memories of other programs as lessons: mem0, Letta, Graphiti, mcp-memory-service and Markdown notes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from mulligan.bank.exchange.records import JsonRecord, file_text, imported_id
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json, Lesson, Origin
from mulligan.text.secrets import mask

NOTES = "Markdown notes"
LONGEST = 8_000
"""Maximum characters of a lesson. Longer sections are cut, with a note."""

_LINK = re.compile(r"^\s*[-*]\s*\[[^\]]*\]\(<?([^)<>]+\.md)>?\)")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_LISTED = ("keywords", "rollout_summary_files")
"""Headings in Codex's notes above lists of words and files, which are not lessons."""
_VERSION = re.compile(r"v\d+")
"""A section of Codex's notes that holds only a version."""
_KEY = re.compile(r"(?m)^\s*(name|description|type):\s*(.+?)\s*$")


@dataclass(frozen=True)
class MemoryFormat:
    """How another memory writes its records.

    Attributes:
        name: the program that writes them.
        text: the key of what is remembered.
        marks: another key of these records, which those of other programs do not have.
        id, title, kind: the keys of these.
        since: keys of the time when the record was stored; the first one present counts.
        owners: keys of the record's owners.
        until: keys of the time when the record stopped being true.
        date: the key of the time when it was true.
        expires: the key of the time until which it is remembered.
    """

    name: str
    text: str
    marks: str
    id: str
    since: Sequence[str] = ("created_at",)
    title: str = ""
    kind: str = ""
    owners: Sequence[str] = ()
    until: Sequence[str] = ()
    date: str = ""
    expires: str = ""


FORMATS = (
    MemoryFormat(
        "mem0",
        "memory",
        "memory",
        "id",
        ("created_at", "createdAt"),
        owners=("user_id", "agent_id", "app_id", "run_id", "userId", "agentId", "runId"),
        expires="expiration_date",
    ),
    MemoryFormat(
        "mcp-memory-service",
        "content",
        "content_hash",
        "content_hash",
        ("created_at_iso", "created_at"),
        kind="memory_type",
    ),
    MemoryFormat(
        "Graphiti",
        "fact",
        "fact",
        "uuid",
        ("created_at", "valid_at"),
        "name",
        owners=("group_id",),
        until=("invalid_at", "expired_at"),
        date="valid_at",
    ),
    MemoryFormat("Letta", "value", "label", "id", title="label"),
    MemoryFormat("Letta", "text", "archive_id", "id", owners=("archive_id",)),
)
"""The memories that write JSON. Letta has blocks, which have labels, and passages."""

_LISTS = ("results", "memories", "edges", "facts", "blocks", "core_memory", "passages", "items")
"""Keys of a file under which records are listed. A file can also be the list itself."""


def foreign_records(data: Json) -> tuple[MemoryFormat, Sequence[tuple[str, Json]]] | None:
    """The format of a file, and its records with their places in the file; None if no known program wrote it."""
    table = cast(Mapping[str, Json], data) if isinstance(data, dict) else {"": data}
    records: list[tuple[str, Json]] = []
    for key in ("", *_LISTS):
        if isinstance(listed := table.get(key), list):
            records += [(f"{key}.{n}".strip("."), one) for n, one in enumerate(cast(list[Json], listed))]
    first: Json = records[0][1] if records else None
    keys = cast(Mapping[str, Json], first if isinstance(first, dict) else {})
    source = next((one for one in FORMATS if one.text in keys and one.marks in keys), None)
    return (source, records) if source else None


def of_records(
    path: Path, source: MemoryFormat, records: Sequence[tuple[str, Json]]
) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """The records as lessons, with notes about what was left out or changed."""
    now = time.time()
    lessons: dict[str, Lesson] = {}
    owners: Counter[str] = Counter()
    for at, value in records:
        record = JsonRecord(value, f"{path}: {at}")
        if not record.text(source.text).strip():
            continue
        owners.update(f"{key} {value}" for key in source.owners if (value := record.values.get(key)))
        lesson = _lesson(source, record, now)
        lessons[lesson.id] = lesson
    notes: list[str] = []
    if owners:
        notes.append(f"Owners in the file: {', '.join(f'{who} ({n})' for who, n in owners.items())}.")
    if ended := sum(one.state == "retired" for one in lessons.values()):
        notes.append(f"{ended} of them are no longer true, and are retired.")
    if lost := len(records) - len(lessons):
        notes.append(f"{lost} of them are empty or duplicates, and are left out.")
    return tuple(lessons.values()), tuple(notes)


def _lesson(source: MemoryFormat, record: JsonRecord, now: float) -> Lesson:
    text = record.text(source.text).strip()
    record_id = str(record.values.get(source.id) or text)
    id = imported_id(source.name, "", record_id)
    title = record.text(source.title).strip().replace("_", " ") if source.title else ""
    times = (_moment(record, key) for key in source.since)
    rest = {key: value for key, value in record.values.items() if key not in (source.text, source.id, "embedding")}
    return Lesson(
        id,
        title or _first_words(text),
        text,
        "success",
        experience=id,
        origin=Origin("imported"),
        created=next((at for at in times if at is not None), now),
        kind=record.text(source.kind) if source.kind else "",
        tags=_tags(record),
        context={"imported": {"from": source.name, "id": record_id, **rest}},
        state="retired" if any(record.values.get(key) for key in source.until) else "active",
        date=_moment(record, source.date),
        expires=_moment(record, source.expires),
    )


def _tags(record: JsonRecord) -> tuple[str, ...]:
    tags = record.values.get("tags")
    if isinstance(tags, str):
        return tuple(filter(None, (one.strip() for one in tags.split(","))))
    return record.texts("tags") if isinstance(tags, list) else ()


def _moment(record: JsonRecord, key: str) -> float | None:
    """A time under this key, written as text or as seconds since the epoch; None if there is none."""
    value = record.values.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return record.time(key)


def _first_words(text: str) -> str:
    lines = (line.lstrip("#-* ").strip() for line in text.splitlines())
    line = next(filter(None, lines), text.strip())
    return line if len(line) <= 80 else f"{line[:79].rsplit(' ', 1)[0]}…"


# --- Markdown -------------------------------------------------------------------------------------------------------


def of_notes(path: Path) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """The lessons in the notes of a coding agent, with notes about what was left out.

    path: A Markdown file, which is read with the files that it links to, or a folder of such files. A file with front
    matter is one lesson; in any other file each section is one. Lines that only link to other files are left out.
    """
    first = path / "MEMORY.md" if path.is_dir() else path
    folder = first.parent
    files: list[Path] = []
    if first.is_file():
        links = map(_LINK.match, file_text(first).splitlines())
        files = [first, *(folder / unquote(link[1]) for link in links if link)]
    files += sorted(folder.glob("*.md")) if path.is_dir() else []
    inside = folder.resolve()
    lessons: dict[str, Lesson] = {}
    notes: list[str] = []
    for file in dict.fromkeys(files):
        if not file.is_file() or inside not in file.resolve().parents:
            notes.append(f"{first.name} names {file.name}, which does not exist.")
            continue
        for title, text, about in _sections(file, mask(file_text(file).replace("\r\n", "\n"))):
            if len(text) > LONGEST:
                notes.append(f"{file.name}: {title!r} is longer than {LONGEST:,} characters, so it was cut.")
            lesson = _note(file, title, text[:LONGEST], about)
            lessons[lesson.id] = lesson
    if not lessons:
        raise InvalidInput(f"{path} contains no notes: no text below a heading, and no file with front matter.")
    return tuple(lessons.values()), tuple(notes)


def _note(file: Path, title: str, text: str, about: Mapping[str, str]) -> Lesson:
    id = imported_id(NOTES, file.name, f"{title}\0{text}")
    return Lesson(
        id,
        title,
        text,
        "success",
        description=about.get("description", ""),
        experience=id,
        origin=Origin("imported"),
        created=round(file.stat().st_mtime, 3),
        kind=about.get("type", ""),
        context={"imported": {"from": NOTES, "id": file.name}},
    )


def _sections(file: Path, text: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """The title, the text and the front matter of each lesson in a file."""
    if text.startswith("---\n") and (end := text.find("\n---", 4)) > 0:
        about = {key: value.strip("\"'") for key, value in _KEY.findall(text[4:end])}
        body = text[end + 4 :].strip()
        if body:
            yield about.get("name", file.stem).replace("_", " "), body, about
        return
    headings: list[tuple[int, str]] = []
    lines: list[str] = []

    def section() -> Iterator[tuple[str, str, Mapping[str, str]]]:
        body = "\n".join(line for line in lines if not _LINK.match(line)).strip()
        listed = bool(headings) and headings[-1][1] in _LISTED
        if body and not listed and not _VERSION.fullmatch(body):
            yield ": ".join(name for _, name in headings[-2:]) or _first_words(body), body, {}

    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if not fenced and (opened := _HEADING.match(line)):
            yield from section()
            lines.clear()
            level = len(opened[1])
            headings = [(outer, name) for outer, name in headings if outer < level] + [(level, opened[2])]
        else:
            lines.append(line)
    yield from section()
