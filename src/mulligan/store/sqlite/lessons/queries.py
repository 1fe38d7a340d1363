"""Reads the lessons' tables. Each function works within one reading transaction."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from mulligan.core.errors import NotFound
from mulligan.core.lessons import Delta, Link, Receipt, Row, Selection, TaskOutcome, Version
from mulligan.core.records import Json, Lesson
from mulligan.store.sqlite.lessons.rows import missing, number, numbers, read, reader, tip, wall
from mulligan.store.sqlite.rows import LAST, json_of, object_of, readable, record_of, unreadable

log = logging.getLogger("mulligan")

_ROW = (
    "SELECT {indexable}, l.n, l.id, a.id, l.experience, l.state, l.success, l.confidence, l.created,"
    " coalesce(u.uses, 0), u.last_used, l.terms, v.vector, {query}, l.fact, l.project"
    " FROM {source} JOIN agents a ON a.n = l.agent"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN vectors v ON v.n = l.n AND l.embedder = :embedder {join}"
)
_NUMBERS = " AND ".join(
    f"typeof({column}) IN ('integer', 'real')" for column in ("l.success", "l.confidence", "l.created", "l.fact")
)
_INDEXABLE = (
    f"{_NUMBERS} AND typeof(l.terms) = 'blob' AND typeof(l.project) = 'text'"
    " AND typeof(coalesce(u.uses, 0)) = 'integer'"
    " AND typeof(coalesce(v.vector, x'')) = 'blob' AND typeof(coalesce({query}, x'')) = 'blob'"
)
"""Whether a row holds values that an index can take."""

_QUERIES = "LEFT JOIN query_vectors q ON q.n = l.n AND l.embedder = :embedder"


def delta(db: sqlite3.Connection, agent: int | None, embedder: str | None, since: int, queries: bool) -> Delta:
    maker = db.execute("SELECT n FROM embedders WHERE id = ?", (embedder,)).fetchone()
    values = {"agent": agent, "since": since, "embedder": maker[0] if maker else None}
    source, purged = "lessons l", []
    if since:
        changed = f"SELECT DISTINCT lesson FROM log c WHERE {wall(agent, 'c.agent')} AND seq > :since"
        gone = f"SELECT lesson FROM ({changed}) g WHERE NOT EXISTS (SELECT 1 FROM lessons WHERE n = g.lesson)"
        purged = [n for (n,) in db.execute(gone, values)]
        source = f"({changed}) c JOIN lessons l ON l.n = c.lesson"
    vector = "q.vector" if queries else "NULL"
    query = _ROW.format(
        source=source, query=vector, join=_QUERIES if queries else "", indexable=_INDEXABLE.format(query=vector)
    )
    rows: list[Row] = []
    for indexable, *row in db.execute(f"{query} WHERE {wall(agent)}", values):
        if indexable:
            rows.append(_row(*row))
        else:
            purged.append(row[0])
            log.warning("left out: %s", unreadable(f"What lesson {row[1]} is found by", "a value is of the wrong kind"))
    return Delta(tip(db), _generation(db, agent), rows, purged)


def _row(n: int, id: str, agent_id: str, experience: str, state: Any, success: int, *rest: Any) -> Row:
    row = Row(n, id, agent_id, experience, state, bool(success), *rest)
    return replace(row, fact=bool(row.fact))


def _generation(db: sqlite3.Connection, agent: int | None) -> int:
    """That of the counter for an agent without lessons, which starts with it."""
    found = db.execute("SELECT generation FROM agents WHERE n = ?", (agent,)).fetchone()
    return (found or db.execute("SELECT coalesce(max(generation), 0) FROM bank").fetchone())[0]


def resolve(db: sqlite3.Connection, agent: int | None, prefix: str) -> str:
    found = db.execute(
        f"SELECT DISTINCT l.id FROM lessons l WHERE l.id >= :id AND l.id < :last AND {wall(agent)} ORDER BY 1 LIMIT 6",
        {"id": prefix, "last": prefix + LAST, "agent": agent},
    ).fetchall()
    ids = [id for (id,) in found]
    if not ids:
        raise missing(prefix)
    if prefix in ids or len(ids) == 1:
        return ids[0]
    more = ", ..." if len(ids) > 5 else ""
    raise NotFound(f"{prefix!r} begins several lessons: {', '.join(ids[:5])}{more}. Give more of the id.")


def listed(db: sqlite3.Connection, agent: int | None, which: Selection) -> Sequence[Lesson]:
    """Selects numbers first, so that only the texts asked for are read."""
    chosen = [wall(agent), f"l.state IN ({', '.join(f':state{n}' for n in range(len(which.states)))})"]
    values: dict[str, Any] = {"agent": agent, **{f"state{n}": state for n, state in enumerate(which.states)}}
    if which.outcome:
        chosen.append("l.success = :success")
        values["success"] = int(which.outcome == "success")
    if which.nature:
        chosen.append("l.fact" if which.nature == "fact" else "NOT l.fact")
    for name, value in (("project", which.project), ("subject", which.subject)):
        if value is not None:
            chosen.append(f"l.{name} = :{name}")
            values[name] = value
    if which.prefix:
        chosen.append("l.id >= :first AND l.id < :last")
        values |= {"first": which.prefix, "last": which.prefix + LAST}
    if which.before is not None:
        chosen.append("l.n < :before")
        values["before"] = number(db, agent, which.before)
    query = f"SELECT l.n FROM lessons l WHERE {' AND '.join(chosen)} ORDER BY l.n DESC"
    fits = _filter(which)
    if fits is None:
        with closing(db.execute(f"{query} LIMIT -1 OFFSET :offset", {**values, "offset": which.offset})) as rows:
            return tuple(islice(readable(rows, lambda row: read(db, row[0])), which.limit))
    last = None if which.limit is None else which.offset + which.limit
    found: list[Lesson] = []
    for lesson in readable(db.execute(query, values), lambda row: read(db, row[0])):
        if fits(lesson):
            found.append(lesson)
        if last is not None and len(found) >= last:
            break
    return tuple(found[which.offset :])


def agents(db: sqlite3.Connection, prefix: str, limit: int) -> Sequence[str]:
    rows = db.execute(
        "SELECT a.id FROM agents a WHERE a.id <> '' AND a.id >= :first AND a.id < :last"
        " AND EXISTS (SELECT 1 FROM lessons l WHERE l.agent = a.n) ORDER BY a.id LIMIT :limit",
        {"first": prefix, "last": prefix + LAST, "limit": limit},
    )
    return tuple(id for (id,) in rows)


def _filter(which: Selection) -> Callable[[Lesson], bool] | None:
    """The part of the selection that needs the lesson's text; None if there is none."""
    if which.tag is None and not which.text:
        return None
    text = (which.text or "").casefold()

    def fits(lesson: Lesson) -> bool:
        if which.tag is not None and which.tag not in lesson.tags:
            return False
        return any(text in part.casefold() for part in (lesson.title, lesson.description, lesson.content, lesson.query))

    return fits


