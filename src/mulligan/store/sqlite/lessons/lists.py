"""Finds lessons in the file: by selection, by id, by links. Counts what a bank holds."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from mulligan.core.codec import json_text
from mulligan.core.errors import AmbiguousId
from mulligan.core.lesson_history import Link
from mulligan.core.lessons import Order, Selection, fields_with
from mulligan.core.records import Json, Lesson, Nature, same_kind
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons.rows import (
    LESSON_QUERY,
    find_agent,
    find_number,
    lesson_from_row,
    lesson_number,
    lessons_with_ids,
    no_such_lesson,
    owned,
    read,
)
from mulligan.store.sqlite.rows import LAST, readable

_NATURES: Mapping[Nature, str] = {
    "fact": "l.fact",
    "query_pair": "l.pair",
    "strategy": "NOT l.fact AND NOT l.pair",
}


def resolve(db: Connection, agent: int | None, prefix: str) -> str:
    """The id of the one lesson whose id is, or begins with, `prefix`. Raises `NotFound`, `AmbiguousId`."""
    if not prefix:
        raise no_such_lesson(prefix)
    if find_number(db, agent, prefix) is not None:
        return prefix
    query = f"SELECT DISTINCT l.id FROM lessons l WHERE l.id >= :id AND l.id < :last AND {owned(agent)}"
    values = {"id": prefix, "last": prefix + LAST, "agent": agent}
    ids = [id for (id,) in db.execute(f"{query} ORDER BY 1 LIMIT 6", values)]
    if not ids:
        raise no_such_lesson(prefix)
    if len(ids) == 1:
        return ids[0]
    more = ", ..." if len(ids) > 5 else ""
    raise AmbiguousId(f"{prefix!r} matches several lessons: {', '.join(ids[:5])}{more}. Use more characters of the id.")


_PLAIN = re.compile(r"[ !#-\[\]-~]+")
"""A text that the JSON of a record holds unchanged: ASCII without quotes, backslashes and line ends."""
_MAY_CONTAIN = "(lower(r.record) LIKE lower(:text) ESCAPE '~' OR r.record LIKE :escaped ESCAPE '~')"
"""Whether a record may contain a plain text. Any record with escaped letters may: some fold to ASCII letters."""
_JOIN_WORTH = "LEFT JOIN worth h ON h.lesson = l.n AND h.agent = l.agent"
_ORDERS: Mapping[Order, tuple[str, str]] = {
    "newest": ("", ""),
    "uses": ("LEFT JOIN uses u ON u.n = l.n", "coalesce(u.uses, 0) DESC, "),
    "worth": (_JOIN_WORTH, "coalesce(h.positive, -1.0) DESC, "),
    "harm": (_JOIN_WORTH, "coalesce(h.positive, 2.0), "),
}
"""For each order of a list, the tables to join, and the columns to sort by before the lesson's number."""


def listed(db: Connection, agent: int | None, selection: Selection) -> Sequence[Lesson]:
    """The lessons of the selection. The query returns only numbers, so that only the lessons wanted are decoded."""
    conditions, values = _conditions(db, agent, selection)
    source = "lessons l"
    join, columns = _ORDERS[selection.order]
    if selection.keys is not None:
        # CROSS JOIN makes SQLite start with the keys, not with all lessons of the agent.
        keyed = "SELECT DISTINCT lesson FROM keys WHERE key IN (SELECT value FROM json_each(:keys))"
        source = f"({keyed}) k CROSS JOIN lessons l"
        conditions.append("l.n = k.lesson")
        values["keys"] = json_text(list(selection.keys))
    if selection.text and _PLAIN.fullmatch(selection.text):
        join += " JOIN log r ON r.seq = l.version"
        conditions.append(_MAY_CONTAIN)
        values["text"] = f"%{re.sub('[~%_]', lambda special: f'~{special[0]}', selection.text)}%"
        values["escaped"] = "%\\u%"
    query = f"SELECT l.n FROM {source} {join} WHERE {' AND '.join(conditions)} ORDER BY {columns}l.n DESC"
    fits = _text_filter(selection)
    start, limit = selection.offset, selection.limit
    if fits is None:  # the database can skip the lessons before the offset
        query += f" LIMIT {1 << 60} OFFSET :offset"
        values["offset"], start = start, 0
    stop = None if limit is None else start + limit
    with closing(db.execute(query, values)) as numbers:
        lessons = readable(numbers, lambda row: read(db, row[0]))
        return tuple(islice(filter(fits, lessons) if fits else lessons, start, stop))


def _conditions(db: Connection, agent: int | None, selection: Selection) -> tuple[list[str], dict[str, Any]]:
    """SQL conditions on the columns of lessons, and the values of their parameters."""
    states = {f"state{position}": state for position, state in enumerate(selection.states)}
    names = ", ".join(f":{name}" for name in states)
    conditions = [owned(agent), f"l.state IN ({names or 'NULL'})"]
    values: dict[str, Any] = {"agent": agent, **states}
    if selection.outcome:
        conditions.append("l.success = :success")
        values["success"] = selection.outcome == "success"
    if selection.nature:
        conditions.append(_NATURES[selection.nature])
    for name in fields_with("column"):
        if name != "kind" and getattr(selection, name, None) is not None:
            conditions.append(f"l.{name} = :{name}")
            values[name] = getattr(selection, name)
    if selection.kind is not None:
        kinds = db.execute(f"SELECT DISTINCT l.kind FROM lessons l WHERE {owned(agent)}", {"agent": agent})
        values["kinds"] = json_text([kind for (kind,) in kinds if same_kind(selection.kind, kind)])
        conditions.append("l.kind IN (SELECT value FROM json_each(:kinds))")
    if selection.expired is not None:
        conditions.append(f"coalesce(l.expires <= :now, FALSE) = {selection.expired}")
        values["now"] = time.time()
    if selection.prefix:
        conditions.append("l.id >= :first AND l.id < :last")
        values |= {"first": selection.prefix, "last": selection.prefix + LAST}
    if selection.before is not None:
        conditions.append("l.n < :before")
        values["before"] = lesson_number(db, agent, selection.before)
    return conditions, values


