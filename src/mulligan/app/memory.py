"""Opens the bank of an agent with the configured parts, exports banks, and imports files: all or nothing, and no lesson
twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mulligan.app.backup import emptied_at, erasures_file, noted_erasure, purged_ids
from mulligan.app.config import Config, choose_model, load, project_here
from mulligan.app.memory_config import MemorySettings
from mulligan.app.model_roles import Models
from mulligan.app.plugins import build
from mulligan.app.prompts import FilePrompts
from mulligan.app.replays import RecordedRuns
from mulligan.app.teaching import memory_command
from mulligan.bank import bank
from mulligan.bank.exchange.importing import archives_to_json, as_one_agents, prepared, read_bank_file, without_lessons
from mulligan.bank.ports import Ports
from mulligan.bank.recall.embedding import Vectors
from mulligan.bank.upkeep.upkeep import OnEmbedded
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import Archive
from mulligan.core.lesson_store import Memory
from mulligan.core.operations import operation
from mulligan.core.protocols import Embedder, Model
from mulligan.core.records import Json, Lesson, Spec
from mulligan.hooks.project import Project
from mulligan.models.catalog import open_embedder
from mulligan.models.settings import CallSettings
from mulligan.models.weights import without_embedder
from mulligan.recording.holders import owner
from mulligan.store import open_store
from mulligan.text.plain import count
from mulligan.text.times import day


class Bank(bank.Bank):
    """The lessons of one agent, with methods to recall, learn and maintain them.

    Earlier versions are kept; only `purge` and `redact` delete data. Close a bank after use, or use it as an async
    context manager.

    Raises:
        InvalidInput, StoreError
        NotFound: also for another agent's lesson.
        ModelError, BadAnswer: from methods that ask a model.
    """

    erasures: Path | None = None
    """The file that records erasures, or None if the bank is not in the configured store."""
    notice: str = ""
    """Why this folder does not use its project's facts, and how to change that; "" if it uses them."""
    withhold: float = 0.0
    """The share of recalls that withhold a lesson, to measure its worth."""

    async def purge(self, ids: Sequence[str] | None) -> int:
        """Deletes lessons and their history, and returns their number. None deletes all of this agent's lessons.

        Restoring a backup does not restore them. For a database, call `erase_again` after the restore.
        """
        whole = None if ids is None else [(await self._changeable(id)).id for id in ids]
        with noted_erasure(self.erasures, agent_id=self._ports.writes, lessons=whole):
            return await super().purge(whole)

    @classmethod
    def open(cls, agent_id: str | None = "", **options: Any) -> Bank:
        """Opens the bank of this agent in the configured store. The options are those of `open_bank`."""
        return open_bank(agent_id, **options)


def open_bank(
    agent_id: str | None = "",
    *,
    store: Memory | None = None,
    model: str | Model | None = None,
    embedder: str | Embedder | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    config: Config | None = None,
    models: Models | None = None,
    project: str | None = None,
    wrap: Callable[[Model], Model] | None = None,
) -> Bank:
    """Returns the bank of this agent. Nothing is opened, loaded or called until it is used.

    Args:
        agent_id: the agent; "" is the unnamed agent. None reads all agents' lessons and writes to the unnamed agent.
        store: an open store. None: the configured store.
        model: the model that judges, extracts and merges. None: the model in [memory], MULLIGAN_MODEL, or `model` in
            mulligan.toml. Without a model, or with "none", questions are returned to the caller.
        embedder: "local", PROVIDER:MODEL, "hash" (for tests) or "none".
        preset: "paper".
        settings: settings that override those of [memory] in mulligan.toml.
        project: the id of the project whose facts are recalled. None: the working folder's project.
        wrap: a function that takes the bank's model, and returns the model to use instead.

    Raises:
        InvalidInput: an argument or a setting cannot work.
    """
    for name, value, right, wanted in (
        ("agent_id", agent_id, isinstance(agent_id, str) and agent_id != "*", "the name of one agent"),
        ("store", store, hasattr(store, "lessons"), "an open store, as open_store(ADDRESS) returns"),
        ("embedder", embedder, isinstance(embedder, str) or hasattr(embedder, "embed"), "a name or an embedder"),
        ("settings", settings, isinstance(settings, Mapping), "a mapping"),
        ("config", config, isinstance(config, Config), "a Config"),
        ("project", project, isinstance(project, str), "a string"),
    ):
        if value is not None and not right:
            raise InvalidInput(f"{name} must be {wanted}, not {value!r}.")
    config = config or load()
    memory = MemorySettings.of(config, settings or {}, preset)
    models = models or Models(config)
    prompts = FilePrompts.of(config)
    named = models.name(model) or memory.model or choose_model(None, config)
    thinker = models.open(named) if named and named != "none" else None
    here = project_here(config) if project is None else Project(project)
    opened = Bank(
        Ports(
            memory=store or open_store(config.store).memory,
            agent_id=agent_id,
            vectors=_vectors(embedder or memory.embedder, config),
            retrieval=_strategy("retrieval", memory.retrieval, prompts),
            deduplication=_strategy("deduplication", memory.deduplication, prompts),
            merging=_strategy("merging", memory.merging, prompts),
            model=wrap(thinker) if wrap and thinker else thinker,
            prompts=prompts,
            settings=memory.bank,
            owner=owner(),
            strategy=Path(memory.retrieval.name).stem,
            project=here.id,
            replays=RecordedRuns(config, models),
        )
    )
    opened.erasures = erasures_file(config.store) if store is None else None
    opened.notice, opened.withhold = here.notice, memory.bank.withhold
    return opened


