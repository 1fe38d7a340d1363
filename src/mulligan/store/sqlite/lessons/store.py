"""Lessons in the SQLite file of the episodes: the `LessonStore` of core.lesson_store.

Once a call returns, its changes survive the death of the process. The cost of add, fold, delta, recalled and change
does not grow with the bank (except with the depth of a tree of merges); list by text, as_of, counts and verify read all
lessons of an agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import LessonChanged, StoreError
from mulligan.core.lesson_history import (
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
from mulligan.core.lessons import Selection, without_counts
from mulligan.core.operations import detail_of, signature
from mulligan.core.records import Json, Lesson
from mulligan.core.work_queue import Claim
from mulligan.store.sqlite import queue
from mulligan.store.sqlite.engine import Connection, Engine
from mulligan.store.sqlite.lessons import archive, history, lists, receipts, rows, search_rows, worth
from mulligan.store.sqlite.rows import encoded

_DUPLICATE = (
    "SELECT n FROM lessons WHERE agent = ? AND fingerprint = ? AND (state <> 'quarantined' OR ? = 'quarantined')"
    " AND NOT (fact AND state = 'superseded') ORDER BY state <> 'active', n"
)

SHORT = 10
"""Up to this many lessons are written or read without a thread; for more, a thread is worth its cost."""

P = ParamSpec("P")
T = TypeVar("T")


class SqliteLessons:
    """Lessons in a database that the store opens and closes."""

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
        prepared = [rows.prepare_addition(agent_id, entry) for entry in entries]
        detail = detail_of()

        def work(db: Connection) -> Sequence[Added]:
            agent = rows.ensure_agent(db, agent_id)
            added = tuple(_add(db, agent, entry, text, fold, detail) for entry, text in prepared)
            folded = list(dict.fromkeys(lesson.id for lesson in added if lesson.folded))
            more = {"folded": folded} if folded else {}
            queue.settle(db, agent, claim, {**result, **more} if isinstance(result, dict) else result)
            return added

        if not prepared and not claim:
            return ()
        return await self._db.write(work, agent=agent_id, short=len(prepared) <= SHORT)

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
            agent = rows.find_agent(db, agent_id)
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
        merged, text = rows.prepare_addition(agent_id, entry)
        if not parents or merged.lesson.id in parents or merged.lesson.state == "superseded":
            raise StoreError(
                f"Lesson {merged.lesson.id} must be merged from other lessons, and must not be superseded."
            )
        unique, by = tuple(dict.fromkeys(parents)), signature()

        def work(db: Connection, agent: int) -> None:
            _check_unchanged(db, agent, before)
            _merge(db, agent, merged, text, unique, by)

        await self._settling(agent_id, claim, result, work)

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        by = signature()
        return await self._db.write(lambda db: _unmerge(db, rows.find_agent(db, agent_id), id, by), agent=agent_id)

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
        lessons_before = {lesson.id: lesson for lesson in before}

        def work(db: Connection, agent: int) -> None:
            for id, parts in vectors.items():
                _embed(db, agent, id, embedder, parts, lessons_before.get(id))

        if vectors or claim:
            await self._settling(agent_id, claim, result, work)

    async def recalled(self, receipt: Receipt) -> None:
        text = encoded(receipt, f"The receipt {receipt.id}")
        await self._db.write(lambda db: _recalled(db, receipt, text), agent=receipt.agent_id, short=True)

    async def keep_accounts(self, agent_id: str, accounts: Sequence[Account], most: int) -> None:
        prepared = [(account, encoded(account, f"The account of {account.id}")) for account in accounts]
        await self._db.write(
            lambda db: receipts.keep_accounts(db, rows.ensure_agent(db, agent_id), prepared, most),
            agent=agent_id,
            short=True,
        )

    async def outcome_of(self, agent_id: str, id: str, success: bool) -> bool:
        return await self._db.write(
            lambda db: worth.outcome_of(db, rows.ensure_agent(db, agent_id), id, success), agent=agent_id, short=True
        )

    async def retired_for_harm(self, agent_id: str | None) -> Mapping[str, str]:
        """Reads first, because a read does not delay other writers."""
        if not await self._read_short(worth.retired_for_harm, agent_id):
            return {}
        return await self._db.write(lambda db: worth.report(db, rows.find_agent(db, agent_id)), agent=agent_id)

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """Overwrites the text in the file, and in its log once no reader of another process needs it."""
        return await self._db.remove(lambda db: archive.purge(db, rows.find_agent(db, agent_id), ids), agent=agent_id)

    async def redact(self, agent_id: str, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Overwrites the text as `purge` does."""
        return await self._db.remove(
            lambda db: archive.redact(db, rows.find_agent(db, agent_id), id, change), agent=agent_id
        )

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        return await self._db.verify(mend)

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Addition]]]) -> Sequence[Sequence[Added]]:
        def work(db: Connection) -> Sequence[Sequence[Added]]:
            return tuple(archive.restore(db, agent_archive, entries) for agent_archive, entries in several)

        return await self._db.write(work)

    async def _settling(
        self, agent_id: str, claim: Claim | None, result: Json, do: Callable[[Connection, int], None]
    ) -> None:
        """Does the work and settles the claim in one transaction."""

        def work(db: Connection) -> None:
            agent = rows.ensure_agent(db, agent_id)
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
        """The result of `work`, which gets the connection, the agent's number and these arguments."""
        return await self._db.read(lambda db: work(db, rows.find_agent(db, agent_id), *args, **kwargs), agent=agent_id)

    async def _read_short(
        self,
        work: Callable[Concatenate[Connection, int | None, P], T],
        agent_id: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like `_read`, for a few rows."""
        return await self._db.read(
            lambda db: work(db, rows.find_agent(db, agent_id), *args, **kwargs), agent=agent_id, short=True
        )

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        return await self._read(lists.links, agent_id, id)

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        return await self._read(lists.unembedded, agent_id, embedder, limit)

    async def get(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        read = self._read_short if len(ids) <= SHORT else self._read
        return await read(lists.get, agent_id, ids)

    async def there(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        read = self._read_short if len(ids) <= SHORT else self._read
        return await read(lists.existing, agent_id, ids)

    async def resolve(self, agent_id: str | None, prefix: str) -> str:
        return await self._read(lists.resolve, agent_id, prefix)

    async def list(self, agent_id: str | None, which: Selection = Selection()) -> Sequence[Lesson]:
        read = self._read_short if which.keys else self._read
        return await read(lists.listed, agent_id, which)

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: lists.agents(db, prefix, limit))

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        def work(db: Connection, agent: int | None) -> Sequence[Version]:
            return history.versions(db, rows.lesson_number(db, agent, id), id)

        return await self._read(work, agent_id)

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        return await self._read(history.as_of, agent_id, at)

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        def work(db: Connection) -> Delta:
            return search_rows.delta(db, rows.find_agent(db, agent_id), embedder, since, queries)

        return await self._db.read(work, agent=agent_id, settled=True)

    async def receipt(self, agent_id: str | None, id: str) -> Receipt:
        return await self._read_short(receipts.receipt, agent_id, id)

    async def accounts(self, agent_id: str | None, project: str, limit: int) -> Sequence[Account]:
        return await self._read(receipts.accounts, agent_id, project, limit)

    async def worth(self, agent_id: str | None, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        return await self._read(worth.listed, agent_id, of)

    async def relevances(self, agent_id: str | None, limit: int) -> Sequence[tuple[float, bool]]:
        return await self._read(worth.relevances, agent_id, limit)

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        return await self._db.read(lambda db: lists.counts(db, agent_id), agent=agent_id)

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        return await self._db.read(lambda db: archive.archive(db, agent_id), agent=agent_id)


def _add(db: Connection, agent: int, entry: Addition, text: str, fold: bool, detail: Json) -> Added:
    """Adds the lesson, or folds it into an exact duplicate, preferably an active one.

    (A merged lesson may have the same words as one of its parents.) A quarantined duplicate takes only quarantined
    lessons, because others must be recalled. A superseded fact takes nothing: a new one says that it is true again.
    """
    candidates = db.execute(_DUPLICATE, (agent, entry.fingerprint, entry.lesson.state)).fetchall() if fold else ()
    duplicate = rows.find_duplicate(db, candidates, entry.lesson)
    if duplicate is None:
        rows.insert(db, agent, entry, text, detail)
        if entry.lesson.nature == "fact" and entry.lesson.state == "active":
            _supersede(db, agent, entry.lesson.origin.parents, entry.lesson.id, "superseded", detail or {})
        return Added(entry.lesson.id)
    stored, new = rows.read(db, duplicate), entry.lesson
    fold_detail = {
        "id": new.id,
        "experience": new.experience,
        "query": new.query,
        "created": new.created,
        "support": new.support,
        "origin": to_json(new.origin),
    }
    after = replace(stored, support=stored.support + new.support, to_check="")
    if stored.expires is not None and new.state == "active":  # a lesson that is learned again lasts longer
        if new.expires is not None:
            after = replace(after, expires=max(stored.expires, new.expires))
        elif stored.is_expired(new.created):
            after = replace(after, expires=None)
    if new.confirmed and not stored.confirmed:
        after = replace(after, confirmed=True, outcome=new.outcome)
    rows.update(db, agent, duplicate, after, "folded", fold_detail)
    return Added(stored.id, folded=True)


def _change(
    db: Connection,
    agent: int | None,
    lesson: Lesson,
    change: Change,
    entry: Addition | None,
    detail: Json,
    by: Mapping[str, str],
) -> None:
    n = rows.lesson_number(db, agent, lesson.id)
    assert agent is not None
    stored = rows.read(db, n)
    if stored.state == "superseded":
        by_other = f" by {stored.superseded_by}: unmerge that one first" if stored.superseded_by else ""
        raise StoreError(f"Lesson {lesson.id} is superseded{by_other}.")
    if lesson.state == "superseded":
        raise StoreError(f"Lesson {lesson.id} can be superseded only by a merge, or by a fact that replaces it.")
    embedder = stored.embedder
    if entry:
        terms = (entry.fingerprint, entry.terms, n, agent)
        db.execute("UPDATE lessons SET fingerprint = ?, terms = ? WHERE n = ? AND agent = ?", terms)
        rows.set_keys(db, n, entry.keys)
        if entry.vectors or entry.lesson.embedder is None or _embedded_text(stored) != _embedded_text(lesson):
            rows.drop_vectors(db, n)
            embedder = None
        if entry.vectors:
            embedder = entry.lesson.embedder
            number = rows.embedder_number(db, embedder or "", entry.vectors.values())
            rows.set_vectors(db, n, number, entry.vectors)
    after = replace(
        lesson,
        score=None,
        agent_id=stored.agent_id,
        support=stored.support,
        uses=stored.uses,
        last_used=stored.last_used,
        created=stored.created,
        superseded_by=None,
        embedder=embedder,
    )
    rows.update(db, agent, n, after, change, detail)
    if change == "restored" or rows.prompt_text(stored) != rows.prompt_text(after):
        worth.reset(db, agent, n, time.time())
    if (stored.state, after.state) == ("quarantined", "active"):
        reason: Change = "merged" if after.origin.kind == "merged" else "superseded"
        _supersede(db, agent, after.origin.parents, after.id, reason, by)
    elif (stored.state, after.state) == ("active", "quarantined"):
        rows.reactivate_parents(db, agent, after.id, by)


def _check_unchanged(db: Connection, agent: int | None, before: Sequence[Lesson]) -> None:
    """Raises `LessonChanged` unless each of these lessons is still as it was read."""
    for lesson in before:
        if _uncounted(rows.read(db, rows.lesson_number(db, agent, lesson.id))) != _uncounted(lesson):
            raise LessonChanged(f"Lesson {lesson.id} was changed in the meantime. Check it, then try again.")


def _uncounted(lesson: Lesson) -> Lesson:
    """The lesson without the fields that change by counting alone."""
    return replace(without_counts(lesson), support=1)


def _embedded_text(lesson: Lesson) -> tuple[str, ...]:
    """The texts that the vectors of a lesson are computed from."""
    return (*rows.prompt_text(lesson), lesson.query)


def _merge(
    db: Connection, agent: int, entry: Addition, text: str, parents: Sequence[str], by: Mapping[str, str]
) -> None:
    """Adds a merged lesson, which supersedes its parents; if it is quarantined, it does so on release (`_change`)."""
    for id in parents:
        parent = rows.read(db, rows.lesson_number(db, agent, id))
        if parent.state != "active":
            raise StoreError(
                f"Lesson {parent.id} is {parent.state} now, so it cannot be merged: only active lessons can."
            )
    rows.insert(db, agent, entry, text, {"parents": list(parents), **by})
    if entry.lesson.state == "active":
        _supersede(db, agent, parents, entry.lesson.id, "merged", by)


def _supersede(
    db: Connection, agent: int, parents: Sequence[str], id: str, change: Change, by: Mapping[str, str]
) -> None:
    """Marks the parents that are still active as superseded by the lesson `id`, and removes their vectors."""
    query = "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state = 'active'"
    for parent in parents:
        for (n,) in db.execute(query, (parent, agent)).fetchall():
            rows.drop_vectors(db, n)
            after = replace(rows.read(db, n), state="superseded", superseded_by=id, embedder=None)
            rows.update(db, agent, n, after, change, {"into": id, **by})


def _unmerge(db: Connection, agent: int | None, id: str, by: Mapping[str, str]) -> Sequence[str]:
    n = rows.lesson_number(db, agent, id)
    assert agent is not None
    merged = rows.read(db, n)
    if merged.superseded_by:
        raise StoreError(f"Lesson {id} was then merged into {merged.superseded_by}: unmerge that one first.")
    if merged.state == "quarantined":
        raise StoreError(
            f"Lesson {id} is quarantined, so the lessons that it was merged from are active: there is nothing to "
            "restore. Release it to replace them, or purge it."
        )
    ids = rows.reactivate_parents(db, agent, id, by)
    if not ids:
        raise StoreError(f"Lesson {id} is not a merged lesson, or its merge was already undone.")
    rows.update(db, agent, n, replace(merged, state="retired"), "unmerged", {"parents": list(ids), **by})
    return ids


def _link(db: Connection, agent: int, link: Link) -> None:
    pair = [(rows.lesson_number(db, agent, id), id) for id in (link.a, link.b)]
    if pair[0] == pair[1]:
        raise StoreError(f"Lesson {link.a} cannot be linked with itself.")
    (a, id_a), (b, id_b) = sorted(pair)
    written = db.execute(
        "INSERT INTO links (a, b, embedder, similarity) VALUES (?, ?, ?, ?) ON CONFLICT (a, b, embedder) DO UPDATE"
        " SET similarity = excluded.similarity WHERE links.similarity <> excluded.similarity",
        (a, b, link.embedder, link.similarity),
    )
    if written.rowcount:
        for n, other in ((a, id_b), (b, id_a)):
            detail = {"with": other, "similarity": link.similarity, "embedder": link.embedder}
            rows.append_line(db, agent, n, "linked", detail=detail)


def _embed(
    db: Connection, agent: int, id: str, embedder: str, parts: Mapping[Part, bytes], before: Lesson | None
) -> None:
    """Stores the vectors of a lesson, unless it is gone, was superseded, or has changed since `before` was read."""
    query = "SELECT n FROM lessons WHERE id = ? AND agent = ? AND state <> 'superseded'"
    for (n,) in db.execute(query, (id, agent)).fetchall():
        if parts and (before is None or _uncounted(rows.read(db, n)) == _uncounted(before)):
            number = rows.embedder_number(db, embedder, parts.values())
            rows.set_vectors(db, n, number, parts)
            rows.append_line(db, agent, n, "embedded", detail={"embedder": embedder})


def _recalled(db: Connection, receipt: Receipt, text: str) -> None:
    agent = None if receipt.agent_id is None else rows.ensure_agent(db, receipt.agent_id)
    added = db.execute(
        "INSERT INTO receipts (id, agent, schema, record) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (receipt.id, agent or 0, SCHEMA, text),
    )
    if added.rowcount:
        receipts.count_uses(db, agent, receipt)
