"""Export a bank to JSON, and import a file into one: everything or nothing, and nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.app.config import Config, load
from mulligan.app.memory import open_bank
from mulligan.app.memory_config import MemorySettings
from mulligan.app.teaching import memory_command
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.files import archives_to_json
from mulligan.bank.exchange.importing import as_one_agents, prepared, read_bank_file
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Archive, Entry, Kept, Memory
from mulligan.core.records import Json, Lesson
from mulligan.store import open_store

LINKED = 64
"""Lessons whose near-duplicates are looked for in one piece of queued work."""


@dataclass(frozen=True)
class Imported:
    """The outcome of an import. lessons: the ids of the new ones. notes: sentences for the user.

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


async def import_file(file: Path, agent_id: str | None = None, *, config: Config | None = None) -> Imported:
    """Imports a file of any known format, and makes vectors if there is an embedder.

    Args:
        file: An export of ours, or a file of another system.
        agent_id: Whose lessons they become; None keeps the agents that the file names.
        config: The configuration; None loads it.

    Raises:
        InvalidInput: The file cannot be used; the message says where it is wrong. Nothing was imported.
    """
    config = config or load()
    settings = MemorySettings.of(config)
    found = read_bank_file(file)
    archives = found.archives if agent_id is None else (as_one_agents(agent_id, found.archives, file),)
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
    return Imported(found.format, tuple(lesson.id for lesson in everyone), total_known, held, tuple(notes))


def _new(archive: Archive, entries: Sequence[Entry], kept: Sequence[Kept]) -> list[Lesson]:
    return [entry.lesson for entry, where in zip(entries, kept, strict=False) if not where.folded]


async def _embedded(config: Config, agent_id: str, lessons: Sequence[Lesson], memory: Memory, *, link: bool) -> str:
    """Vectors for what is new, and its near-duplicates left to be looked for; why not, where there can be none."""
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