def _strategy(role: str, spec: Spec, prompts: FilePrompts) -> Any:
    return build(role, spec, {"prompts": prompts})


def _vectors(given: str | Embedder, config: Config) -> Vectors:
    missed, command = without_embedder(given) if isinstance(given, str) else ("", "")
    return Vectors(_embedder(given, config), missed and f"{missed}: {command}")


def _embedder(given: str | Embedder, config: Config) -> Embedder | None:
    """The embedder of this name; None if lessons are found only by keyword."""
    if not isinstance(given, str):
        return given
    if given == "none":
        return None
    with config.errors_at("calls"):
        calls = CallSettings.parse(config.table("calls"))
    try:
        return open_embedder(given, settings=calls)
    except InvalidInput:
        if without_embedder(given)[0]:  # not installed: recalls say so and work without it
            return None
        raise


LINK_BATCH = 64
"""Lessons whose near-duplicates are searched in one piece of queued work."""


@dataclass(frozen=True)
class Imported:
    """The outcome of an import.

    Attributes:
        lessons: the ids of the new ones.
        known: how many were here already.
        quarantined: how many of the new ones are quarantined.
        notes: sentences for the user.
        accounts: how many accounts of episodes the file holds.
    """

    format: str
    lessons: tuple[str, ...]
    known: int = 0
    quarantined: int = 0
    notes: tuple[str, ...] = ()
    accounts: int = 0


async def export(agent_id: str | None = "", *, config: Config | None = None) -> Json:
    """The whole bank of this agent as JSON: lessons of any state, recalls and accounts; None: the banks of all."""
    async with open_store((config or load()).store) as store:
        return archives_to_json(await store.memory.lessons.archive(agent_id))


