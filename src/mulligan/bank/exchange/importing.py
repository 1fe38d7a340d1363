"""Read a file of lessons in any known format, and prepare its lessons for the store.

A file is read whole and checked before anything is kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from mulligan.bank.exchange.files import archives_from_json, file_text
from mulligan.bank.exchange.foreign import MEMORY_SERVER, UPSTREAM, of_memory_server, of_upstream
from mulligan.bank.learn.entries import entry_of
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Archive, Entry, Version
from mulligan.core.records import Json, Lesson
from mulligan.text.json_lines import parsed
from mulligan.text.secrets import mask_json

OURS = "mulligan"


@dataclass(frozen=True)
class BankFile:
    """A file that was read. format: what wrote it. notes: what of it has no place here, in sentences."""

    format: str
    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()


def read_bank_file(path: Path) -> BankFile:
    """The file, whichever of the known formats it has. Raises `InvalidInput` that names the file and the line, or the
    way to the value, of what is wrong."""
    text = file_text(path)
    if (lines := _json_lines(text)) is not None:
        lessons, notes = of_memory_server(path, lines)
        return BankFile(MEMORY_SERVER, (Archive("", lessons),), notes)
    data = mask_json(parsed(path, text))
    if isinstance(data, dict):
        table = cast(dict[str, Json], data)
        if "agents" in table:
            return BankFile(OURS, archives_from_json(table, path))
        if "memories" in table:
            lessons, notes = of_upstream(path, table)
            agents = dict.fromkeys(lesson.agent_id for lesson in lessons)
            own = (Archive(agent, tuple(one for one in lessons if one.agent_id == agent)) for agent in agents)
            return BankFile(UPSTREAM, tuple(own), notes)
        if "embeddings" in table:
            raise InvalidInput(f"{path} holds vectors alone: name the memories.json beside it.")
        if "episodes" in table:
            raise InvalidInput(f"{path} is an export of runs, not of lessons.")
    raise InvalidInput(
        f"{path} is no file of lessons that is known here: an export of `mulligan memory export`, the memories.json or "
        f"archived_memories.json of {UPSTREAM}, or the memory.jsonl of {MEMORY_SERVER}."
    )


def _json_lines(text: str) -> Sequence[tuple[int, str]] | None:
    """The lines that are not empty, with their numbers, of a file that holds an object of a memory server on each."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        first: Any = json.loads(lines[0][1])
    except (ValueError, RecursionError):
        return None
    typed = isinstance(first, dict) and cast(dict[str, Json], first).get("type") in ("entity", "relation")
    return lines if typed else None


def prepared(archive: Archive, *, quarantine: bool) -> tuple[Archive, list[Entry]]:
    """The archive with its lessons as they are kept, and their entries. Histories were masked when they were read.

    A lesson that tries to instruct its reader is held back, unless it has been flagged for the same before: then
    somebody has decided already.
    """
    entries: list[Entry] = []
    for lesson in archive.lessons:
        entry = entry_of(lesson, quarantine=quarantine)
        if set(entry.lesson.flags) == set(lesson.flags):
            entry = replace(entry, lesson=replace(entry.lesson, state=lesson.state))
        entries.append(entry)
    if held := {entry.lesson.id for entry in entries if entry.lesson.state == "quarantined"}:
        freed = [_freed(entry.lesson, held) for entry in entries]
        if any(entry.lesson is not lesson for entry, lesson in zip(entries, freed, strict=True)):
            return prepared(replace(archive, lessons=tuple(freed)), quarantine=quarantine)
    return replace(archive, lessons=tuple(entry.lesson for entry in entries)), entries


def _freed(lesson: Lesson, held: set[str]) -> Lesson:
    """The lesson, active where the one that it was merged into is held back."""
    return replace(lesson, state="active", superseded_by=None) if lesson.superseded_by in held else lesson


def as_one_agents(agent_id: str, archives: Sequence[Archive], file: Path) -> Archive:
    """All of them as one agent's; recalls over all agents stay behind."""
    lessons: dict[str, Lesson] = {}
    history: dict[str, tuple[Version, ...]] = {}
    for archive in archives:
        for lesson in archive.lessons:
            if lesson.id in lessons:
                raise InvalidInput(f"{file}: two agents have a lesson {lesson.id}: import it without --agent-id.")
            lessons[lesson.id] = replace(lesson, agent_id=agent_id)
        for id, versions in archive.history.items():
            renamed = (replace(one, lesson=one.lesson and replace(one.lesson, agent_id=agent_id)) for one in versions)
            history[id] = tuple(renamed)
    receipts = [receipt for archive in archives if archive.agent_id is not None for receipt in archive.receipts]
    return Archive(
        agent_id,
        tuple(lessons.values()),
        history,
        tuple(link for archive in archives for link in archive.links),
        tuple(replace(receipt, agent_id=agent_id) for receipt in receipts),
    )
