"""Read lessons from files: our own exports, and files of other systems. A file is checked before anything is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from mulligan.bank.exchange.memories import NOTES, foreign_records, of_notes, of_records
from mulligan.bank.exchange.records import JsonRecord, file_text, imported_id, quoted_value
from mulligan.bank.learn.screening import addition_of
from mulligan.core.codec import SCHEMA, from_json, to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import Addition, Archive, Version
from mulligan.core.records import Json, Lesson, Origin
from mulligan.text.json_lines import parsed
from mulligan.text.secrets import mask_json

UPSTREAM, MEMORY_SERVER = "ReasoningBank-MCP", "server-memory"
OURS = "mulligan"


@dataclass(frozen=True)
class _Export:
    agents: tuple[Archive, ...]


def archives_to_json(archives: Sequence[Archive]) -> Json:
    """The export of these agents: the versions of Mulligan and of the records, then the archives, with secrets masked.

    Raises `InvalidInput` for values that JSON cannot hold.
    """
    from importlib.metadata import version

    return mask_json({"mulligan": version("mulligan"), "schema": SCHEMA, **to_json(_Export(tuple(archives)))})


def archives_from_json(data: Mapping[str, Json], path: Path | str = "The export") -> tuple[Archive, ...]:
    """The archives in an export. Raises `InvalidInput`, which names the path to the wrong value."""
    schema = data.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InvalidInput(f"{path}: schema: the record version is missing, so this is not a Mulligan export.")
    try:
        archives = from_json(_Export, dict(data), schema).agents
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {str(error).removeprefix('_Export.')}") from error
    agents: set[str | None] = set()
    for n, archive in enumerate(archives):
        if archive.agent_id in agents:
            raise InvalidInput(f"{path}: agents.{n}.agent_id: {archive.agent_id!r} appears twice.")
        agents.add(archive.agent_id)
        if contradiction := _contradiction(archive):
            raise InvalidInput(f"{path}: agents.{n}.{contradiction}")
    return archives


def _contradiction(archive: Archive) -> str:
    """What is inconsistent in an archive, such as a lesson that appears twice or is missing; "" if nothing is."""
    ids: set[str] = set()
    for n, lesson in enumerate(archive.lessons):
        at = f"lessons.{n}"
        if lesson.agent_id != archive.agent_id:
            return f"{at}: it belongs to another agent, {lesson.agent_id!r}."
        if not lesson.id or lesson.id in ids:
            return f"{at}: the id {lesson.id} appears twice." if lesson.id else f"{at}: it has no id."
        if not lesson.title.strip() or not lesson.content.strip():
            return f"{at}: a lesson needs a title and content."
        if not 0 <= lesson.confidence <= 1 or lesson.uses < 0 or lesson.support < 1:
            return f"{at}: confidence must be from 0 to 1, uses at least 0, and support at least 1."
        ids.add(lesson.id)
    for id, versions in archive.history.items():
        if id not in ids:
            return f"history.{id}: this lesson is not in the file."
        for n, version in enumerate(versions):
            if version.lesson and (version.lesson.id, version.lesson.agent_id) != (id, archive.agent_id):
                return f"history.{id}.{n}: it is about another lesson."
    for n, link in enumerate(archive.links):
        if {link.a, link.b} - ids:
            return f"links.{n}: it links to a lesson that is not in the file."
    for n, receipt in enumerate(archive.receipts):
        if receipt.agent_id != archive.agent_id:
            return f"receipts.{n}: it belongs to another agent, {receipt.agent_id!r}."
    episodes: set[str] = set()
    for n, account in enumerate(archive.accounts):
        if account.id in episodes:
            return f"accounts.{n}: the account of the episode {account.id} appears twice."
        episodes.add(account.id)
    for n, worth in enumerate(archive.worth):
        if worth.agent_id != archive.agent_id or (worth.id and worth.id not in ids):
            return f"worth.{n}: it belongs to a lesson that is not in the file."
    return ""


_UPSTREAM_FIELDS = (
    "memory_id",
    "agent_id",
    "timestamp",
    "success",
    "title",
    "description",
    "content",
    "query",
    "tags",
    "retrieval_count",
    "last_retrieved",
)
"""Keys of ReasoningBank-MCP that become fields of a lesson. The others go into its context."""


# --- ReasoningBank-MCP ------------------------------------------------------------------------------------------


def of_upstream(path: Path, data: Mapping[str, Json]) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """The lessons of a memories.json and of the archive next to it, or of an archive alone, with notes.

    Vectors are not imported, and a note says so: they are of another text (title, description and content in one line).
    """
    now = time.time()
    tables = [(f"{path}: memories", data)]
    notes: list[str] = []
    archive = path.with_name("archived_memories.json")
    if archive != path and archive.is_file():
        archived = mask_json(parsed(archive, file_text(archive)))
        if not isinstance(archived, dict) or "memories" not in archived:
            raise InvalidInput(f"{archive}: the file next to {path.name} is not a {UPSTREAM} archive.")
        tables.append((f"{archive}: memories", cast(dict[str, Json], archived)))
        notes.append(f"{archive.name} next to it was also read.")
    lessons: dict[str, Lesson] = {}
    for at, table in tables:
        items = table["memories"]
        if not isinstance(items, list):
            raise InvalidInput(f"{at} must be a list, not {quoted_value(items)}.")
        for n, item in enumerate(cast(list[Json], items)):
            lesson = _upstream(JsonRecord(item, f"{at}.{n}"), now)
            if lessons.setdefault(lesson.id, lesson) != lesson:
                notes.append(
                    f"{at}.{n}: an earlier lesson has the same id but a different text; this one gets a new id."
                )
                again = imported_id(UPSTREAM, lesson.id, f"{n}:{lesson.content}")
                lessons[again] = replace(lesson, id=again, experience=again)
    if path.with_name("embeddings.json").is_file():
        notes.append("Vectors are computed again, because those in embeddings.json come from different text.")
    return _with_lineage(lessons), tuple(notes)


def _upstream(record: JsonRecord, now: float) -> Lesson:
    """The lesson in a record. It was created `now` if the record has no time, so that equal records stay equal."""
    memory_id, agent = record.text("memory_id", need=True), record.text("agent_id")
    metadata: Mapping[str, Json] = record.get("metadata", dict, "an object", {})
    merged_into = record.text("merged_into")
    parents = record.texts("merged_from")
    archived = bool(record.values.get("archived") or record.values.get("archived_at") or merged_into)
    created = record.time("timestamp")
    uses = record.count("original_retrieval_count") or record.count("retrieval_count")
    id = imported_id(UPSTREAM, agent, memory_id)
    rest = {key: value for key, value in record.values.items() if key not in _UPSTREAM_FIELDS}
    by = metadata.get("extraction_model", "")
    return Lesson(
        id,
        record.text("title", need=True),
        record.text("content", need=True),
        "success" if record.get("success", bool, "true or false", True) else "failure",
        description=record.text("description"),
        agent_id=agent,
        query=record.text("query"),
        experience=id,
        origin=Origin("imported", parents=parents, by=by if isinstance(by, str) else ""),
        created=now if created is None else created,
        last_used=record.time("last_retrieved"),
        uses=uses,
        tags=record.texts("tags"),
        context={"imported": {"from": UPSTREAM, "id": memory_id, **rest}},
        state="superseded" if merged_into else "retired" if archived else "active",
        superseded_by=merged_into or None,
    )


def _with_lineage(lessons: Mapping[str, Lesson]) -> tuple[Lesson, ...]:
    """The lessons with our ids in their lineage. A lesson that was merged into a missing one is retired."""
    linked: list[Lesson] = []
    for lesson in lessons.values():
        ours = lesson.superseded_by and imported_id(UPSTREAM, lesson.agent_id, lesson.superseded_by)
        parents = tuple(imported_id(UPSTREAM, lesson.agent_id, parent) for parent in lesson.origin.parents)
        exists = ours in lessons
        state = "retired" if lesson.state == "superseded" and not exists else lesson.state
        linked.append(
            replace(
                lesson,
                state=state,
                superseded_by=ours if exists else None,
                origin=replace(lesson.origin, parents=tuple(parent for parent in parents if parent in lessons)),
            )
        )
    return tuple(linked)


# --- the official memory server ---------------------------------------------------------------------------------


class _Relation(NamedTuple):
    source: str
    kind: str
    target: str


def of_memory_server(records: Sequence[tuple[str, Json]]) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """The lessons in a knowledge graph, with notes: one for each entity, with its observations and outgoing relations.

    records: entities and relations, each with its place in the file.
    """
    entities: dict[str, tuple[str, list[str]]] = {}
    relations: list[_Relation] = []
    for place, value in records:
        record = JsonRecord(mask_json(value), place)
        match record.values.get("type"):
            case "entity":
                name, kind = record.text("name", need=True), record.text("entityType")
                observations = entities.setdefault(name, (kind, []))[1]
                observations += [text for text in record.texts("observations") if text not in observations]
            case "relation":
                names = (record.text(key, need=True) for key in ("from", "relationType", "to"))
                relations.append(_Relation(*names))
            case other:
                raise InvalidInput(f'{place}: "type" must be "entity" or "relation", not {quoted_value(other)}.')
    notes: list[str] = []
    for relation in relations:
        if relation.source not in entities:
            notes.append(f"A relation begins at {relation.source!r}, which is not an entity here; it becomes a lesson.")
            entities[relation.source] = ("", [])
    now = time.time()
    lessons = tuple(_entity(name, *entities[name], relations, now) for name in entities)
    return lessons, tuple(notes)


def _entity(name: str, kind: str, observations: Sequence[str], relations: Sequence[_Relation], now: float) -> Lesson:
    own = [relation for relation in relations if relation.source == name]
    lines = [*observations, *(f"{name} {relation.kind} {relation.target}." for relation in own)]
    nothing = f"{name} has the kind {kind}." if kind else f"{name} is known, but nothing is said about it."
    id = imported_id(MEMORY_SERVER, "", name)
    targets = [{"to": relation.target, "relationType": relation.kind} for relation in own]
    about = {"from": MEMORY_SERVER, "id": name, "relations": targets}
    return Lesson(
        id,
        name,
        "\n".join(lines) or nothing,
        "success",
        experience=id,
        origin=Origin("imported"),
        created=now,
        kind=kind,
        context={"imported": about},
    )


@dataclass(frozen=True)
class BankFile:
    """The content of a file. format: the program that wrote it. notes: what was left out or changed, in sentences."""

    format: str
    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()


def read_bank_file(path: Path) -> BankFile:
    """Reads a file in any of the known formats.

    Raises `InvalidInput`, which names the file and the line, or the path to the wrong value.
    """
    if path.is_dir() or path.suffix == ".md":
        lessons, notes = of_notes(path)
        return BankFile(NOTES, (Archive("", lessons),), notes)
    text = file_text(path)
    if (lines := _json_lines(text)) is not None:
        lessons, notes = of_memory_server([(f"{path}:{n}", parsed(path, line, n)) for n, line in lines])
        return BankFile(MEMORY_SERVER, (Archive("", lessons),), notes)
    data = mask_json(parsed(path, text))
    if (graph := _graph(path, data)) is not None:
        lessons, notes = of_memory_server(graph)
        return BankFile(MEMORY_SERVER, (Archive("", lessons),), notes)
    if (foreign := foreign_records(data)) is not None:
        source, records = foreign
        lessons, notes = of_records(path, source, records)
        return BankFile(source.name, (Archive("", lessons),), notes)
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
            raise InvalidInput(f"{path} contains only vectors: specify the memories.json next to it.")
        if "episodes" in table:
            raise InvalidInput(f"{path} is an export of runs, not of lessons.")
    raise InvalidInput(
        f"{path} is not a lesson file in a known format. Mulligan imports its own exports, Markdown notes, and "
        f"files from {UPSTREAM}, {MEMORY_SERVER}, mem0, Letta, Graphiti and mcp-memory-service. See: mulligan docs "
        "coming-from"
    )


def _json_lines(text: str) -> Sequence[tuple[int, str]] | None:
    """The non-empty lines of a memory server's file, with their numbers; None for any other file."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    try:
        first: Any = json.loads(lines[0][1])
    except (ValueError, RecursionError):
        return None
    typed = isinstance(first, dict) and cast(dict[str, Json], first).get("type") in ("entity", "relation")
    return lines if typed else None


