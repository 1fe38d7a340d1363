"""Memories that people have elsewhere, as lessons: of mem0, Letta, Graphiti, mcp-memory-service, and Markdown notes."""

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
"""Characters of a lesson; a longer section of notes is cut, and that is said."""

_LINK = re.compile(r"^\s*[-*]\s*\[[^\]]*\]\(<?([^)<>]+\.md)>?\)")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_LISTED = ("keywords", "rollout_summary_files")
"""Headings of Codex above lists of words and files that say where something was learned."""
_VERSION = re.compile(r"v\d+")
"""The first line of Codex's summary, alone."""
_KEY = re.compile(r"(?m)^\s*(name|description|type):\s*(.+?)\s*$")


@dataclass(frozen=True)
class MemoryFormat:
    """How another memory writes its records.

    Attributes:
        name: what wrote them.
        text: the key of what is remembered; a record that has it and `marks` is one of this memory.
        marks: a further key that tells this memory from others with the same key.
        id, title, kind: keys.
        since: the keys of the time when it was stored, the first that is there counts.
        owners: the keys of whose memory it is.
        until: the keys of a time since when it no longer holds.
        date, expires: the keys of when it was so, and of a time until which it is remembered.
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
"""Where in a file the records stand; a file can also be the list itself."""


def foreign_records(data: Json) -> tuple[MemoryFormat, Sequence[tuple[str, Json]]] | None:
    """The records of another memory, each with its place in the file; None for a file of no known one."""
    table = cast(Mapping[str, Json], data) if isinstance(data, dict) else {"": data}
    records: list[tuple[str, Json]] = []
    for key in ("", *_LISTS):
        if isinstance(found := table.get(key), list):
            records += [(f"{key}.{n}".strip("."), one) for n, one in enumerate(cast(list[Json], found))]
    first: Json = records[0][1] if records else None
    keys = cast(Mapping[str, Json], first if isinstance(first, dict) else {})
    source = next((one for one in FORMATS if one.text in keys and one.marks in keys), None)
    return (source, records) if source else None


def of_records(
    path: Path, source: MemoryFormat, records: Sequence[tuple[str, Json]]
) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """The records as lessons, and what of them has no place here."""
    now = time.time()
    lessons: dict[str, Lesson] = {}
    owners: Counter[str] = Counter()
    for at, one in records:
        record = JsonRecord(one, f"{path}: {at}")
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
    theirs = str(record.values.get(source.id) or text)
    id = imported_id(source.name, "", theirs)
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
        context={"imported": {"from": source.name, "id": theirs, **rest}},
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
    """A time that is written in words or as seconds."""
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
    """Notes that coding agents keep: a Markdown file, with the files that it links to, or a folder of such files.

    A file with front matter is one lesson; of another file each section is one. A line that only links to another file
    of the folder is none.
    """
    first = path / "MEMORY.md" if path.is_dir() else path
    files = [first] if first.is_file() else []
    folder = first.parent
    linked = (
        [folder / unquote(link[1]) for link in map(_LINK.match, file_text(first).splitlines()) if link] if files else []
    )
    files += [*linked, *(sorted(folder.glob("*.md")) if path.is_dir() else ())]
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
            headings = [one for one in headings if one[0] < len(opened[1])] + [(len(opened[1]), opened[2])]
        else:
            lines.append(line)
    yield from section()
