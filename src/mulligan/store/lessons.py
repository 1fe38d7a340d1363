"""Lessons in the SQLite file of the episodes: the `LessonStore` of core.lessons.

As for episodes, what a call has returned from survives the death of the process at once. The cost of add, fold,
delta, recalled and change does not grow with the bank (but for the depth of a tree); list by text, as_of, counts and
verify read all of an agent's.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import StoreError
from mulligan.core.lessons import (
    Change,
    Delta,
    Entry,
    Finding,
    Kept,
    Link,
    Part,
    Receipt,
    Selection,
    Version,
)
from mulligan.core.queued import Claim
from mulligan.core.records import Json, Lesson
from mulligan.store import lessons_purge, lessons_reading, lessons_rows, lessons_verify, queue
from mulligan.store.database import Database
from mulligan.store.reading import kept, readable
from mulligan.store.schema import missing


class SqliteLessons:
    """Over a `Database` that somebody else closes."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # --- writing ------------------------------------------------------------------------------------------------

    async def add(
        self,
        agent_id: str,
        entries: Sequence[Entry],
        *,
        fold: bool = True,
        claim: Claim | None = None,
        result: Json = None,
    ) -> Sequence[Kept]:
        ready = [lessons_rows.as_added(agent_id, entry) for entry in entries]

        def work(db: sqlite3.Connection) -> Sequence[Kept]:
            agent = lessons_rows.writer(db, agent_id)
            kept = tuple(_add(db, agent, entry, text, fold) for entry, text in ready)
            queue.settle(db, agent, claim, _with_folded(result, kept))
            return kept

        return await self._db.write(work) if ready or claim else ()

    async def change(
        self, agent_id: str, lesson: Lesson, change: Change, *, entry: Entry | None = None, detail: Json = None
    ) -> None:
        def work(db: sqlite3.Connection) -> None:
            _change(db, lessons_rows.reader(db, agent_id), lesson, change, entry, detail)

        await self._db.write(work)

    async def merge(
        self, agent_id: str, entry: Entry, parents: Sequence[str], *, claim: Claim | None = None, result: Json = None
    ) -> None:
        merged, text = lessons_rows.as_added(agent_id, entry)
        if not parents or merged.lesson.id in parents or merged.lesson.state == "superseded":
            raise StoreError(f"Lesson {merged.lesson.id} can only be merged from others, and must not be superseded.")

        def work(db: sqlite3.Connection) -> None:
            agent = lessons_rows.writer(db, agent_id)
            queue.settle(db, agent, claim, result)
            _merge(db, agent, merged, text, tuple(dict.fromkeys(parents)))

        await self._db.write(work)

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        return await self._db.write(lambda db: _unmerge(db, lessons_rows.reader(db, agent_id), id))

    async def link(
        self, agent_id: str, links: Sequence[Link], *, claim: Claim | None = None, result: Json = None
    ) -> None:
        def work(db: sqlite3.Connection) -> None:
            agent = lessons_rows.writer(db, agent_id)
            queue.settle(db, agent, claim, result)
            for link in links:
                _link(db, agent, link)

        if links or claim:
            await self._db.write(work)

    async def set_vectors(
        self,
        agent_id: str,
        embedder: str,
        vectors: Mapping[str, Mapping[Part, bytes]],
        *,
        claim: Claim | None = None,
        result: Json = None,
    ) -> None:
        def work(db: sqlite3.Connection) -> None:
            agent = lessons_rows.writer(db, agent_id)
            queue.settle(db, agent, claim, result)
            for id, parts in vectors.items():
                _embed(db, agent, id, embedder, parts)

        if vectors or claim:
            await self._db.write(work)

    async def recalled(self, receipt: Receipt) -> None:
        text = kept(receipt, f"The receipt {receipt.id}")
        await self._db.write(lambda db: _recalled(db, receipt, text))

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """The text is overwritten in the file, and in its log as soon as no reader of another process is in it."""

        def work(db: sqlite3.Connection) -> int:
            if any(one.kind == "table" for one in missing(db)):
                lessons_verify.verify(db, mend=True)
            return lessons_purge.purge(db, lessons_rows.reader(db, agent_id), ids)

        return await self._db.remove(work)

    async def verify(self, *, mend: bool = False) -> Sequence[Finding]:
        do = self._db.write if mend else self._db.read
        try:
            return await do(lambda db: lessons_verify.verify(db, mend))
        except lessons_verify.Damaged as damaged:
            return damaged.findings

    # --- reading ------------------------------------------------------------------------------------------------

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        return await self._db.read(lambda db: lessons_reading.links(db, lessons_rows.reader(db, agent_id), id))

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        def work(db: sqlite3.Connection) -> Sequence[Lesson]:
            return lessons_reading.unembedded(db, lessons_rows.reader(db, agent_id), embedder, limit)

        return await self._db.read(work)

    async def get(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        def work(db: sqlite3.Connection) -> Sequence[Lesson]:
            agent = lessons_rows.reader(db, agent_id)
            return tuple(lessons_rows.read(db, lessons_rows.number(db, agent, id)) for id in ids)

        return await self._db.read(work)

    async def there(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        def work(db: sqlite3.Connection) -> Sequence[Lesson]:
            agent = lessons_rows.reader(db, agent_id)
            numbers = [n for id in ids for n in lessons_rows.numbers(db, agent, id)]
            return tuple(readable(numbers, lambda n: lessons_rows.read(db, n)))

        return await self._db.read(work)

    async def resolve(self, agent_id: str | None, prefix: str) -> str:
        return await self._db.read(lambda db: lessons_reading.resolve(db, lessons_rows.reader(db, agent_id), prefix))

    async def list(self, agent_id: str | None, which: Selection = Selection()) -> Sequence[Lesson]:
        return await self._db.read(lambda db: lessons_reading.listed(db, lessons_rows.reader(db, agent_id), which))

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: lessons_reading.agents(db, prefix, limit))

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        def work(db: sqlite3.Connection) -> Sequence[Version]:
            return lessons_reading.history(db, lessons_rows.number(db, lessons_rows.reader(db, agent_id), id), id)

        return await self._db.read(work)

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        return await self._db.read(lambda db: lessons_reading.as_of(db, lessons_rows.reader(db, agent_id), at))

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        def work(db: sqlite3.Connection) -> Delta:
            return lessons_reading.delta(db, lessons_rows.reader(db, agent_id), embedder, since, queries)

        return await self._db.read(work)

    async def receipt(self, agent_id: str | None, id: str) -> Receipt:
        return await self._db.read(lambda db: lessons_reading.receipt(db, lessons_rows.reader(db, agent_id), id))

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        return await self._db.read(lambda db: lessons_reading.counts(db, agent_id))


def _with_folded(result: Json, kept: Sequence[Kept]) -> Json:
    folded = list(dict.fromkeys(one.id for one in kept if one.folded))
    return {**cast(dict[str, Json], result), "folded": folded} if folded and isinstance(result, dict) else result


def _add(db: sqlite3.Connection, agent: int, entry: Entry, text: str, fold: bool) -> Kept:
    twin = _twin(db, agent, entry) if fold else None
    if twin is None:
        lessons_rows.insert(db, agent, entry, text)
        if entry.lesson.nature == "fact" and entry.lesson.state == "active":
            _supersede(db, agent, entry.lesson.origin.parents, entry.lesson.id, "superseded")
        return Kept(entry.lesson.id)
    there, new = lessons_rows.read(db, twin), entry.lesson
    told = {
        "id": new.id,
        "experience": new.experience,
        "query": new.query,
        "created": new.created,
        "support": new.support,
        "origin": to_json(new.origin),
    }
    after = replace(there, support=there.support + new.support)
    if new.confirmed and not there.confirmed:
        after = replace(after, confirmed=True, outcome=new.outcome)
    lessons_rows.update(db, agent, twin, after, "folded", told)
    return Kept(there.id, folded=True)


def _twin(db: sqlite3.Connection, agent: int, entry: Entry) -> int | None:
    """An exact duplicate, an active one before others (a merged lesson may say what one of its parents did).

    One that is quarantined, such as for its task, only takes in what is quarantined too: the other is recalled. A fact
    that was superseded takes in nothing: what it says holds again.
    """
    found = db.execute(
        "SELECT n FROM lessons WHERE agent = ? AND fingerprint = ? AND (state <> 'quarantined' OR ? = 'quarantined')"
        " AND NOT (fact AND state = 'superseded') ORDER BY state <> 'active', n LIMIT 1",
        (agent, entry.fingerprint, entry.lesson.state),
    ).fetchone()
    return found[0] if found else None


def _change(
    db: sqlite3.Connection, agent: int | None, lesson: Lesson, change: Change, entry: Entry | None, detail: Json
) -> None:
    n = lessons_rows.number(db, agent, lesson.id)
    assert agent is not None
    there = lessons_rows.read(db, n)
    if there.state == "superseded" or lesson.state == "superseded":
        into = f" into {there.superseded_by}: unmerge that one first" if there.superseded_by else ""
        raise StoreError(f"Lesson {lesson.id} is {there.state}{into}. Only a merge supersedes, and unmerge undoes it.")
    if entry:
        terms = (entry.fingerprint, entry.terms, n, agent)
        db.execute("UPDATE lessons SET fingerprint = ?, terms = ? WHERE n = ? AND agent = ?", terms)
        lessons_rows.drop_vectors(db, n)
        if entry.vectors:
            maker = lessons_rows.embedder(db, entry.lesson.embedder or "", entry.vectors.values())
            lessons_rows.set_vectors(db, n, maker, entry.vectors)
    after = replace(
        lesson,
        score=None,
        agent_id=there.agent_id,
        support=there.support,
        uses=there.uses,
        last_used=there.last_used,
        created=there.created,
        superseded_by=None,
        embedder=there.embedder if entry is None else entry.lesson.embedder if entry.vectors else None,
    )
    lessons_rows.update(db, agent, n, after, change, detail)
    if (there.state, after.state) == ("quarantined", "active"):
        _supersede(
            db, agent, after.origin.parents, after.id, "merged" if after.origin.kind == "merged" else "superseded"
        )
    elif (there.state, after.state) == ("active", "quarantined"):
        lessons_rows.reactivate_parents(db, agent, after.id)


def _merge(db: sqlite3.Connection, agent: int, entry: Entry, text: str, parents: Sequence[str]) -> None:
    """A merged lesson that is held back supersedes its parents when it is released (see `_change`)."""
    for parent in parents:
        there = lessons_rows.read(db, lessons_rows.number(db, agent, parent))
        if there.state != "active":
            raise StoreError(f"Lesson {there.id} is {there.state} by now, so it is not merged: only active ones are.")
    lessons_rows.insert(db, agent, entry, text, {"parents": list(parents)})
    if entry.lesson.state == "active":
        _supersede(db, agent, parents, entry.lesson.id, "merged")


def _supersede(db: sqlite3.Connection, agent: int, parents: Sequence[str], id: str, change: Change) -> None:
    """Marks those of the parents that are still active as superseded by the lesson `id`; their vectors go."""
    for parent in parents:
        found = db.execute(
            "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state = 'active'", (parent, agent)
        ).fetchone()
        if found:
            lessons_rows.drop_vectors(db, found[0])
            after = replace(lessons_rows.read(db, found[0]), state="superseded", superseded_by=id, embedder=None)
            lessons_rows.update(db, agent, found[0], after, change, {"into": id})


def _unmerge(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[str]:
    n = lessons_rows.number(db, agent, id)
    assert agent is not None
    merged = lessons_rows.read(db, n)
    if merged.superseded_by:
        raise StoreError(f"Lesson {id} was merged into {merged.superseded_by} in turn: unmerge that one first.")
    if merged.state == "quarantined":
        raise StoreError(
            f"Lesson {id} is held back, so the lessons that it was merged from are active: there is nothing to bring "
            "back. Release it, and it takes their place; purge it to be rid of it."
        )
    ids = lessons_rows.reactivate_parents(db, agent, id)
    if not ids:
        raise StoreError(f"Lesson {id} holds no others: it was not merged, or has been taken apart already.")
    lessons_rows.update(db, agent, n, replace(merged, state="retired"), "unmerged", {"parents": list(ids)})
    return ids


def _link(db: sqlite3.Connection, agent: int, link: Link) -> None:
    pair = [(lessons_rows.number(db, agent, id), id) for id in (link.a, link.b)]
    if pair[0] == pair[1]:
        raise StoreError(f"Lesson {link.a} cannot be linked with itself.")
    (a, older), (b, newer) = sorted(pair)
    written = db.execute(
        "INSERT INTO links (a, b, embedder, similarity) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET similarity = excluded.similarity WHERE similarity <> excluded.similarity",
        (a, b, link.embedder, link.similarity),
    )
    if written.rowcount:
        for n, other in ((a, newer), (b, older)):
            told = {"with": other, "similarity": link.similarity, "embedder": link.embedder}
            lessons_rows.append(db, agent, n, "linked", detail=told)


def _embed(db: sqlite3.Connection, agent: int, id: str, embedder: str, parts: Mapping[Part, bytes]) -> None:
    found = db.execute(
        "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state <> 'superseded'", (id, agent)
    ).fetchone()
    if found and parts:
        maker = lessons_rows.embedder(db, embedder, parts.values())
        lessons_rows.set_vectors(db, found[0], maker, parts)
        lessons_rows.append(db, agent, found[0], "embedded", detail={"embedder": embedder})


def _recalled(db: sqlite3.Connection, receipt: Receipt, text: str) -> None:
    agent = None if receipt.agent_id is None else lessons_rows.writer(db, receipt.agent_id)
    kept = db.execute(
        "INSERT OR IGNORE INTO receipts (id, agent, schema, record) VALUES (?, ?, ?, ?)",
        (receipt.id, agent or 0, SCHEMA, text),
    )
    if not kept.rowcount:
        return
    now = time.time()
    for id, score in receipt.lessons.items():
        n = lessons_rows.number(db, agent, id)
        whose = agent or db.execute("SELECT agent FROM lessons WHERE n = ?", (n,)).fetchone()[0]
        lessons_rows.append(db, whose, n, "used", detail={"receipt": receipt.id, "score": score}, at=now)
        db.execute(
            "INSERT INTO uses (n, uses, last_used) VALUES (?, 1, ?)"
            " ON CONFLICT DO UPDATE SET uses = uses + 1, last_used = excluded.last_used",
            (n, now),
        )
