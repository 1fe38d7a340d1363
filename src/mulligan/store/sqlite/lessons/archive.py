"""Whole lessons out of the file and into it: archives, their restoration, and removal for good."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mulligan.core.codec import SCHEMA, json_text, record_text, to_json
from mulligan.core.errors import StoreError
from mulligan.core.lesson import without_counts
from mulligan.core.lessons import Account, Added, Addition, Archive, Link, Receipt, Version
from mulligan.core.records import Json, Lesson
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons import rows, worth
from mulligan.store.sqlite.lessons.rows import NO_AGENT, append, number, read, update
from mulligan.store.sqlite.rows import encoded, object_of, purge_aside, readable, record_of
from mulligan.store.sqlite.schema import statements


def archive(db: Connection, agent_id: str | None) -> Sequence[Archive]:
    """That of this agent; None: those of all agents, by agent_id, and that of the recalls over all agents, if any."""
    if agent_id is not None:
        return (_archive(db, agent_id),)
    ids = [id for (id,) in db.execute("SELECT id FROM agents ORDER BY id")]
    found = [*(_archive(db, id) for id in ids), Archive(None, receipts=_receipts(db, 0))]
    return tuple(one for one in found if one.lessons or one.receipts or one.accounts)


def _archive(db: Connection, agent_id: str) -> Archive:
    agent = rows.reader(db, agent_id)
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
        {lesson.id: tuple(rows.versions(db, n, lesson.id)) for n, lesson in by_number.items()},
        tuple(Link(*row) for row in links if ids.issuperset(row[:2])),
        _receipts(db, agent),
        tuple(_accounts(db, agent)),
        tuple(one for one in worth.listed(db, agent) if one.id in ids or not one.id),
    )


def _receipts(db: Connection, agent: int | None) -> tuple[Receipt, ...]:
    found = db.execute("SELECT n, id, schema, record FROM receipts WHERE agent = ? ORDER BY n", (agent,)).fetchall()
    return tuple(readable(found, lambda row: rows.receipt_of(db, *row)))


def _accounts(db: Connection, agent: int | None) -> Iterator[Account]:
    found = db.execute("SELECT id, schema, record FROM accounts WHERE agent = ? ORDER BY n", (agent,)).fetchall()
    return readable(found, lambda row: rows.account_of(*row))


def restore(db: Connection, archive: Archive, entries: Sequence[Addition]) -> Sequence[Added]:
    if archive.agent_id is None:
        _put_receipts(db, 0, archive)
        return ()
    agent = rows.writer(db, archive.agent_id)
    before = db.execute("SELECT coalesce(max(n), 0) FROM lessons").fetchone()[0]
    kept: dict[str, Added] = {}
    for entry in entries:
        ready, text = rows.as_added(archive.agent_id, replace(entry, vectors={}))
        history = archive.history.get(entry.lesson.id, ())
        kept[entry.lesson.id] = _put(db, agent, ready, text, history, before)
    for link in archive.links:
        _put_link(db, agent, link, kept)
    _put_receipts(db, agent, archive)
    _put_accounts(db, agent, archive.accounts)
    for one in archive.worth:
        if not one.id:
            worth.put(db, agent, worth.BANK, one)
        elif one.id in kept and not kept[one.id].folded:
            worth.put(db, agent, number(db, agent, one.id), one)
    return tuple(kept[entry.lesson.id] for entry in entries)


def _put(db: Connection, agent: int, entry: Addition, text: str, history: Sequence[Version], before: int) -> Added:
    """Where the lesson is now. before: the last number in use before this import."""
    lesson = entry.lesson
    if db.execute("SELECT 1 FROM lessons WHERE id = ? AND agent = ?", (lesson.id, agent)).fetchone():
        return Added(lesson.id, folded=True)
    alike = db.execute(
        "SELECT n FROM lessons WHERE agent = ? AND fingerprint = ? AND state = ? AND state <> 'superseded' AND n <= ?"
        " ORDER BY n",
        (agent, entry.fingerprint, lesson.state, before),
    ).fetchall()
    twin = rows.duplicate(db, alike, lesson)
    if twin is not None:
        return _fold(db, agent, twin, lesson)
    _insert(db, agent, entry, text, history)
    return Added(lesson.id)


def _fold(db: Connection, agent: int, n: int, lesson: Lesson) -> Added:
    """Counts the lesson with its stored duplicate, once however often it is imported."""
    there = rows.read(db, n)
    lines = db.execute("SELECT detail FROM log WHERE lesson = ? AND change = 'folded'", (n,))
    details = readable(lines, lambda row: object_of(f"The history of lesson {there.id}", row[0] or "{}"))
    if lesson.id not in {detail.get("id") for detail in details}:
        support = there.support + lesson.support
        detail = {"id": lesson.id, "support": lesson.support, "origin": to_json(lesson.origin)}
        rows.update(db, agent, n, replace(there, support=support), "folded", detail)
    return Added(there.id, folded=True)


def _insert(db: Connection, agent: int, entry: Addition, text: str, history: Sequence[Version]) -> None:
    """Adds the lesson with its history. The row points to the newest record in the history.

    A history that does not end with the lesson's current record gets that as its last line.
    """
    lesson = entry.lesson
    n = rows.insert(db, agent, entry, text)
    (seq,) = db.execute("SELECT version FROM lessons WHERE n = ?", (n,)).fetchone()
    records = [version.lesson for version in history if version.lesson is not None]
    whole = bool(records) and without_counts(records[-1]) == without_counts(lesson)
    if not history:
        return
    db.execute("DELETE FROM log WHERE seq = ?", (seq,))
    current = None
    for version in history:
        record = None if version.lesson is None else record_text(version.lesson)
        line = rows.append(db, agent, n, version.change, record, version.detail, at=version.at)
        current = line if record is not None else current
    if not whole:
        current = rows.append(db, agent, n, "added", text, at=time.time())
    db.execute("UPDATE lessons SET version = ? WHERE n = ?", (current, n))


def _put_link(db: Connection, agent: int, link: Link, kept: Mapping[str, Added]) -> None:
    """Links the lessons that these ids became here; a pair that became one lesson is not linked."""
    ids = [kept[id].id if id in kept else id for id in (link.a, link.b)]
    a, b = sorted(rows.number(db, agent, id) for id in ids)
    if a != b:
        db.execute(
            "INSERT INTO links (a, b, embedder, similarity) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (a, b, link.embedder, link.similarity),
        )


def _put_receipts(db: Connection, agent: int, archive: Archive) -> None:
    for receipt in archive.receipts:
        if receipt.agent_id != archive.agent_id:
            raise StoreError(f"The recall {receipt.id} belongs to a different agent than the archive that contains it.")
        success = next((one.success for one in receipt.outcomes if one.success is not None), None)
        db.execute(
            "INSERT INTO receipts (id, agent, schema, record, success) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (receipt.id, agent, SCHEMA, record_text(receipt), success),
        )


def _put_accounts(db: Connection, agent: int, accounts: Sequence[Account]) -> None:
    """Adds the accounts of episodes that have none here, and puts all in the order of their time."""
    known = {id for (id,) in db.execute("SELECT id FROM accounts WHERE agent = ?", (agent,))}
    new = [one for one in accounts if one.id not in known]
    if not new:
        return
    here = list(_accounts(db, agent))
    for one in here:
        db.execute("DELETE FROM accounts WHERE agent = ? AND id = ?", (agent, one.id))
    both = sorted([*here, *new], key=lambda one: one.at)
    rows.keep_accounts(db, agent, ((one, record_text(one)) for one in both))


_ALL, _ONE = (statements(Path(__file__).with_name(f"purge_{what}.sql")) for what in ("agent", "lesson"))


def purge(db: Connection, agent: int | None, ids: Sequence[str] | None) -> int:
    """How many were removed. The number of a single one stays in the log, so that caches of other processes drop it."""
    assert agent is not None
    if ids is None:
        return 0 if agent == NO_AGENT else _purge_all(db, agent)
    unique = tuple(dict.fromkeys(ids))
    numbers = [number(db, agent, id) for id in unique]
    for n, id in zip(numbers, unique, strict=True):
        _forget_in_receipts(db, agent, [id], "lesson = :n AND agent = :agent", {"n": n, "agent": agent})
        _forget_in_histories(db, agent, n, id)
        for statement in _ONE:
            db.execute(statement, {"n": n, "agent": agent})
        purge_aside(db, agent, id)
        append(db, agent, n, "purged")
    for id in unique:
        retire_orphans(db, agent, id, "the lesson that it was merged into was purged")
    return len(unique)


def redact(
    db: Connection, agent: int | None, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]
) -> bool:
    found = db.execute(
        "SELECT seq, schema, record FROM log WHERE lesson = ? AND agent = ? AND record IS NOT NULL",
        (number(db, agent, id), agent),
    ).fetchall()
    changed = False
    for seq, lesson in readable(found, lambda row: (row[0], rows.lesson_of(id, *row[1:]))):
        if (context := change(lesson.context)) != lesson.context:
            text = encoded(replace(lesson, context=context), f"Lesson {id}")
            db.execute("UPDATE log SET record = ?, schema = ? WHERE seq = ?", (text, SCHEMA, seq))
            changed = True
    return changed


def _purge_all(db: Connection, agent: int) -> int:
    ids = [id for (id,) in db.execute("SELECT id FROM lessons WHERE agent = ?", (agent,))]
    _forget_in_receipts(db, agent, ids, "agent = :agent", {"agent": agent})
    for statement in _ALL:
        db.execute(statement, {"agent": agent})
    purge_aside(db, agent, None)
    return len(ids)


def retire_orphans(db: Connection, agent: int, successor: str, why: str) -> list[str]:
    """Retires the lessons that were merged into one that is gone, as they may say the same; their ids."""
    rows = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ?", (agent, successor)).fetchall()
    ids: list[str] = []
    for n, lesson in readable(rows, lambda row: (row[0], read(db, row[0]))):
        update(db, agent, n, replace(lesson, state="retired", superseded_by=None), "retired", {"why": why})
        ids.append(lesson.id)
    return ids


def _forget_in_receipts(db: Connection, agent: int, ids: Iterable[str], condition: str, values: dict[str, int]) -> None:
    """Receipts of recalls over all agents (agent 0) name lessons, too."""
    used = db.execute(
        f"SELECT DISTINCT detail FROM log WHERE {condition} AND change IN ('used', 'withheld')", values
    ).fetchall()
    gone = set(ids)
    for name in {
        named.get("receipt") for named in readable(used, lambda row: object_of("A line of a history", row[0]))
    }:
        rows = db.execute(
            "SELECT n, schema, record FROM receipts WHERE id = ? AND agent IN (?, 0)", (name, agent)
        ).fetchall()
        for n, receipt in readable(rows, lambda row: (row[0], record_of(Receipt, "A receipt", *row[1:]))):
            named = (receipt.lessons, receipt.withheld, receipt.drawn)
            lessons, withheld, drawn = ({id: n for id, n in one.items() if id not in gone} for one in named)
            left = replace(receipt, lessons=lessons, withheld=withheld, drawn=drawn)
            db.execute("UPDATE receipts SET record = ? WHERE n = ?", (record_text(left), n))


def _forget_in_histories(db: Connection, agent: int, n: int, id: str) -> None:
    """The histories of linked lessons name it."""
    others = db.execute("SELECT a + b - :n FROM links WHERE a = :n OR b = :n", {"n": n}).fetchall()
    for (other,) in others:
        db.execute(
            "DELETE FROM log WHERE lesson = ? AND agent = ? AND change = 'linked' AND instr(detail, ?) > 0",
            (other, agent, f'"with":{json_text(id)}'),
        )
