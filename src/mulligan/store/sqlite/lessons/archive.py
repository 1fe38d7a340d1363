"""Exports whole banks as archives, restores them, and removes lessons for good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mulligan.core.codec import SCHEMA, json_text, record_text, to_json
from mulligan.core.errors import StoreError
from mulligan.core.lesson_history import Account, Added, Addition, Archive, Link, Receipt, Version
from mulligan.core.lessons import without_counts
from mulligan.core.records import Json, Lesson
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons import rows, worth
from mulligan.store.sqlite.lessons.history import versions
from mulligan.store.sqlite.lessons.receipts import account_of, keep_accounts, receipt_of
from mulligan.store.sqlite.lessons.rows import NO_AGENT, append_line, lesson_number, read, update
from mulligan.store.sqlite.rows import encoded, object_of, purge_aside, readable, record_of
from mulligan.store.sqlite.schema import statements


def archive(db: Connection, agent_id: str | None) -> Sequence[Archive]:
    """The archive of this agent. None: those of all agents by id, and one of the recalls over all agents, if any."""
    if agent_id is not None:
        return (_archive(db, agent_id),)
    ids = [id for (id,) in db.execute("SELECT id FROM agents ORDER BY id")]
    archives = [*(_archive(db, id) for id in ids), Archive(None, receipts=_receipts(db, 0))]
    return tuple(archive for archive in archives if archive.lessons or archive.receipts or archive.accounts)


def _archive(db: Connection, agent_id: str) -> Archive:
    agent = rows.find_agent(db, agent_id)
    numbers = [n for (n,) in db.execute("SELECT n FROM lessons WHERE agent = ? ORDER BY n", (agent,))]
    by_number = dict(readable(numbers, lambda n: (n, replace(rows.read(db, n), embedder=None))))
    lessons = tuple(by_number.values())
    ids = {lesson.id for lesson in lessons}
    links = db.execute(
        "SELECT a.id, b.id, CAST(k.similarity AS DOUBLE PRECISION), k.embedder FROM links k JOIN lessons a ON a.n = k.a"
        " JOIN lessons b ON b.n = k.b WHERE a.agent = ? ORDER BY k.a, k.b, k.embedder",
        (agent,),
    )
    return Archive(
        agent_id,
        lessons,
        history={lesson.id: tuple(versions(db, n, lesson.id)) for n, lesson in by_number.items()},
        links=tuple(Link(*row) for row in links if ids.issuperset(row[:2])),
        receipts=_receipts(db, agent),
        accounts=tuple(_accounts(db, agent)),
        worth=tuple(counted for counted in worth.listed(db, agent) if counted.id in ids or not counted.id),
    )


def _receipts(db: Connection, agent: int | None) -> tuple[Receipt, ...]:
    records = db.execute("SELECT n, id, schema, record FROM receipts WHERE agent = ? ORDER BY n", (agent,)).fetchall()
    return tuple(readable(records, lambda row: receipt_of(db, *row)))


def _accounts(db: Connection, agent: int | None) -> Iterator[Account]:
    records = db.execute("SELECT id, schema, record FROM accounts WHERE agent = ? ORDER BY n", (agent,)).fetchall()
    return readable(records, lambda row: account_of(*row))


def restore(db: Connection, archive: Archive, entries: Sequence[Addition]) -> Sequence[Added]:
    """Adds the contents of an archive to the bank of its agent. entries: its lessons, ready to be stored."""
    if archive.agent_id is None:
        _put_receipts(db, 0, archive)
        return ()
    agent = rows.ensure_agent(db, archive.agent_id)
    last_number = db.execute("SELECT coalesce(max(n), 0) FROM lessons").fetchone()[0]
    added: dict[str, Added] = {}
    for entry in entries:
        prepared, text = rows.prepare_addition(archive.agent_id, replace(entry, vectors={}))
        history = archive.history.get(entry.lesson.id, ())
        added[entry.lesson.id] = _put(db, agent, prepared, text, history, last_number)
    for link in archive.links:
        _put_link(db, agent, link, added)
    _put_receipts(db, agent, archive)
    _put_accounts(db, agent, archive.accounts)
    for counted in archive.worth:
        if not counted.id:
            worth.put(db, agent, worth.BANK, counted)
        elif counted.id in added and not added[counted.id].folded:
            worth.put(db, agent, lesson_number(db, agent, counted.id), counted)
    return tuple(added[entry.lesson.id] for entry in entries)


def _put(db: Connection, agent: int, entry: Addition, text: str, history: Sequence[Version], last_number: int) -> Added:
    """Adds a lesson, or folds it into a duplicate with a number up to `last_number`: one stored before this import."""
    lesson = entry.lesson
    if db.execute("SELECT 1 FROM lessons WHERE id = ? AND agent = ?", (lesson.id, agent)).fetchone():
        return Added(lesson.id, folded=True)
    candidates = db.execute(
        "SELECT n FROM lessons WHERE agent = ? AND fingerprint = ? AND state = ? AND state <> 'superseded' AND n <= ?"
        " ORDER BY n",
        (agent, entry.fingerprint, lesson.state, last_number),
    ).fetchall()
    duplicate = rows.find_duplicate(db, candidates, lesson)
    if duplicate is not None:
        return _fold(db, agent, duplicate, lesson)
    _insert(db, agent, entry, text, history)
    return Added(lesson.id)


def _fold(db: Connection, agent: int, n: int, lesson: Lesson) -> Added:
    """Adds the lesson's support to its stored duplicate, only once if it is imported repeatedly."""
    stored = rows.read(db, n)
    lines = db.execute("SELECT detail FROM log WHERE lesson = ? AND change = 'folded'", (n,))
    details = readable(lines, lambda row: object_of(f"The history of lesson {stored.id}", row[0] or "{}"))
    if lesson.id not in {detail.get("id") for detail in details}:
        support = stored.support + lesson.support
        detail = {"id": lesson.id, "support": lesson.support, "origin": to_json(lesson.origin)}
        rows.update(db, agent, n, replace(stored, support=support), "folded", detail)
    return Added(stored.id, folded=True)


