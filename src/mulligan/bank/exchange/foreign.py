"""Read lessons of other systems: the files of ReasoningBank-MCP, and the JSONL of the official memory server.

What a record says and ours have no field for is kept in the lesson's context, under "imported".
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from mulligan.bank.exchange.files import file_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json, Lesson, Origin
from mulligan.text.json_lines import parsed
from mulligan.text.secrets import mask_json

UPSTREAM, MEMORY_SERVER = "ReasoningBank-MCP", "server-memory"

_TAKEN = frozenset(
    (
        *("memory_id", "agent_id", "timestamp", "success", "title", "description", "content", "query", "tags"),
        *("retrieval_count", "last_retrieved"),
    )
)


def imported_id(format: str, agent_id: str, theirs: str) -> str:
    """The id that a foreign record gets here: the same at each import, and another for another agent."""
    return hashlib.sha256("\0".join((format, agent_id, theirs)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Record:
    """One JSON object whose values are taken by their kinds. Raises `InvalidInput` that says where."""

    def __init__(self, value: Json, at: str) -> None:
        self.at = at
        if not isinstance(value, dict):
            raise InvalidInput(f"{at}: an object is wanted, not {_shown(value)}.")
        self.values = cast(dict[str, Json], value)

    def get(
        self, key: str, kind: type | tuple[type, ...], words: str, default: Json = None, *, need: bool = False
    ) -> Any:
        value = self.values.get(key)
        if value is None:
            if need:
                raise InvalidInput(f"{self.at}.{key}: it is missing; {words} is wanted.")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidInput(f"{self.at}.{key}: {words} is wanted, not {_shown(value)}.")
        return value

    def text(self, key: str, *, need: bool = False) -> str:
        value = self.get(key, str, "a text", "", need=need)
        if need and not value.strip():
            raise InvalidInput(f"{self.at}.{key}: the text is empty.")
        return value

    def count(self, key: str) -> int:
        return max(0, int(self.get(key, int, "a whole number", 0)))

    def texts(self, key: str, *, need: bool = False) -> tuple[str, ...]:
        items = cast(list[Json], self.get(key, list, "a list of texts", [], need=need))
        for n, item in enumerate(items):
            if not isinstance(item, str):
                raise InvalidInput(f"{self.at}.{key}.{n}: a text is wanted, not {_shown(item)}.")
        return tuple(cast(list[str], items))

    def time(self, key: str) -> float | None:
        """Seconds since the epoch; a time without a zone is taken as UTC, which is what they write it in."""
        text = self.get(key, str, "a time such as 2025-10-31T12:00:00+00:00")
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(moment.timestamp(), 6)
        except (ValueError, OverflowError):
            raise InvalidInput(f"{self.at}.{key}: {text[:60]!r} is no time such as 2025-10-31T12:00:00Z.") from None


# --- ReasoningBank-MCP ------------------------------------------------------------------------------------------


def of_upstream(path: Path, data: Mapping[str, Json]) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """memories.json with the archive beside it, or an archive alone. Its vectors stay behind, and that is said: they
    are of another text (title, description and content in one line) than ours would be."""
    found = [(f"{path}: memories", data)]
    notes: list[str] = []
    archive = path.with_name("archived_memories.json")
    if archive != path and archive.is_file():
        beside = mask_json(parsed(archive, file_text(archive)))
        if not isinstance(beside, dict) or "memories" not in beside:
            raise InvalidInput(f"{archive}: it lies beside {path.name}, and is no archive of {UPSTREAM}.")
        found.append((f"{archive}: memories", cast(dict[str, Json], beside)))
        notes.append(f"{archive.name} beside it was read too.")
    lessons: dict[str, Lesson] = {}
    for at, table in found:
        items = table["memories"]
        if not isinstance(items, list):
            raise InvalidInput(f"{at}: a list is wanted, not {_shown(items)}.")
        for n, item in enumerate(cast(list[Json], items)):
            lesson = _upstream(_Record(item, f"{at}.{n}"))
            if lessons.setdefault(lesson.id, lesson) != lesson:
                notes.append(f"{at}.{n}: the id is there already with another text; it gets an id of its own.")
                again = imported_id(UPSTREAM, lesson.id, f"{n}:{lesson.content}")
                lessons[again] = _renamed(lesson, again)
    if path.with_name("embeddings.json").is_file():
        notes.append("Vectors are made anew: those in embeddings.json are of another text than is embedded here.")
    return _with_lineage(lessons), tuple(notes)


def _upstream(record: _Record) -> Lesson:
    theirs, agent = record.text("memory_id", need=True), record.text("agent_id")
    about: Mapping[str, Json] = record.get("metadata", dict, "an object", {})
    into = record.text("merged_into")
    parents = record.texts("merged_from")
    archived = bool(record.values.get("archived")) or bool(record.values.get("archived_at")) or bool(into)
    created = record.time("timestamp")
    uses = record.count("original_retrieval_count") or record.count("retrieval_count")
    id = imported_id(UPSTREAM, agent, theirs)
    rest = {key: value for key, value in record.values.items() if key not in _TAKEN}
    by = about.get("extraction_model", "")
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
        created=time.time() if created is None else created,
        last_used=record.time("last_retrieved"),
        uses=uses,
        tags=record.texts("tags"),
        context={"imported": {"from": UPSTREAM, "id": theirs, **rest}},
        state="superseded" if into else "retired" if archived else "active",
        superseded_by=into or None,
    )


def _with_lineage(lessons: Mapping[str, Lesson]) -> tuple[Lesson, ...]:
    """With the ids in their lineage turned into ours. What was merged into a lesson that is not there is retired."""
    linked: list[Lesson] = []
    for lesson in lessons.values():
        ours = lesson.superseded_by and imported_id(UPSTREAM, lesson.agent_id, lesson.superseded_by)
        parents = tuple(imported_id(UPSTREAM, lesson.agent_id, parent) for parent in lesson.origin.parents)
        there = ours in lessons
        state = "retired" if lesson.state == "superseded" and not there else lesson.state
        linked.append(
            replace(
                lesson,
                state=state,
                superseded_by=ours if there else None,
                origin=replace(lesson.origin, parents=tuple(parent for parent in parents if parent in lessons)),
            )
        )
    return tuple(linked)


def _renamed(lesson: Lesson, id: str) -> Lesson:
    return replace(lesson, id=id, experience=id)


# --- the official memory server ---------------------------------------------------------------------------------


def of_memory_server(path: Path, lines: Sequence[tuple[int, str]]) -> tuple[tuple[Lesson, ...], tuple[str, ...]]:
    """An entity with its observations is a lesson; a relation stands in the text of the entity that it begins at."""
    entities: dict[str, tuple[str, list[str]]] = {}
    relations: list[tuple[str, str, str]] = []
    for number, line in lines:
        record = _Record(mask_json(parsed(path, line, number)), f"{path}:{number}")
        match record.values.get("type"):
            case "entity":
                name, kind = record.text("name", need=True), record.text("entityType")
                observations = entities.setdefault(name, (kind, []))[1]
                observations += [text for text in record.texts("observations") if text not in observations]
            case "relation":
                relations.append(
                    (
                        record.text("from", need=True),
                        record.text("relationType", need=True),
                        record.text("to", need=True),
                    )
                )
            case other:
                raise InvalidInput(f"{path}:{number}: type: entity or relation is wanted, not {_shown(other)}.")
    notes: list[str] = []
    for begins, _, _ in relations:
        if begins not in entities:
            notes.append(f"A relation begins at {begins!r}, which is no entity here; it is a lesson of its own.")
            entities[begins] = ("", [])
    now = time.time()
    lessons = tuple(_entity(name, *entities[name], relations, now) for name in entities)
    return lessons, tuple(notes)


def _entity(
    name: str, kind: str, observations: Sequence[str], relations: Sequence[tuple[str, str, str]], now: float
) -> Lesson:
    own = [(how, to) for begins, how, to in relations if begins == name]
    lines = [*observations, *(f"{name} {how} {to}." for how, to in own)]
    id = imported_id(MEMORY_SERVER, "", name)
    about = {"from": MEMORY_SERVER, "id": name, "relations": [{"to": to, "relationType": how} for how, to in own]}
    return Lesson(
        id,
        name,
        "\n".join(lines)
        or (f"{name} is of the kind {kind}." if kind else f"{name} is known, and nothing is said of it."),
        "success",
        experience=id,
        origin=Origin("imported"),
        created=now,
        kind=kind,
        context={"imported": about},
    )


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
