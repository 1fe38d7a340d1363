"""Lessons in the SQLite file of the episodes: the `LessonStore` of core.lessons.

As for episodes, what a call has returned from survives the death of the process at once. The cost of add, fold, delta,
recalled and change does not grow with the bank (except with the depth of a tree of merges); list by text, as_of,
counts and verify read all lessons of an agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import LessonChanged, StoreError
from mulligan.core.lesson import Selection, without_counts
from mulligan.core.lessons import (
    Account,
    Added,
    Addition,
    Archive,
    Change,
    Delta,
    Fault,
    Link,
    Part,
    Receipt,
    Version,
    Worth,
)
from mulligan.core.operations import detail_of, signature
from mulligan.core.records import Json, Lesson
from mulligan.core.work_queue import Claim
from mulligan.store.sqlite import queue
from mulligan.store.sqlite.engine import Connection, Engine
from mulligan.store.sqlite.lessons import archive, rows, worth
from mulligan.store.sqlite.rows import encoded

_DUPLICATE = (
    "SELECT n FROM lessons WHERE agent = ? AND fingerprint = ? AND (state <> 'quarantined' OR ? = 'quarantined')"
    " AND NOT (fact AND state = 'superseded') ORDER BY state <> 'active', n"
)

SHORT = 10
"""Lessons that are written or read at once; for more, a thread is worth its price."""

P = ParamSpec("P")
T = TypeVar("T")


class SqliteLessons:
    """Over a database that the store opens and closes."""

    def __init__(self, db: Engine) -> None:
        self._db = db

    # --- writing ------------------------------------------------------------------------------------------------

    async def add(
        self,
        agent_id: str,
        entries: Sequence[Addition],
        *,
        fold: bool = True,
        claim: Claim | None = None,
        result: Json = None,
    ) -> Sequence[Added]:
        ready, detail = [rows.as_added(agent_id, entry) for entry in entries], detail_of()

        def work(db: Connection) -> Sequence[Added]:
            agent = rows.writer(db, agent_id)
            kept = tuple(_add(db, agent, entry, text, fold, detail) for entry, text in ready)
            folded = list(dict.fromkeys(one.id for one in kept if one.folded))
            table = {"folded": folded} if folded else {}
            queue.settle(db, agent, claim, {**result, **table} if isinstance(result, dict) else result)
            return kept

        short = len(ready) <= SHORT
        return await self._db.write(work, agent=agent_id, short=short) if ready or claim else ()

    async def change(
        self,
        agent_id: str,
        lesson: Lesson,
        change: Change,
        *,
        entry: Addition | None = None,
        detail: Json = None,
        before: Lesson | None = None,
    ) -> None:
        by = signature()

        def work(db: Connection) -> None:
            agent = rows.reader(db, agent_id)
            _check_unchanged(db, agent, (before,) if before else ())
            _change(db, agent, lesson, change, entry, detail, by)

        await self._db.write(work, agent=agent_id)

    async def merge(
        self,
        agent_id: str,
        entry: Addition,
        parents: Sequence[str],
        *,
        claim: Claim | None = None,
        result: Json = None,
        before: Sequence[Lesson] = (),
    ) -> None:
        merged, text = rows.as_added(agent_id, entry)
        if not parents or merged.lesson.id in parents or merged.lesson.state == "superseded":
            raise StoreError(f"Lesson {merged.lesson.id} can only be merged from others, and must not be superseded.")
        unique, by = tuple(dict.fromkeys(parents)), signature()

        def work(db: Connection, agent: int) -> None:
            _check_unchanged(db, agent, before)
            _merge(db, agent, merged, text, unique, by)

        await self._settling(agent_id, claim, result, work)

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        by = signature()
        return await self._db.write(lambda db: _unmerge(db, rows.reader(db, agent_id), id, by), agent=agent_id)

    async def link(
        self, agent_id: str, links: Sequence[Link], *, claim: Claim | None = None, result: Json = None
    ) -> None:
        def work(db: Connection, agent: int) -> None:
            for link in links:
                _link(db, agent, link)

        if links or claim:
            await self._settling(agent_id, claim, result, work)

    async def set_vectors(
        self,
        agent_id: str,
        embedder: str,
        vectors: Mapping[str, Mapping[Part, bytes]],
        *,
        claim: Claim | None = None,
        result: Json = None,
        before: Sequence[Lesson] = (),
    ) -> None:
        read = {lesson.id: lesson for lesson in before}

        def work(db: Connection, agent: int) -> None:
            for id, parts in vectors.items():
                _embed(db, agent, id, embedder, parts, read.get(id))

        if vectors or claim:
            await self._settling(agent_id, claim, result, work)

    async def recalled(self, receipt: Receipt) -> None:
        text = encoded(receipt, f"The receipt {receipt.id}")
        await self._db.write(lambda db: _recalled(db, receipt, text), agent=receipt.agent_id, short=True)

    async def keep_accounts(self, agent_id: str, accounts: Sequence[Account], most: int) -> None:
        ready = [(one, encoded(one, f"The account of {one.id}")) for one in accounts]
        await self._db.write(
            lambda db: rows.keep_accounts(db, rows.writer(db, agent_id), ready, most), agent=agent_id, short=True
        )

    async def outcome_of(self, agent_id: str, id: str, success: bool) -> bool:
        return await self._db.write(
            lambda db: worth.outcome_of(db, rows.writer(db, agent_id), id, success), agent=agent_id, short=True
        )

    async def retired_for_harm(self, agent_id: str | None) -> Mapping[str, str]:
        """Looks first: reading holds nobody up."""
        if not await self._short(worth.untold, agent_id):
            return {}
        return await self._db.write(lambda db: worth.tell(db, rows.reader(db, agent_id)), agent=agent_id)

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """The text is overwritten in the file, and in its log once no reader of another process needs it."""
        return await self._db.remove(lambda db: archive.purge(db, rows.reader(db, agent_id), ids), agent=agent_id)

    async def redact(self, agent_id: str, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """The text is overwritten as that of `purge` is."""
        return await self._db.remove(
            lambda db: archive.redact(db, rows.reader(db, agent_id), id, change), agent=agent_id
        )

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        return await self._db.verify(mend)

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Addition]]]) -> Sequence[Sequence[Added]]:
        return await self._db.write(lambda db: tuple(archive.restore(db, one, entries) for one, entries in several))

    async def _settling(
        self, agent_id: str, claim: Claim | None, result: Json, do: Callable[[Connection, int], None]
    ) -> None:
        """Does the work and settles the claim in one transaction."""

        def work(db: Connection) -> None:
            agent = rows.writer(db, agent_id)
            queue.settle(db, agent, claim, result)
            do(db, agent)

        await self._db.write(work, agent=agent_id)

    # --- reading ------------------------------------------------------------------------------------------------

    async def _read(
        self,
        work: Callable[Concatenate[Connection, int | None, P], T],
        agent_id: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return await self._db.read(lambda db: work(db, rows.reader(db, agent_id), *args, **kwargs), agent=agent_id)

    async def _short(
        self,
        work: Callable[Concatenate[Connection, int | None, P], T],
        agent_id: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `_read`, of a few rows."""
        return await self._db.read(
            lambda db: work(db, rows.reader(db, agent_id), *args, **kwargs), agent=agent_id, short=True
        )

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        return await self._read(rows.links, agent_id, id)

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        return await self._read(rows.unembedded, agent_id, embedder, limit)

    async def get(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        read = self._short if len(ids) <= SHORT else self._read
        return await read(rows.get, agent_id, ids)

    async def there(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        read = self._short if len(ids) <= SHORT else self._read
        return await read(rows.there, agent_id, ids)

    async def resolve(self, agent_id: str | None, prefix: str) -> str:
        return await self._read(rows.resolve, agent_id, prefix)

    async def list(self, agent_id: str | None, which: Selection = Selection()) -> Sequence[Lesson]:
        read = self._short if which.keys else self._read
        return await read(rows.listed, agent_id, which)

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: rows.agents(db, prefix, limit))

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        return await self._read(rows.history, agent_id, id)

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        return await self._read(rows.as_of, agent_id, at)

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        return await self._db.read(
            lambda db: rows.delta(db, rows.reader(db, agent_id), embedder, since, queries), agent=agent_id, settled=True
        )

    async def receipt(self, agent_id: str | None, id: str) -> Receipt:
        return await self._short(rows.receipt, agent_id, id)

    async def accounts(self, agent_id: str | None, project: str, limit: int) -> Sequence[Account]:
        return await self._read(rows.accounts, agent_id, project, limit)

    async def worth(self, agent_id: str | None, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        return await self._read(worth.listed, agent_id, of)

    async def relevances(self, agent_id: str | None, limit: int) -> Sequence[tuple[float, bool]]:
        return await self._read(worth.relevances, agent_id, limit)

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        return await self._db.read(lambda db: rows.counts(db, agent_id), agent=agent_id)

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        return await self._db.read(lambda db: archive.archive(db, agent_id), agent=agent_id)


def _add(db: Connection, agent: int, entry: Addition, text: str, fold: bool, detail: Json) -> Added:
    """Adds the lesson, or folds it into an exact duplicate, an active one before others (a merged lesson may say what
    one of its parents did).

    A duplicate that is quarantined, such as for its task, only takes in what is quarantined too: the other is recalled.
    A fact that was superseded takes in nothing: what it says holds again.
    """
    alike = db.execute(_DUPLICATE, (agent, entry.fingerprint, entry.lesson.state)).fetchall() if fold else ()
    twin = rows.duplicate(db, alike, entry.lesson)
    if twin is None:
        rows.insert(db, agent, entry, text, detail)
        if entry.lesson.nature == "fact" and entry.lesson.state == "active":
            _supersede(db, agent, entry.lesson.origin.parents, entry.lesson.id, "superseded", detail or {})
        return Added(entry.lesson.id)
    there, new = rows.read(db, twin), entry.lesson
    twice = {
        "id": new.id,
        "experience": new.experience,
        "query": new.query,
        "created": new.created,
        "support": new.support,
        "origin": to_json(new.origin),
    }
    after = replace(there, support=there.support + new.support, to_check="")
    if there.expires is not None and new.state == "active":  # learned again, it lasts longer
        if new.expires is not None:
            after = replace(after, expires=max(there.expires, new.expires))
        elif there.is_expired(new.created):
            after = replace(after, expires=None)
    if new.confirmed and not there.confirmed:
        after = replace(after, confirmed=True, outcome=new.outcome)
    rows.update(db, agent, twin, after, "folded", twice)
    return Added(there.id, folded=True)


def _change(
    db: Connection,
    agent: int | None,
    lesson: Lesson,
    change: Change,
    entry: Addition | None,
    detail: Json,
    by: Mapping[str, str],
) -> None:
    n = rows.number(db, agent, lesson.id)
    assert agent is not None
    there = rows.read(db, n)
    if there.state == "superseded" or lesson.state == "superseded":
        into = f" into {there.superseded_by}: unmerge that one first" if there.superseded_by else ""
        raise StoreError(f"Lesson {lesson.id} is {there.state}{into}. Only a merge supersedes, and unmerge undoes it.")
    stale = entry is not None and (
        bool(entry.vectors) or entry.lesson.embedder is None or _embedded(there) != _embedded(lesson)
    )
    if entry:
        terms = (entry.fingerprint, entry.terms, n, agent)
        db.execute("UPDATE lessons SET fingerprint = ?, terms = ? WHERE n = ? AND agent = ?", terms)
        rows.set_keys(db, n, entry.keys)
        if stale:
            rows.drop_vectors(db, n)
        if entry.vectors:
            maker = rows.embedder(db, entry.lesson.embedder or "", entry.vectors.values())
            rows.set_vectors(db, n, maker, entry.vectors)
    after = replace(
        lesson,
        score=None,
        agent_id=there.agent_id,
        support=there.support,
        uses=there.uses,
        last_used=there.last_used,
        created=there.created,
        superseded_by=None,
        embedder=there.embedder if not stale else entry.lesson.embedder if entry and entry.vectors else None,
    )
    rows.update(db, agent, n, after, change, detail)
    if change == "restored" or rows.text(there) != rows.text(after):
        worth.begin_anew(db, agent, n, time.time())
    if (there.state, after.state) == ("quarantined", "active"):
        how: Change = "merged" if after.origin.kind == "merged" else "superseded"
        _supersede(db, agent, after.origin.parents, after.id, how, by)
    elif (there.state, after.state) == ("active", "quarantined"):
        rows.reactivate_parents(db, agent, after.id, by)


def _check_unchanged(db: Connection, agent: int | None, before: Sequence[Lesson]) -> None:
    """Raises `LessonChanged` unless each of these lessons is as it was read."""
    for lesson in before:
        if _uncounted(rows.read(db, rows.number(db, agent, lesson.id))) != _uncounted(lesson):
            raise LessonChanged(f"Lesson {lesson.id} was changed in the meantime. Check it, and try again.")


def _uncounted(lesson: Lesson) -> Lesson:
    """The lesson without the fields that change without anybody's doing."""
    return replace(without_counts(lesson), support=1)


def _embedded(lesson: Lesson) -> tuple[str, ...]:
    """What vectors are made of."""
    return (*rows.text(lesson), lesson.query)


def _merge(
    db: Connection, agent: int, entry: Addition, text: str, parents: Sequence[str], by: Mapping[str, str]
) -> None:
    """A merged lesson that is held back supersedes its parents when it is released (see `_change`)."""
    for parent in parents:
        there = rows.read(db, rows.number(db, agent, parent))
        if there.state != "active":
            raise StoreError(
                f"Lesson {there.id} is {there.state} now, so it cannot be merged: only active lessons can."
            )
    rows.insert(db, agent, entry, text, {"parents": list(parents), **by})
    if entry.lesson.state == "active":
        _supersede(db, agent, parents, entry.lesson.id, "merged", by)


def _supersede(
    db: Connection, agent: int, parents: Sequence[str], id: str, change: Change, by: Mapping[str, str]
) -> None:
    """Marks those of the parents that are still active as superseded by the lesson `id`; their vectors go."""
    for parent in parents:
        found = db.execute(
            "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state = 'active'", (parent, agent)
        ).fetchone()
        if found:
            rows.drop_vectors(db, found[0])
            after = replace(rows.read(db, found[0]), state="superseded", superseded_by=id, embedder=None)
            rows.update(db, agent, found[0], after, change, {"into": id, **by})


def _unmerge(db: Connection, agent: int | None, id: str, by: Mapping[str, str]) -> Sequence[str]:
    n = rows.number(db, agent, id)
    assert agent is not None
    merged = rows.read(db, n)
    if merged.superseded_by:
        raise StoreError(f"Lesson {id} was merged into {merged.superseded_by} in turn: unmerge that one first.")
    if merged.state == "quarantined":
        raise StoreError(
            f"Lesson {id} is quarantined, so the lessons that it was merged from are active: there is nothing to "
            "restore. Release it, and it replaces them; or purge it."
        )
    ids = rows.reactivate_parents(db, agent, id, by)
    if not ids:
        raise StoreError(f"Lesson {id} is not a merged lesson, or its merge was already undone.")
    rows.update(db, agent, n, replace(merged, state="retired"), "unmerged", {"parents": list(ids), **by})
    return ids


def _link(db: Connection, agent: int, link: Link) -> None:
    pair = [(rows.number(db, agent, id), id) for id in (link.a, link.b)]
    if pair[0] == pair[1]:
        raise StoreError(f"Lesson {link.a} cannot be linked with itself.")
    (a, older), (b, newer) = sorted(pair)
    written = db.execute(
        "INSERT INTO links (a, b, embedder, similarity) VALUES (?, ?, ?, ?) ON CONFLICT (a, b, embedder) DO UPDATE"
        " SET similarity = excluded.similarity WHERE links.similarity <> excluded.similarity",
        (a, b, link.embedder, link.similarity),
    )
    if written.rowcount:
        for n, other in ((a, newer), (b, older)):
            detail = {"with": other, "similarity": link.similarity, "embedder": link.embedder}
            rows.append(db, agent, n, "linked", detail=detail)


def _embed(
    db: Connection, agent: int, id: str, embedder: str, parts: Mapping[Part, bytes], before: Lesson | None
) -> None:
    found = db.execute(
        "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state <> 'superseded'", (id, agent)
    ).fetchone()
    if found and parts and (before is None or _uncounted(rows.read(db, found[0])) == _uncounted(before)):
        maker = rows.embedder(db, embedder, parts.values())
        rows.set_vectors(db, found[0], maker, parts)
        rows.append(db, agent, found[0], "embedded", detail={"embedder": embedder})


def _recalled(db: Connection, receipt: Receipt, text: str) -> None:
    agent = None if receipt.agent_id is None else rows.writer(db, receipt.agent_id)
    kept = db.execute(
        "INSERT INTO receipts (id, agent, schema, record) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (receipt.id, agent or 0, SCHEMA, text),
    )
    if kept.rowcount:
        rows.count_uses(db, agent, receipt)