def _insert(db: Connection, agent: int, entry: Addition, text: str, history: Sequence[Version]) -> None:
    """Adds the lesson with its history. The row points to the newest record in the history.

    If the history does not end with the lesson's current record, that becomes its last line.
    """
    lesson = entry.lesson
    n = rows.insert(db, agent, entry, text)
    if not history:
        return
    db.execute("DELETE FROM log WHERE seq = (SELECT version FROM lessons WHERE n = ?)", (n,))
    records = [version.lesson for version in history if version.lesson is not None]
    is_complete = bool(records) and without_counts(records[-1]) == without_counts(lesson)
    current = None
    for version in history:
        record = None if version.lesson is None else record_text(version.lesson)
        line = rows.append_line(db, agent, n, version.change, record, version.detail, at=version.at)
        current = line if record is not None else current
    if not is_complete:
        current = rows.append_line(db, agent, n, "added", text, at=time.time())
    db.execute("UPDATE lessons SET version = ? WHERE n = ?", (current, n))


def _put_link(db: Connection, agent: int, link: Link, added: Mapping[str, Added]) -> None:
    """Links the lessons that the archive's lessons became, unless both became the same one."""
    ids = [added[id].id if id in added else id for id in (link.a, link.b)]
    a, b = sorted(lesson_number(db, agent, id) for id in ids)
    if a != b:
        db.execute(
            "INSERT INTO links (a, b, embedder, similarity) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (a, b, link.embedder, link.similarity),
        )


def _put_receipts(db: Connection, agent: int, archive: Archive) -> None:
    for receipt in archive.receipts:
        if receipt.agent_id != archive.agent_id:
            raise StoreError(f"The recall {receipt.id} belongs to a different agent than the archive that contains it.")
        success = next((outcome.success for outcome in receipt.outcomes if outcome.success is not None), None)
        db.execute(
            "INSERT INTO receipts (id, agent, schema, record, success) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (receipt.id, agent, SCHEMA, record_text(receipt), success),
        )


def _put_accounts(db: Connection, agent: int, accounts: Sequence[Account]) -> None:
    """Adds the accounts of episodes that have none yet, and orders all accounts by their time."""
    stored_ids = {id for (id,) in db.execute("SELECT id FROM accounts WHERE agent = ?", (agent,))}
    new = [account for account in accounts if account.id not in stored_ids]
    if not new:
        return
    stored = list(_accounts(db, agent))
    for account in stored:
        db.execute("DELETE FROM accounts WHERE agent = ? AND id = ?", (agent, account.id))
    ordered = sorted([*stored, *new], key=lambda account: account.at)
    keep_accounts(db, agent, ((account, record_text(account)) for account in ordered))


_PURGE_AGENT = statements(Path(__file__).with_name("purge_agent.sql"))
_PURGE_LESSON = statements(Path(__file__).with_name("purge_lesson.sql"))


