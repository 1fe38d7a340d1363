"""Counts in the file what lessons and banks are worth, in the transaction that stores an outcome.

Only the first outcome of a recall counts, and only for lessons of the agent that reports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import Unreadable, no_recall
from mulligan.core.lesson_history import Receipt, Worth
from mulligan.core.records import Json
from mulligan.core.worth import Tally
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons import rows
from mulligan.store.sqlite.lessons.receipts import receipt_of
from mulligan.store.sqlite.rows import encoded, object_of, readable, record_of

BANK = 0
"""The value of the column `lesson` in the row of the whole bank."""

_UNSETTLED = (
    "SELECT r.id, r.schema, r.record FROM receipts r JOIN agents a ON a.n = :agent WHERE r.n = :n"
    " AND r.success IS NULL AND (r.agent = :agent OR (r.agent = 0 AND a.id = ''))"
)


def outcome_of(db: Connection, agent: int, id: str, success: bool) -> bool:
    """Stores how the task of this recall ended, and returns the outcome that counts. Raises `NotFound`."""
    row = db.execute(
        "SELECT r.n FROM receipts r JOIN agents a ON a.n = :agent WHERE r.id = :id"
        " AND (r.agent = :agent OR (r.agent = 0 AND a.id = ''))",
        {"agent": agent, "id": id},
    ).fetchone()
    if row is None:
        raise no_recall(id)
    settle(db, agent, row[0], success)
    return bool(db.execute("SELECT success FROM receipts WHERE n = ?", row).fetchone()[0])


def settle_recalls(db: Connection, work: int) -> None:
    """Counts the outcome of this work, if it is known by now, for the recalls that the work follows."""
    query = "SELECT w.agent, o.receipt FROM outcomes o JOIN work w ON w.n = o.work WHERE w.n = ?"
    for agent, receipt in db.execute(query, (work,)).fetchall():
        with suppress(Unreadable):
            settle(db, agent, receipt)


def settle(db: Connection, agent: int, n: int, success: bool | None = None) -> None:
    """Counts the outcome of recall number `n`, unless it has one. success: None is the first outcome of its work."""
    row = db.execute(_UNSETTLED, {"agent": agent, "n": n}).fetchone()
    if row is None:
        return
    receipt = receipt_of(db, n, *row)
    if success is None:
        success = next((outcome.success for outcome in receipt.outcomes if outcome.success is not None), None)
    if success is None:
        return
    db.execute("UPDATE receipts SET success = ? WHERE n = ?", (success, n))
    bank, _ = _tally(db, agent, BANK)
    bank = bank.with_outcome(success)
    for id in (*receipt.lessons, *receipt.withheld):
        lesson = rows.find_number(db, agent, id)
        if lesson is None:
            continue
        tally, since = _tally(db, agent, lesson)
        if receipt.at < since:
            continue
        tally = tally.with_outcome(success)
        share, withheld = receipt.drawn.get(id), id in receipt.withheld
        if share is not None:
            tally = tally.with_draw(success, withheld=withheld, share=share)
            bank = bank.with_draw(success, withheld=withheld, share=share, halflife=None)
        _store(db, agent, lesson, tally)
        if tally.harmful:
            with suppress(Unreadable):
                _retire(db, agent, lesson, tally)
    _store(db, agent, BANK, bank)


def reset(db: Connection, agent: int, lesson: int, at: float) -> None:
    """Counts a lesson from zero, because its text has changed or somebody wants it tried again."""
    _store(db, agent, lesson, Tally())
    db.execute("UPDATE worth SET since = ?, told = TRUE WHERE lesson = ? AND agent = ?", (at, lesson, agent))


def listed(db: Connection, agent: int | None, of: Sequence[str] | None = None) -> Sequence[Worth]:
    """What each bank and each lesson is worth. of: only these lessons, and the banks."""
    condition = rows.owned(agent, "w.agent")
    if of is not None:
        numbers = [rows.find_number(db, agent, id) for id in of]
        chosen = ", ".join(str(number) for number in [BANK, *numbers] if number is not None)
        condition += f" AND w.lesson IN ({chosen})"
    query = (
        "SELECT a.id, l.id, l.state, w.schema, w.record, w.since FROM worth w JOIN agents a ON a.n = w.agent"
        f" LEFT JOIN lessons l ON l.n = w.lesson WHERE {condition} AND (w.lesson = {BANK} OR l.id IS NOT NULL)"
        " ORDER BY a.id, w.lesson"
    )

    def worth_of(row: tuple[Any, ...]) -> Worth:
        agent_id, id, state, schema, record, since = row
        return Worth(agent_id, id or "", state or "", record_of(Tally, "What a lesson is worth", schema, record), since)

    return tuple(readable(db.execute(query, {"agent": agent}).fetchall(), worth_of))


def relevances(db: Connection, agent: int | None, limit: int) -> Sequence[tuple[float, bool]]:
    """The score of each lesson in the newest recalls with an outcome, and the outcome."""
    query = (
        f"SELECT schema, record, success FROM receipts r WHERE {rows.owned(agent, 'r.agent')} AND success IS NOT NULL"
        " ORDER BY n DESC LIMIT :limit"
    )
    found = db.execute(query, {"agent": agent, "limit": limit}).fetchall()
    recalls = readable(found, lambda row: (record_of(Receipt, "A receipt", *row[:2]), bool(row[2])))
    return tuple((score, success) for receipt, success in recalls for score in receipt.lessons.values())


def put(db: Connection, agent: int, lesson: int, counted: Worth) -> None:
    """Stores what another store has counted for a lesson, unless this one has counts for it."""
    if not db.execute("SELECT 1 FROM worth WHERE lesson = ? AND agent = ?", (lesson, agent)).fetchone():
        _store(db, agent, lesson, counted.tally)
        db.execute("UPDATE worth SET since = ? WHERE lesson = ? AND agent = ?", (counted.since, lesson, agent))


def retired_for_harm(db: Connection, agent: int | None) -> Mapping[str, str]:
    """The lessons retired for harm that were not reported yet, with the reasons."""
    lines = db.execute(
        "SELECT l.id, v.detail FROM worth w JOIN lessons l ON l.n = w.lesson JOIN log v ON v.seq = l.version"
        f" WHERE NOT w.told AND {rows.owned(agent, 'w.agent')} AND l.state = 'retired'",
        {"agent": agent},
    ).fetchall()

    def reason(row: tuple[str, str | None]) -> tuple[str, str]:
        id, detail = row
        return id, str(object_of("A line of a history", detail or "{}").get("why", "it did harm"))

    return dict(readable(lines, reason))


def report(db: Connection, agent: int | None) -> Mapping[str, str]:
    """Returns the lessons of `retired_for_harm`, and marks them as reported."""
    reasons = retired_for_harm(db, agent)
    db.execute(f"UPDATE worth SET told = TRUE WHERE NOT told AND {rows.owned(agent, 'agent')}", {"agent": agent})
    return reasons


def _tally(db: Connection, agent: int, lesson: int) -> tuple[Tally, float]:
    """The counts of a lesson, and since when it is counted. Unreadable counts start again from zero."""
    query = "SELECT schema, record, since FROM worth WHERE lesson = ? AND agent = ?"
    for schema, record, since in db.execute(query, (lesson, agent)).fetchall():
        with suppress(Unreadable):
            return record_of(Tally, "What a lesson is worth", schema, record), since
    return Tally(), 0.0


def _store(db: Connection, agent: int, lesson: int, tally: Tally) -> None:
    text = encoded(tally, "What a lesson is worth")
    positive = tally.uplift.positive if tally.uplift else None
    db.execute(
        "INSERT INTO worth (lesson, agent, schema, record, positive) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (lesson, agent) DO UPDATE SET schema = excluded.schema, record = excluded.record,"
        " positive = excluded.positive",
        (lesson, agent, SCHEMA, text, positive),
    )


def _retire(db: Connection, agent: int, n: int, tally: Tally) -> None:
    """Retires a lesson that does harm, unless a person pinned it. Its history gives the reason and the figures."""
    lesson, uplift = rows.read(db, n), tally.uplift
    if lesson.state != "active" or lesson.pinned or uplift is None:
        return
    detail: Json = {"why": f"it did harm: {tally}", "uplift": to_json(uplift)}
    rows.update(db, agent, n, replace(lesson, state="retired"), "retired", detail)
    db.execute("UPDATE worth SET told = FALSE WHERE lesson = ? AND agent = ?", (n, agent))
