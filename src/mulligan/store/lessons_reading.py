"""What is asked of the lessons' tables. Each function is work within one reading transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.core.codec import from_json
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.lessons import Delta, Link, Receipt, Row, Selection, TaskOutcome, Version
from mulligan.core.records import Json, Lesson
from mulligan.store.lessons_rows import lesson_of, missing, number, read, reader, tip, wall

_LAST = chr(0x10FFFF)
_ROW = (
    "SELECT l.n, l.id, a.id, l.experience, l.state, l.success, l.confidence, l.created, coalesce(u.uses, 0),"
    " u.last_used, l.terms, v.vector, {query} FROM {source} JOIN agents a ON a.n = l.agent"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN vectors v ON v.n = l.n AND l.embedder = :embedder {join}"
)
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
    query = _ROW.format(source=source, query="q.vector" if queries else "NULL", join=_QUERIES if queries else "")
    rows = db.execute(f"{query} WHERE {wall(agent)}", values)
    return Delta(tip(db), _generation(db, agent), [_row(*row) for row in rows], purged)


def _row(n: int, id: str, agent_id: str, experience: str, state: Any, success: int, *rest: Any) -> Row:
    return Row(n, id, agent_id, experience, state, bool(success), *rest)


def _generation(db: sqlite3.Connection, agent: int | None) -> int:
    """An agent that has nothing here takes the counter's: it will start with that, and differ from what it was."""
    found = db.execute("SELECT generation FROM agents WHERE n = ?", (agent,)).fetchone()
    return (found or db.execute("SELECT generation FROM bank").fetchone())[0]


def resolve(db: sqlite3.Connection, agent: int | None, prefix: str) -> str:
    found = db.execute(
        f"SELECT DISTINCT l.id FROM lessons l WHERE l.id >= :id AND l.id < :last AND {wall(agent)} ORDER BY 1 LIMIT 6",
        {"id": prefix, "last": prefix + _LAST, "agent": agent},
    ).fetchall()
    ids = [id for (id,) in found]
    if not ids:
        raise missing(prefix)
    if prefix in ids or len(ids) == 1:
        return ids[0]
    more = ", ..." if len(ids) > 5 else ""
    raise NotFound(f"{prefix!r} begins several lessons: {', '.join(ids[:5])}{more}. Give more of the id.")


def listed(db: sqlite3.Connection, agent: int | None, which: Selection) -> Sequence[Lesson]:
    """By numbers first, so that no text is read that is not wanted."""
    chosen = [wall(agent), f"l.state IN ({', '.join(f':state{n}' for n in range(len(which.states)))})"]
    values: dict[str, Any] = {"agent": agent, **{f"state{n}": state for n, state in enumerate(which.states)}}
    if which.outcome:
        chosen.append("l.success = :success")
        values["success"] = int(which.outcome == "success")
    if which.prefix:
        chosen.append("l.id >= :first AND l.id < :last")
        values |= {"first": which.prefix, "last": which.prefix + _LAST}
    if which.before is not None:
        chosen.append("l.n < :before")
        values["before"] = number(db, agent, which.before)
    query = f"SELECT l.n FROM lessons l WHERE {' AND '.join(chosen)} ORDER BY l.n DESC"
    fits = _fits(which)
    if fits is None:
        values |= {"limit": -1 if which.limit is None else which.limit, "offset": which.offset}
        return tuple(read(db, n) for (n,) in db.execute(f"{query} LIMIT :limit OFFSET :offset", values).fetchall())
    last = None if which.limit is None else which.offset + which.limit
    found: list[Lesson] = []
    for (n,) in db.execute(query, values):
        if last is not None and len(found) >= last:
            break
        lesson = read(db, n)
        if fits(lesson):
            found.append(lesson)
    return tuple(found[which.offset :])


def agents(db: sqlite3.Connection, prefix: str, limit: int) -> Sequence[str]:
    rows = db.execute(
        "SELECT a.id FROM agents a WHERE a.id <> '' AND a.id >= :first AND a.id < :last"
        " AND EXISTS (SELECT 1 FROM lessons l WHERE l.agent = a.n) ORDER BY a.id LIMIT :limit",
        {"first": prefix, "last": prefix + _LAST, "limit": limit},
    )
    return tuple(id for (id,) in rows)


def _fits(which: Selection) -> Callable[[Lesson], bool] | None:
    """What the lesson itself has to be asked; None: nothing."""
    if which.tag is None and not which.text:
        return None
    text = (which.text or "").casefold()

    def fits(lesson: Lesson) -> bool:
        if which.tag is not None and which.tag not in lesson.tags:
            return False
        return any(text in part.casefold() for part in (lesson.title, lesson.description, lesson.content, lesson.query))

    return fits


def unembedded(db: sqlite3.Connection, agent: int | None, embedder: str, limit: int) -> Sequence[Lesson]:
    """Each other embedder's lessons, and those without any, are in order in the index: the oldest of each suffice."""
    others = db.execute("SELECT NULL UNION ALL SELECT n FROM embedders WHERE id <> ?", (embedder,)).fetchall()
    query = f"SELECT l.n FROM lessons l WHERE {wall(agent)} AND l.embedder IS :other AND l.state = 'active'"
    numbers = sorted(
        n
        for (other,) in others
        for (n,) in db.execute(f"{query} ORDER BY l.n LIMIT :limit", {"agent": agent, "other": other, "limit": limit})
    )
    return tuple(read(db, n) for n in numbers[:limit])


def history(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[Version]:
    rows = db.execute(
        "SELECT at, change, detail, schema, record FROM log WHERE lesson = ? ORDER BY seq", (number(db, agent, id),)
    )
    return tuple(
        Version(
            at,
            change,
            None if record is None else lesson_of(id, schema, record),
            None if detail is None else json.loads(detail),
        )
        for at, change, detail, schema, record in rows
    )


def as_of(db: sqlite3.Connection, agent: int | None, at: float) -> Sequence[Lesson]:
    """The log told again up to then: the newest record of each lesson, and what happened to it without a new one."""
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
    for n in sorted(newest, reverse=True):
        schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (newest[n],)).fetchone()
        lesson = lesson_of(str(n), schema, record)
        if lesson.state != "active":
            continue
        for change, when, detail in since.get(n, ()):
            if change == "used":
                lesson = replace(lesson, uses=lesson.uses + 1, last_used=when)
            else:
                lesson = replace(lesson, embedder=json.loads(detail)["embedder"])
        yield lesson


def links(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[Link]:
    rows = db.execute(
        "SELECT o.id, k.similarity, k.embedder FROM (SELECT b AS other, similarity, embedder FROM links WHERE a = :n"
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
    try:
        return with_outcomes(db, found[2], from_json(Receipt, json.loads(found[1]), found[0]))
    except (InvalidInput, ValueError) as error:
        raise StoreError(f"The receipt {id} cannot be read: {error}") from error


def with_outcomes(db: sqlite3.Connection, n: int, receipt: Receipt) -> Receipt:
    """The receipt number `n` with what came of its tasks by now, behind what it was imported with."""
    known = {outcome.work: outcome for outcome in receipt.outcomes}
    for id, status, payload, result in db.execute(_OUTCOMES, (n,)):
        told: Any = json.loads(result if status == "done" else payload or "null")
        success = cast(dict[str, Json], told).get("success") if isinstance(told, dict) else None
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