async def import_file(
    file: Path,
    agent_id: str | None = None,
    *,
    config: Config | None = None,
    on_embedded: OnEmbedded | None = None,
) -> Imported:
    """Imports a file of any known format, and makes vectors if there is an embedder.

    Args:
        file: An export of ours, or a file of another system.
        agent_id: The agent that gets the lessons; None keeps the agents that the file names.
        config: The configuration; None loads it.
        on_embedded: See `OnEmbedded`.

    Raises:
        InvalidInput: The file cannot be used; the message says where it is wrong. Nothing was imported.
    """
    config = config or load()
    settings = MemorySettings.of(config)
    bank_file = read_bank_file(file)
    archives = bank_file.archives if agent_id is None else (as_one_agents(agent_id, bank_file.archives, file),)
    erased = [_erased(archive, erasures_file(config.store)) for archive in archives]
    archives = tuple(without_lessons(archive, ids) for archive, (ids, _) in zip(archives, erased, strict=True))
    prepared_archives = [prepared(archive, quarantine=settings.bank.quarantine) for archive in archives]
    retired: list[str] = []
    owners = {archive.agent_id for archive in archives}
    facts: dict[str, Json] = {
        "bank": owners.pop() if len(owners) == 1 else None,
        "lessons": sum(len(entries) for _, entries in prepared_archives),
    }
    async with open_store(config.store) as store:
        with operation("keep", facts=facts):
            added = await store.memory.lessons.restore(prepared_archives)
        for archive, results in zip(archives, added, strict=True):
            if archive.agent_id is not None:
                folded = [result.id for result in results if result.folded]
                retired += [
                    memory_command(archive.agent_id, "retire", "--undo", lesson.id)
                    for lesson in await store.memory.lessons.get(archive.agent_id, folded)
                    if lesson.state == "retired"
                ]
        new = [
            [entry.lesson for entry, result in zip(entries, results, strict=False) if not result.folded]
            for (_, entries), results in zip(prepared_archives, added, strict=True)
        ]
        why_not = ""
        for archive, lessons in zip(archives, new, strict=True):
            if archive.agent_id is not None and settings.embedder != "none" and not why_not:
                link = not settings.bank.paper
                why_not = await _embedded(
                    config, archive.agent_id, lessons, store.memory, link=link, on_embedded=on_embedded
                )
    new_lessons = [lesson for lessons in new for lesson in lessons]
    quarantined = sum(lesson.state == "quarantined" for lesson in new_lessons)
    total_known = sum(len(results) for results in added) - len(new_lessons)
    notes = [*bank_file.notes, *(note for _, texts in erased for note in texts)]
    if why_not:
        notes.append(f"Found by keyword only until there are vectors: {why_not}")
    if retired:
        notes.append(f"Already known, but retired, so not recalled. To restore it: {' && '.join(retired)}")
    accounts = sum(len(archive.accounts) for archive in archives)
    ids = tuple(lesson.id for lesson in new_lessons)
    return Imported(bank_file.format, ids, total_known, quarantined, tuple(notes), accounts)


def _erased(archive: Archive, erasures: Path | None) -> tuple[frozenset[str], list[str]]:
    """The lessons of an archive that were purged here, and notes for the user about them and about a purged bank."""
    emptied = emptied_at(erasures, archive.agent_id)
    gone = purged_ids(erasures, archive.agent_id).intersection(lesson.id for lesson in archive.lessons)
    older = sum(lesson.created <= emptied and lesson.id not in gone for lesson in archive.lessons)
    notes: list[str] = []
    if gone:
        notes.append(
            f"{count(len(gone), 'lesson')} of it {'was' if len(gone) == 1 else 'were'} purged here, and left out. To "
            "import them nevertheless, import the file into another bank with --bank."
        )
    if older:
        verb = "is" if older == 1 else "are"
        when = f"from before {day(emptied)}, when the whole bank was purged"
        notes.append(f"{count(older, 'lesson')} of it {verb} {when}.")
    return gone, notes


async def _embedded(
    config: Config,
    agent_id: str,
    lessons: Sequence[Lesson],
    memory: Memory,
    *,
    link: bool,
    on_embedded: OnEmbedded | None,
) -> str:
    """Makes vectors for new lessons, and queues the search for their near-duplicates. Returns why it could not, else
    ""."""
    ids = [lesson.id for lesson in lessons if lesson.state == "active"]
    if not ids:
        return ""
    try:
        why_not = await reembed(open_bank(agent_id, store=memory, config=config), on_embedded)
    except InvalidInput as error:
        return str(error)
    for n in range(0, len(ids) if link and not why_not else 0, LINK_BATCH):
        await memory.queue.enqueue("link", agent_id, {"lessons": ids[n : n + LINK_BATCH]})
    return why_not


async def reembed(bank: bank.Bank, on_embedded: OnEmbedded | None = None) -> str:
    """Makes the missing vectors. Returns why they could not be made, else "". Raises `InvalidInput` if the bank has no
    embedder."""
    before = {work.id for work in await bank.pending()}
    await bank.reembed(on_embedded)
    return next((work.error for work in await bank.pending() if work.kind == "embed" and work.id not in before), "")
