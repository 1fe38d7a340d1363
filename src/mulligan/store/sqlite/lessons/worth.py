"""What lessons and banks are worth, in the file: outcomes are counted in the transaction that brings them.

An outcome counts once for a recall, the first that is told, and for the lessons of the agent that tells it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import NotFound, Unreadable
from mulligan.core.lessons import Receipt, Worth
from mulligan.core.records import Json
from mulligan.core.worth import Tally
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons import rows
from mulligan.store.sqlite.rows import encoded, object_of, readable, record_of

BANK = 0
"""In the column `lesson`: the row of the whole bank."""

_OPEN = (
    "SELECT r.id, r.schema, r.record FROM receipts r JOIN agents a ON a.n = :agent WHERE r.n = :n"
    " AND r.success IS NULL AND (r.agent = :agent OR (r.agent = 0 AND a.id = ''))"
)


def outcome_of(db: Connection, agent: int, id: str, success: bool) -> bool:
    """Tells how the task of this recall ended; the outcome that counts. Raises `NotFound`."""
    found = db.execute(
        "SELECT r.n FROM receipts r JOIN agents a ON a.n = :agent WHERE r.id = :id"
        " AND (r.agent = :agent OR (r.agent = 0 AND a.id = ''))",
        {"agent": agent, "id": id},
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no recall {id!r} in this bank.")
    settle(db, agent, found[0], success)
    return bool(db.execute("SELECT success FROM receipts WHERE n = ?", found).fetchone()[0])


def followed(db: Connection, work: int) -> None:
    """Counts the outcome that this work tells, if it is known by now, for the recalls that it follows."""
    query = "SELECT w.agent, o.receipt FROM outcomes o JOIN work w ON w.n = o.work WHERE w.n = ?"
    for agent, receipt in db.execute(query, (work,)).fetchall():
        with suppress(Unreadable):
            settle(db, agent, receipt)


def settle(db: Connection, agent: int, n: int, success: bool | None = None) -> None:
    """Counts the outcome of the recall number `n`, unless one was counted. None: the first that its work tells."""
    found = db.execute(_OPEN, {"agent": agent, "n": n}).fetchone()
    if found is None:
        return
    receipt = rows.receipt_of(db, n, *found)
    if success is None:
        success = next((one.success for one in receipt.outcomes if one.success is not None), None)
    if success is None:
        return
    db.execute("UPDATE receipts SET success = ? WHERE n = ?", (success, n))
    bank, _ = _tally(db, agent, BANK)
    bank = bank.with_outcome(success)
    for id in (*receipt.lessons, *receipt.withheld):
        share, withheld = receipt.drawn.get(id), id in receipt.withheld
        for lesson in rows.numbers(db, agent, id):
            tally, since = _tally(db, agent, lesson)
            if receipt.at < since:
                continue
            tally = tally.with_outcome(success)
            if share is not None:
                tally = tally.with_draw(success, withheld=withheld, share=share)
                bank = bank.with_draw(success, withheld=withheld, share=share, halflife=None)
            _keep(db, agent, lesson, tally)
            if tally.harmful:
                with suppress(Unreadable):
                    _retire(db, agent, lesson, tally)
    _keep(db, agent, BANK, bank)


def begin_anew(db: Connection, agent: int, lesson: int, at: float) -> None:
    """Counts a lesson from zero: it says something else now, or somebody wants it tried again."""
    _keep(db, agent, lesson, Tally())
    db.execute("UPDATE worth SET since = ?, told = TRUE WHERE lesson = ? AND agent = ?", (at, lesson, agent))


def listed(db: Connection, agent: int | None, of: Sequence[str] | None = None) -> Sequence[Worth]:
    chosen = [] if of is None else [n for id in of for n in rows.numbers(db, agent, id)]
    only = "" if of is None else f" AND w.lesson IN ({', '.join(map(str, [BANK, *chosen]))})"
    query = (
        "SELECT w.lesson, a.id, l.id, l.state, w.since, w.schema, w.record FROM worth w JOIN agents a ON a.n = w.agent"
        f" LEFT JOIN lessons l ON l.n = w.lesson WHERE {rows.owned(agent, 'w.agent')}{only} ORDER BY a.id, w.lesson"
    )
    found = db.execute(query, {"agent": agent}).fetchall()
    return tuple(
        readable(
            [row for row in found if row[0] == BANK or row[2] is not None],
            lambda row: Worth(
                row[1], row[2] or "", row[3] or "", record_of(Tally, "What a lesson is worth", *row[5:]), row[4]
            ),
        )
    )


def relevances(db: Connection, agent: int | None, limit: int) -> Sequence[tuple[float, bool]]:
    query = (
        f"SELECT schema, record, success FROM receipts r WHERE {rows.owned(agent, 'r.agent')} AND success IS NOT NULL"
        " ORDER BY n DESC LIMIT :limit"
    )
    found = db.execute(query, {"agent": agent, "limit": limit}).fetchall()
    recalls = readable(found, lambda row: (record_of(Receipt, "A receipt", *row[:2]), bool(row[2])))
    return tuple((score, success) for receipt, success in recalls for score in receipt.lessons.values())


def put(db: Connection, agent: int, lesson: int, counted: Worth) -> None:
    """Stores what was counted elsewhere of a lesson, unless something is counted of it here."""
    if not db.execute("SELECT 1 FROM worth WHERE lesson = ? AND agent = ?", (lesson, agent)).fetchone():
        _keep(db, agent, lesson, counted.tally)
        db.execute("UPDATE worth SET since = ? WHERE lesson = ? AND agent = ?", (counted.since, lesson, agent))


def untold(db: Connection, agent: int | None) -> Mapping[str, str]:
    """The lessons that were retired for harm since this was asked last, with the reason."""
    found = db.execute(
        "SELECT w.lesson, l.id, v.detail FROM worth w JOIN lessons l ON l.n = w.lesson JOIN log v ON v.seq = l.version"
        f" WHERE NOT w.told AND {rows.owned(agent, 'w.agent')} AND l.state = 'retired'",
        {"agent": agent},
    ).fetchall()
    return dict(
        readable(
            found, lambda row: (row[1], str(object_of("A line of a history", row[2] or "{}").get("why", "it did harm")))
        )
    )


def tell(db: Connection, agent: int | None) -> Mapping[str, str]:
    """As `untold`, and from now on told."""
    found = untold(db, agent)
    db.execute(f"UPDATE worth SET told = TRUE WHERE NOT told AND {rows.owned(agent, 'agent')}", {"agent": agent})
    return found


def _tally(db: Connection, agent: int, lesson: int) -> tuple[Tally, float]:
    """What is counted of it, and since when. What cannot be read begins anew."""
    found = db.execute(
        "SELECT schema, record, since FROM worth WHERE lesson = ? AND agent = ?", (lesson, agent)
    ).fetchone()
    if found is not None:
        with suppress(Unreadable):
            return record_of(Tally, "What a lesson is worth", *found[:2]), found[2]
    return Tally(), 0.0


def _keep(db: Connection, agent: int, lesson: int, tally: Tally) -> None:
    text, positive = encoded(tally, "What a lesson is worth"), tally.uplift.positive if tally.uplift else None
    db.execute(
        "INSERT INTO worth (lesson, agent, schema, record, positive) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (lesson, agent) DO UPDATE SET schema = excluded.schema, record = excluded.record,"
        " positive = excluded.positive",
        (lesson, agent, SCHEMA, text, positive),
    )


def _retire(db: Connection, agent: int, n: int, tally: Tally) -> None:
    """Retires a lesson that does harm, unless a person pinned it; its history says why, with the figures."""
    lesson, uplift = rows.read(db, n), tally.uplift
    if lesson.state != "active" or lesson.pinned or uplift is None:
        return
    detail: Json = {"why": f"it did harm: {tally}", "uplift": to_json(uplift)}
    rows.update(db, agent, n, replace(lesson, state="retired"), "retired", detail)
    db.execute("UPDATE worth SET told = FALSE WHERE lesson = ? AND agent = ?", (n, agent))