def unembedded(db: sqlite3.Connection, agent: int | None, embedder: str, limit: int) -> Sequence[Lesson]:
    """Each other embedder's lessons, and those without any, are in order in the index: the oldest of each suffice.

    Those that cannot be read are left out at the end, so `limit` of them hide those behind them.
    """
    others = db.execute("SELECT NULL UNION ALL SELECT n FROM embedders WHERE id <> ?", (embedder,)).fetchall()
    query = f"SELECT l.n FROM lessons l WHERE {wall(agent)} AND l.embedder IS :other AND l.state = 'active'"
    numbers = sorted(
        n
        for (other,) in others
        for (n,) in db.execute(f"{query} ORDER BY l.n LIMIT :limit", {"agent": agent, "other": other, "limit": limit})
    )
    return tuple(readable(numbers[:limit], lambda n: read(db, n)))


def get(db: sqlite3.Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    return tuple(read(db, number(db, agent, id)) for id in ids)


def there(db: sqlite3.Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    found = [n for id in ids for n in numbers(db, agent, id)]
    return tuple(readable(found, lambda n: read(db, n)))


def history(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[Version]:
    return versions(db, number(db, agent, id), id)


def versions(db: sqlite3.Connection, n: int, id: str) -> Sequence[Version]:
    """The history of the lesson number `n`, without lines that cannot be read."""
    rows = db.execute("SELECT at, change, detail, schema, record FROM log WHERE lesson = ? ORDER BY seq", (n,))
    return tuple(readable(rows, lambda row: _version(id, *row)))


def _version(id: str, at: float, change: Any, detail: str | None, schema: int, record: str | None) -> Version:
    what = f"A line ({change}) of the history of lesson {id}"
    if not isinstance(at, int | float):
        raise unreadable(what, f"its time is {at!r:.40}")
    lesson = None if record is None else record_of(Lesson, what, schema, record)
    return Version(at, change, lesson, None if detail is None else json_of(what, detail))


def as_of(db: sqlite3.Connection, agent: int | None, at: float) -> Sequence[Lesson]:
    """Replays the log up to then: the newest record of each lesson, and its later uses and embeddings."""
    newest: dict[int, int] = {}
    since: dict[int, list[tuple[str, float, str]]] = {}
    for seq, n, when, change, detail, whole in db.execute(
        f"SELECT c.seq, c.lesson, c.at, c.change, c.detail, c.record IS NOT NULL FROM log c"
        f" WHERE {wall(agent, 'c.agent')} AND c.at <= :at ORDER BY c.seq",
        {"agent": agent, "at": at},
    ):
        if whole:
            newest[n] = seq
            since.pop(n, None)
        elif change in ("used", "embedded"):
            since.setdefault(n, []).append((change, when, detail))
    return tuple(_active_then(db, newest, since))


def _active_then(
    db: sqlite3.Connection, newest: Mapping[int, int], since: Mapping[int, list[tuple[str, float, str]]]
) -> Iterator[Lesson]:
    def then(n: int) -> Lesson:
        schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (newest[n],)).fetchone()
        lesson = record_of(Lesson, f"Lesson number {n}", schema, record)
        for change, when, detail in since.get(n, ()):
            if change == "used":
                lesson = replace(lesson, uses=lesson.uses + 1, last_used=when)
            else:
                embedded = object_of(f"A line of the history of lesson {lesson.id}", detail)
                lesson = replace(lesson, embedder=embedded.get("embedder"))
        return lesson

    found = readable(sorted(newest, reverse=True), then)
    return (lesson for lesson in found if lesson.state == "active")


def links(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[Link]:
    rows = db.execute(
        "SELECT o.id, CAST(k.similarity AS REAL), k.embedder FROM ("
        "SELECT b AS other, similarity, embedder FROM links WHERE a = :n"
        " UNION ALL SELECT a, similarity, embedder FROM links WHERE b = :n) k JOIN lessons o ON o.n = k.other"
        " ORDER BY k.similarity DESC, o.n",
        {"n": number(db, agent, id)},
    )
    return tuple(Link(id, other, similarity, embedder) for other, similarity, embedder in rows)


def receipt(db: sqlite3.Connection, agent: int | None, id: str) -> Receipt:
    found = db.execute(
        f"SELECT schema, record, n FROM receipts r WHERE id = :id AND {wall(agent, 'r.agent')}",
        {"id": id, "agent": agent},
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no recall {id!r} in this bank.")
    return receipt_of(db, found[2], id, *found[:2])


def receipt_of(db: sqlite3.Connection, n: int, id: str, schema: int, record: str) -> Receipt:
    """The receipt number `n` with what came of its tasks by now, behind what it was imported with."""
    receipt = record_of(Receipt, f"The receipt {id}", schema, record)
    known = {outcome.work: outcome for outcome in receipt.outcomes}

    def outcome_of(row: tuple[str, str, str, str]) -> tuple[str, Any]:
        work, status, payload, result = row
        return work, json_of(f"Work {work}", result if status == "done" else payload or "null")

    for id, result in readable(db.execute(_OUTCOMES, (n,)), outcome_of):
        success = cast(dict[str, Json], result).get("success") if isinstance(result, dict) else None
        known[id] = TaskOutcome(id, success if isinstance(success, bool) else None)
    return replace(receipt, outcomes=tuple(known.values()))


_OUTCOMES = (
    "SELECT w.id, w.status, p.payload, w.result FROM outcomes o JOIN work w ON w.n = o.work"
    " LEFT JOIN payloads p ON p.n = w.n WHERE o.receipt = ? ORDER BY w.n"
)


_SUMS = {
    "links": "SELECT l.agent, count(*) FROM links k JOIN lessons l ON l.n = k.a",
    "recalls": "SELECT l.agent, count(*) FROM receipts l",
    "text": "SELECT l.agent, sum(length(r.record)) FROM lessons l JOIN log r ON r.seq = l.version",
    "history": "SELECT l.agent, sum(coalesce(length(l.record), 0) + coalesce(length(l.detail), 0)) FROM log l",
    "terms": "SELECT l.agent, sum(length(l.terms)) FROM lessons l",
    "vectors": "SELECT l.agent, sum(coalesce(length(v.vector), 0) + coalesce(length(q.vector), 0)) FROM lessons l"
    " LEFT JOIN vectors v ON v.n = l.n LEFT JOIN query_vectors q ON q.n = l.n",
}


def counts(db: sqlite3.Connection, agent_id: str | None) -> Mapping[str, Json]:
    agent = reader(db, agent_id)
    values = {"agent": agent}
    sums = {
        name: dict(db.execute(f"{query} WHERE {wall(agent)} GROUP BY l.agent", values).fetchall())
        for name, query in _SUMS.items()
    }
    states = f"SELECT l.agent, l.state, count(*) FROM lessons l WHERE {wall(agent)} GROUP BY l.agent, l.state"
    by_state: dict[int, dict[str, int]] = {}
    for whose, state, count in db.execute(states, values):
        by_state.setdefault(whose, {})[state] = count
    names = dict(db.execute(f"SELECT id, n FROM agents WHERE {wall(agent, 'n')} ORDER BY id", values).fetchall())
    if agent_id is not None:
        names = names or {agent_id: agent}
    return {
        name: {
            "lessons": by_state.get(n, {}),
            "links": sums["links"].get(n, 0),
            "recalls": sums["recalls"].get(n, 0),
            "bytes": {part: sums[part].get(n, 0) for part in ("text", "history", "terms", "vectors")},
        }
        for name, n in names.items()
    }