def _graph(path: Path, data: Json) -> Sequence[tuple[str, Json]] | None:
    """The records of a graph as the memory server's tool `read_graph` returns it, typed as in its file; else None."""
    table = cast(dict[str, Json], data) if isinstance(data, dict) else {}
    if not all(isinstance(table.get(key), list) for key in ("entities", "relations")):
        return None
    return [
        (f"{path}: {key}.{n}", {**cast(dict[str, Json], one), "type": kind} if isinstance(one, dict) else one)
        for key, kind in (("entities", "entity"), ("relations", "relation"))
        for n, one in enumerate(cast(list[Json], table[key]))
    ]


def prepared(archive: Archive, *, quarantine: bool) -> tuple[Archive, list[Addition]]:
    """The archive with its lessons as they are stored, and the entries for the store.

    A lesson that tries to instruct its reader is quarantined, unless it had the same flags in the file: then somebody
    has decided about it already.
    """
    entries: list[Addition] = []
    for lesson in archive.lessons:
        entry = addition_of(lesson, quarantine=quarantine)
        if set(entry.lesson.flags) == set(lesson.flags):
            entry = replace(entry, lesson=replace(entry.lesson, state=lesson.state))
        entries.append(entry)
    if held := {entry.lesson.id for entry in entries if entry.lesson.state == "quarantined"}:
        # A lesson that was merged into a quarantined one is active again, and has to be screened as such.
        freed = [
            replace(entry.lesson, state="active", superseded_by=None)
            if entry.lesson.superseded_by in held
            else entry.lesson
            for entry in entries
        ]
        if any(entry.lesson is not lesson for entry, lesson in zip(entries, freed, strict=True)):
            return prepared(replace(archive, lessons=tuple(freed)), quarantine=quarantine)
    return replace(archive, lessons=tuple(entry.lesson for entry in entries)), entries


