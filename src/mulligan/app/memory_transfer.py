"""Taking a bank out, and taking files in: everything or nothing, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mulligan.app.config import Config, load
from mulligan.app.memory_config import MemorySettings
from mulligan.bank.exchange.files import archives_to_json, read_bank_file
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Archive, Entry, Kept, Memory, Version
from mulligan.core.records import Json, Lesson
from mulligan.store import open_store

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank

LINKED = 64
"""Lessons whose near-duplicates are looked for in one piece of queued work."""


@dataclass(frozen=True)
class Taken:
    """What became of a file. `lessons` are the ids of those that are new here; notes: what is to be said, in sentences.

    known: how many were here already. quarantined: how many of the new ones are held back.
    """

    format: str
    lessons: tuple[str, ...]
    known: int = 0
    quarantined: int = 0
    notes: tuple[str, ...] = ()


async def export(agent_id: str | None = "", *, config: Config | None = None) -> Json:
    """All that is known of this agent's lessons of any state, as JSON; None: of all agents."""
    async with open_store((config or load()).store) as store:
        return archives_to_json(await store.memory.lessons.archive(agent_id))


async def import_file(file: Path, agent_id: str | None = None, *, config: Config | None = None) -> Taken:
    """Takes in a file of any known format; its vectors are made anew where there is an embedder.

    agent_id: whose the lessons become; None: those whom the file names. Raises `InvalidInput` that says where, and then
    nothing was taken in.
    """
    from mulligan.app.teaching import memory_command

    config = config or load()
    settings = MemorySettings.of(config)
    found = read_bank_file(file)
    archives = found.archives if agent_id is None else (_given_to(agent_id, found.archives, file),)
    ready = [prepared(archive, quarantine=settings.bank.quarantine) for archive in archives]
    retired: list[str] = []
    async with open_store(config.store) as store:
        kept = await store.memory.lessons.restore(ready)
        for archive, where in zip(archives, kept, strict=True):
            if archive.agent_id is not None:
                known = await store.memory.lessons.get(archive.agent_id, [one.id for one in where if one.folded])
                retired += [
                    memory_command(archive.agent_id, "restore", one.id) for one in known if one.state == "retired"
                ]
        new = [_new(archive, entries, where) for (archive, entries), where in zip(ready, kept, strict=True)]
        why_not = ""
        for archive, lessons in zip(archives, new, strict=True):
            if archive.agent_id is not None and settings.embedder != "none" and not why_not:
                link = not settings.bank.paper
                why_not = await _embedded(config, archive.agent_id, lessons, store.memory, link=link)
    everyone = [lesson for lessons in new for lesson in lessons]
    held = sum(lesson.state == "quarantined" for lesson in everyone)
    total_known = sum(len(where) for where in kept) - len(everyone)
    notes = [*found.notes]
    if why_not:
        notes.append(f"Found by their words alone until there are vectors: {why_not}")
    if retired:
        notes.append(f"Known already, but retired, so not recalled. To bring back: {' && '.join(retired)}")
    return Taken(found.format, tuple(lesson.id for lesson in everyone), total_known, held, tuple(notes))


def prepared(archive: Archive, *, quarantine: bool) -> tuple[Archive, list[Entry]]:
    """The archive with its lessons as they are kept, and their entries. Histories were masked when they were read.

    A lesson that tries to instruct its reader is held back, unless it has been flagged for the same before: then
    somebody has decided already.
    """
    from mulligan.bank.learn.entries import entry_of

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


def _new(archive: Archive, entries: Sequence[Entry], kept: Sequence[Kept]) -> list[Lesson]:
    return [entry.lesson for entry, where in zip(entries, kept, strict=False) if not where.folded]


def _given_to(agent_id: str, archives: Sequence[Archive], file: Path) -> Archive:
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


async def _embedded(config: Config, agent_id: str, lessons: Sequence[Lesson], memory: Memory, *, link: bool) -> str:
    """Vectors for what is new, and its near-duplicates left to be looked for; why not, where there can be none."""
    from mulligan.app.memory import open_bank

    ids = [lesson.id for lesson in lessons if lesson.state == "active"]
    if not ids:
        return ""
    try:
        why_not = await reembed(open_bank(agent_id, store=memory, config=config))
    except InvalidInput as error:
        return str(error)
    for n in range(0, len(ids) if link and not why_not else 0, LINKED):
        await memory.queue.enqueue("link", agent_id, {"lessons": ids[n : n + LINKED]})
    return why_not


async def reembed(bank: Bank) -> str:
    """Makes the vectors that are missing; why they could not be made, else "". Raises `InvalidInput` where the bank has
    no embedder."""
    before = {work.id for work in await bank.pending()}
    await bank.reembed()
    return next((work.error for work in await bank.pending() if work.kind == "embed" and work.id not in before), "")
