"""Receipts of recalls and accounts of episodes in the file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.errors import no_recall
from mulligan.core.lesson_history import Account, Receipt, TaskOutcome
from mulligan.core.records import Json
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons.rows import INSERT_LINE, lessons_with_ids, log_line, no_such_lesson, owned
from mulligan.store.sqlite.rows import json_of, readable, record_of

_COUNT_USE = (
    "INSERT INTO uses (n, uses, last_used) VALUES (?, 1, ?)"
    " ON CONFLICT (n) DO UPDATE SET uses = uses.uses + 1, last_used = excluded.last_used"
)
_RESULTS = (
    "SELECT w.id, CASE w.status WHEN 'done' THEN w.result ELSE coalesce(p.payload, 'null') END"
    " FROM outcomes o JOIN work w ON w.n = o.work LEFT JOIN payloads p ON p.n = w.n WHERE o.receipt = ? ORDER BY w.n"
)


def count_uses(db: Connection, agent: int | None, receipt: Receipt) -> None:
    """Adds a line "used" or "withheld" to the history of each lesson of the receipt. Raises `NotFound`."""
    scores = {**receipt.lessons, **receipt.withheld}
    query = f"SELECT l.id, l.n, l.agent FROM {lessons_with_ids(agent)}"
    rows = {id: row for id, *row in db.execute(query, {"ids": json_text(list(scores)), "agent": agent})}
    lines, uses, now = list[tuple[Any, ...]](), list[tuple[int, float]](), time.time()
    for id, score in scores.items():
        if id not in rows:
            raise no_such_lesson(id)
        n, owner = rows[id]
        change = "withheld" if id in receipt.withheld else "used"
        lines.append(log_line(owner, n, change, None, {"receipt": receipt.id, "score": score}, now))
        if change == "used":
            uses.append((n, now))
    db.executemany(INSERT_LINE, lines)
    db.executemany(_COUNT_USE, uses)


def receipt(db: Connection, agent: int | None, id: str) -> Receipt:
    """The receipt with this id, with the outcomes so far. Raises `NotFound`, `Unreadable`."""
    row = db.execute(
        f"SELECT n, schema, record FROM receipts r WHERE id = :id AND {owned(agent, 'r.agent')}",
        {"id": id, "agent": agent},
    ).fetchone()
    if row is None:
        raise no_recall(id)
    n, schema, record = row
    return receipt_of(db, n, id, schema, record)


def receipt_of(db: Connection, n: int, id: str, schema: int, record: str) -> Receipt:
    """Decodes receipt number `n`, and adds the outcomes of its tasks so far to those that it was imported with."""
    receipt = record_of(Receipt, f"The receipt {id}", schema, record)
    outcomes = {outcome.work: outcome for outcome in receipt.outcomes}
    results = readable(db.execute(_RESULTS, (n,)), lambda row: (row[0], json_of(f"Work {row[0]}", row[1])))
    for work, result in results:
        success = cast(dict[str, Json], result).get("success") if isinstance(result, dict) else None
        outcomes[work] = TaskOutcome(work, success if isinstance(success, bool) else None)
    (counted,) = db.execute("SELECT success FROM receipts WHERE n = ?", (n,)).fetchone()
    if counted is not None and all(outcome.success is None for outcome in outcomes.values()):
        outcomes[""] = TaskOutcome("", bool(counted))
    return replace(receipt, outcomes=tuple(outcomes.values()))


def keep_accounts(db: Connection, agent: int, accounts: Iterable[tuple[Account, str]], most: int | None = None) -> None:
    """Stores accounts, in place of those of the same episodes. most: how many of each project are kept, the newest."""
    for account, text in accounts:
        db.execute(
            "INSERT INTO accounts (agent, project, id, schema, record) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (agent, id) DO UPDATE SET project = excluded.project, schema = excluded.schema,"
            " record = excluded.record",
            (agent, account.project, account.id, SCHEMA, text),
        )
        if most is not None:
            db.execute(
                "DELETE FROM accounts WHERE agent = ? AND project = ? AND n <= (SELECT n FROM accounts"
                " WHERE agent = ? AND project = ? ORDER BY n DESC LIMIT 1 OFFSET ?)",
                (agent, account.project, agent, account.project, most),
            )


def accounts(db: Connection, agent: int | None, project: str, limit: int) -> Sequence[Account]:
    rows = db.execute(
        f"SELECT id, schema, record FROM accounts a WHERE {owned(agent, 'a.agent')} AND project = :project"
        " ORDER BY n DESC LIMIT :limit",
        {"agent": agent, "project": project, "limit": limit},
    )
    return tuple(readable(rows, lambda row: account_of(*row)))


def account_of(id: str, schema: int, record: str) -> Account:
    return record_of(Account, f"The account of {id}", schema, record)