def without_lessons(archive: Archive, ids: Collection[str]) -> Archive:
    """The archive without these lessons and everything about them.

    Lessons that were merged into one of them are retired, as after a purge.
    """
    if not ids:
        return archive
    left = [lesson for lesson in archive.lessons if lesson.id not in ids]
    orphans = [replace(one, state="retired", superseded_by=None) if one.superseded_by in ids else one for one in left]

    def without(scores: Mapping[str, float]) -> dict[str, float]:
        return {id: score for id, score in scores.items() if id not in ids}

    return replace(
        archive,
        lessons=tuple(orphans),
        history={id: versions for id, versions in archive.history.items() if id not in ids},
        links=tuple(link for link in archive.links if link.a not in ids and link.b not in ids),
        receipts=tuple(
            replace(one, lessons=without(one.lessons), withheld=without(one.withheld), drawn=without(one.drawn))
            for one in archive.receipts
        ),
        worth=tuple(one for one in archive.worth if one.id not in ids),
    )


def as_one_agents(agent_id: str, archives: Sequence[Archive], file: Path) -> Archive:
    """The archives as one archive of this agent, without recalls that were made over all agents."""
    lessons: dict[str, Lesson] = {}
    history: dict[str, tuple[Version, ...]] = {}
    for archive in archives:
        for lesson in archive.lessons:
            if lesson.id in lessons:
                raise InvalidInput(f"{file}: two agents have a lesson {lesson.id}: import the file without agent_id=.")
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
        tuple({account.id: account for archive in archives for account in archive.accounts}.values()),
        tuple(replace(one, agent_id=agent_id) for archive in archives for one in archive.worth),
    )