def agents(db: Connection, prefix: str, limit: int) -> Sequence[str]:
    """The ids of agents that have lessons, except the unnamed one."""
    rows = db.execute(
        "SELECT a.id FROM agents a WHERE a.id <> '' AND a.id >= :first AND a.id < :last"
        " AND EXISTS (SELECT 1 FROM lessons l WHERE l.agent = a.n) ORDER BY a.id LIMIT :limit",
        {"first": prefix, "last": prefix + LAST, "limit": limit},
    )
    return tuple(id for (id,) in rows)


def _text_filter(selection: Selection) -> Callable[[Lesson], bool] | None:
    """The part of the selection that needs the lesson's record; None if there is none."""
    if selection.tag is None and not selection.text:
        return None
    text = (selection.text or "").casefold()

    def fits(lesson: Lesson) -> bool:
        if selection.tag is not None and selection.tag not in lesson.tags:
            return False
        return any(text in part.casefold() for part in (lesson.title, lesson.description, lesson.content, lesson.query))

    return fits


def unembedded(db: Connection, agent: int | None, embedder: str, limit: int) -> Sequence[Lesson]:
    """The oldest active lessons that this embedder has not embedded.

    The index holds the lessons of each embedder in order, and those without one, so the oldest of each are enough.
    Unreadable lessons are left out at the end: if there are `limit` of them, later lessons are not found.
    """
    others = [n for (n,) in db.execute("SELECT n FROM embedders WHERE id <> ?", (embedder,)).fetchall()]
    query = f"SELECT l.n FROM lessons l WHERE {owned(agent)} AND l.state = 'active' AND l.embedder"
    numbers: list[int] = []
    for other in (None, *others):
        oldest = db.execute(
            f"{query} {'IS NULL' if other is None else '= :other'} ORDER BY l.n LIMIT :limit",
            {"agent": agent, "other": other, "limit": limit},
        )
        numbers += [n for (n,) in oldest]
    return tuple(readable(sorted(numbers)[:limit], lambda n: read(db, n)))


def get(db: Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    return tuple(read(db, lesson_number(db, agent, id)) for id in ids)


def existing(db: Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    """The lessons with these ids, without those that are missing or cannot be read."""
    query = LESSON_QUERY.format(source=lessons_with_ids(agent))
    rows = {row[0]: row for row in db.execute(query, {"ids": json_text(list(ids)), "agent": agent})}
    return tuple(readable([rows[id] for id in ids if id in rows], lesson_from_row))


def links(db: Connection, agent: int | None, id: str) -> Sequence[Link]:
    rows = db.execute(
        "SELECT o.id, CAST(k.similarity AS DOUBLE PRECISION), k.embedder FROM ("
        "SELECT b AS other, similarity, embedder FROM links WHERE a = :n"
        " UNION ALL SELECT a, similarity, embedder FROM links WHERE b = :n) k JOIN lessons o ON o.n = k.other"
        " ORDER BY k.similarity DESC, o.n",
        {"n": lesson_number(db, agent, id)},
    )
    return tuple(Link(id, other, similarity, embedder) for other, similarity, embedder in rows)


_SUMS = {
    "links": "SELECT l.agent, count(*) FROM links k JOIN lessons l ON l.n = k.a",
    "recalls": "SELECT l.agent, count(*) FROM receipts l",
    "text": "SELECT l.agent, sum(length(r.record)) FROM lessons l JOIN log r ON r.seq = l.version",
    "history": "SELECT l.agent, sum(coalesce(length(l.record), 0) + coalesce(length(l.detail), 0)) FROM log l",
    "terms": "SELECT l.agent, sum(length(l.terms)) FROM lessons l",
    "vectors": "SELECT l.agent, sum(coalesce(length(v.vector), 0) + coalesce(length(q.vector), 0)) FROM lessons l"
    " LEFT JOIN vectors v ON v.n = l.n LEFT JOIN query_vectors q ON q.n = l.n",
}
"""What is counted for each agent; of "text" to "vectors", the bytes."""


def counts(db: Connection, agent_id: str | None) -> Mapping[str, Json]:
    """How many lessons, links and recalls each agent has, and how many bytes its lessons take."""
    agent = find_agent(db, agent_id)
    values = {"agent": agent}
    sums = {
        name: dict(db.execute(f"{query} WHERE {owned(agent)} GROUP BY l.agent", values).fetchall())
        for name, query in _SUMS.items()
    }
    states = f"SELECT l.agent, l.state, count(*) FROM lessons l WHERE {owned(agent)} GROUP BY l.agent, l.state"
    lessons: dict[int, dict[str, int]] = {}
    for owner, state, count in db.execute(states, values):
        lessons.setdefault(owner, {})[state] = count
    agents = dict(db.execute(f"SELECT id, n FROM agents WHERE {owned(agent, 'n')} ORDER BY id", values).fetchall())
    if agent_id is not None:
        agents = agents or {agent_id: agent}
    return {
        id: {
            "lessons": lessons.get(n, {}),
            "links": sums["links"].get(n, 0),
            "recalls": sums["recalls"].get(n, 0),
            "bytes": {part: sums[part].get(n, 0) for part in ("text", "history", "terms", "vectors")},
        }
        for id, n in agents.items()
    }