def purge(db: Connection, agent: int | None, ids: Sequence[str] | None) -> int:
    """Removes these lessons for good, or the whole bank, and returns how many lessons that were.

    The log keeps the number of a single lesson, so that caches of other processes drop it.
    """
    assert agent is not None
    if ids is None:
        return 0 if agent == NO_AGENT else _purge_all(db, agent)
    unique = tuple(dict.fromkeys(ids))
    numbers = [lesson_number(db, agent, id) for id in unique]
    for n, id in zip(numbers, unique, strict=True):
        _forget_in_receipts(db, agent, [id], "lesson = :n AND agent = :agent", {"n": n, "agent": agent})
        _forget_in_histories(db, agent, n, id)
        for statement in _PURGE_LESSON:
            db.execute(statement, {"n": n, "agent": agent})
        purge_aside(db, agent, id)
        append_line(db, agent, n, "purged")
    for id in unique:
        retire_orphans(db, agent, id, "the lesson that it was merged into was purged")
    return len(unique)


def redact(
    db: Connection, agent: int | None, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]
) -> bool:
    """Changes the context of a lesson in all records of its history. Returns whether there was anything to change."""
    records = db.execute(
        "SELECT seq, schema, record FROM log WHERE lesson = ? AND agent = ? AND record IS NOT NULL",
        (lesson_number(db, agent, id), agent),
    ).fetchall()
    changed = False
    for seq, lesson in readable(records, lambda row: (row[0], rows.decode_lesson(id, *row[1:]))):
        if (context := change(lesson.context)) != lesson.context:
            text = encoded(replace(lesson, context=context), f"Lesson {id}")
            db.execute("UPDATE log SET record = ?, schema = ? WHERE seq = ?", (text, SCHEMA, seq))
            changed = True
    return changed


def _purge_all(db: Connection, agent: int) -> int:
    ids = [id for (id,) in db.execute("SELECT id FROM lessons WHERE agent = ?", (agent,))]
    _forget_in_receipts(db, agent, ids, "agent = :agent", {"agent": agent})
    for statement in _PURGE_AGENT:
        db.execute(statement, {"agent": agent})
    purge_aside(db, agent, None)
    return len(ids)


def retire_orphans(db: Connection, agent: int, successor: str, why: str) -> list[str]:
    """Retires the lessons that were merged into a lesson that is gone: they may say the same. Returns their ids."""
    rows = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ?", (agent, successor)).fetchall()
    ids: list[str] = []
    for n, lesson in readable(rows, lambda row: (row[0], read(db, row[0]))):
        update(db, agent, n, replace(lesson, state="retired", superseded_by=None), "retired", {"why": why})
        ids.append(lesson.id)
    return ids


def _forget_in_receipts(db: Connection, agent: int, ids: Iterable[str], condition: str, values: dict[str, int]) -> None:
    """Removes these lessons from the receipts that name them, also from those of recalls over all agents (agent 0)."""
    query = f"SELECT DISTINCT detail FROM log WHERE {condition} AND change IN ('used', 'withheld')"
    lines = db.execute(query, values).fetchall()
    purged = set(ids)

    def without_purged(scores: Mapping[str, float]) -> dict[str, float]:
        return {id: score for id, score in scores.items() if id not in purged}

    details = readable(lines, lambda row: object_of("A line of a history", row[0]))
    for receipt_id in {detail.get("receipt") for detail in details}:
        rows = db.execute(
            "SELECT n, schema, record FROM receipts WHERE id = ? AND agent IN (?, 0)", (receipt_id, agent)
        ).fetchall()
        for n, receipt in readable(rows, lambda row: (row[0], record_of(Receipt, "A receipt", *row[1:]))):
            remaining = replace(
                receipt,
                lessons=without_purged(receipt.lessons),
                withheld=without_purged(receipt.withheld),
                drawn=without_purged(receipt.drawn),
            )
            db.execute("UPDATE receipts SET record = ? WHERE n = ?", (record_text(remaining), n))


def _forget_in_histories(db: Connection, agent: int, n: int, id: str) -> None:
    """Removes the lines that name this lesson from the histories of lessons that are linked with it."""
    others = db.execute("SELECT a + b - :n FROM links WHERE a = :n OR b = :n", {"n": n}).fetchall()
    for (other,) in others:
        db.execute(
            "DELETE FROM log WHERE lesson = ? AND agent = ? AND change = 'linked' AND instr(detail, ?) > 0",
            (other, agent, f'"with":{json_text(id)}'),
        )
