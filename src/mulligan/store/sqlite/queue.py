"""Queued work in the SQLite file of the episodes: the `Queue` of core.work_queue.

Like episodes, work is claimed under a lease with a fence, so only one of two processes gets it. When a process has
died, its work is free at once on the same machine, and elsewhere once its heartbeat has stood still for a lease.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput, LeaseLost, NotFound, StoreError, Unreadable
from mulligan.core.records import Json
from mulligan.core.work_queue import Claim, Queued, QueueStatus
from mulligan.recording.holders import Watch, died, named
from mulligan.store.sqlite.engine import Connection, Engine
from mulligan.store.sqlite.lessons.rows import ensure_agent, find_agent, owned
from mulligan.store.sqlite.lessons.worth import settle_recalls
from mulligan.store.sqlite.rows import json_of, readable, unreadable
from mulligan.text.secrets import mask, mask_json

CLAIM_SECONDS = 60.0
"""How long a heartbeat must stand still before work is free, if no length of a claim is given."""

_TABLE = "work"

HOLD = " /*! FOR UPDATE */"
"""Ends a query for rows that will be changed: waits for a transaction that holds one of them."""
SKIP = " /*! FOR UPDATE SKIP LOCKED */"
"""Like `HOLD`, but leaves out rows that another transaction holds."""

_SELECT = (
    "SELECT w.n, w.id, w.kind, a.id, p.payload, w.status, w.attempts, w.created, w.finished, w.result, w.error,"
    " w.borrowed, w.owner, w.until FROM work w JOIN agents a ON a.n = w.agent LEFT JOIN payloads p ON p.n = w.n WHERE "
)


class SqliteQueue:
    """Queued work in a database that the store opens and closes."""

    capacity = 10_000

    def __init__(self, db: Engine) -> None:
        self._db = db

    async def enqueue(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str | None = None,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> str:
        queued, _ = await self.begin(kind, agent_id, payload, key=key, waiting=waiting, follows=follows)
        return queued.id

    async def begin(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str | None,
        owner: str | None = None,
        seconds: float = CLAIM_SECONDS,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> tuple[Queued, Claim | None]:
        text = _text(payload, f"Work of kind {kind}")

        def work(db: Connection) -> tuple[Queued, Claim | None]:
            agent = ensure_agent(db, agent_id)
            existing = None if key is None else _with_key(db, agent, kind, key, HOLD)
            if existing:
                n, _, status, holder, until = existing
            else:
                # status <> 'done' is the condition of the index work_open
                pending = "agent = ? AND status IN ('queued', 'running') AND status <> 'done'"
                if db.execute(f"SELECT count(*) FROM work WHERE {pending}", (agent,)).fetchone()[0] >= self.capacity:
                    raise StoreError(
                        f"The queue of agent {agent_id!r} is full: {self.capacity} jobs are pending. Run them first: "
                        "mulligan memory work."
                    )
                status, holder, until = "waiting" if waiting else "queued", "", 0.0
                (n,) = db.execute(
                    "INSERT INTO work (id, agent, kind, key, status, borrowed, created) VALUES (?, ?, ?, ?, ?, ?, ?)"
                    " RETURNING n",
                    (f"w{secrets.token_hex(6)}", agent, kind, key, status, waiting, time.time()),
                ).fetchone()
                db.execute("INSERT INTO payloads (n, payload) VALUES (?, ?)", (n, text))
            for receipt in follows:
                db.execute(_FOLLOWS, {"work": n, "receipt": receipt})
            if follows:
                settle_recalls(db, n)
            abandoned = status == "running" and _is_abandoned(self._db.watch, n, holder, until, seconds)
            if owner is not None and (abandoned or status in ("queued", "waiting")):
                return _claim(db, n, owner, seconds)
            return _read(db, n), None

        return await self._db.write(work, agent=agent_id, short=True)

    async def find(self, agent_id: str, kind: str, key: str) -> str | None:
        row = await self._db.read(
            lambda db: _with_key(db, find_agent(db, agent_id), kind, key), agent=agent_id, short=True
        )
        return row and row[1]

    async def turn(self, agent_id: str, id: str, *, waiting: bool) -> None:
        def work(db: Connection) -> None:
            n, status, _, holder, until = _find(db, find_agent(db, agent_id), id, HOLD)
            if status == "running" and not _is_abandoned(self._db.watch, n, holder, until, CLAIM_SECONDS):
                raise _busy(id, holder)
            if status in ("done", "failed"):
                raise StoreError(f"Job {id} is {status}: there is nothing left to do.")
            release(db, n, "waiting" if waiting else "queued", borrowed=waiting, due=0)

        await self._db.write(work, agent=agent_id, short=True)

    async def due(self, kinds: Sequence[str]) -> float | None:
        return await self._db.read(lambda db: _next_time(db, self._db.watch, kinds), short=True)

    async def claim(self, owner: str, seconds: float, kinds: Sequence[str]) -> tuple[Queued, Claim] | None:
        watch = self._db.watch
        # reads first, because a read does not delay other writers
        if await self._db.read(lambda db: _claimable(db, watch, kinds, seconds), short=True) is None:
            return None

        def work(db: Connection) -> tuple[Queued, Claim] | None:
            while (n := _claimable(db, watch, kinds, seconds, SKIP)) is not None:
                try:
                    return _claim(db, n, owner, seconds)
                except Unreadable as error:  # it must not block the work behind it
                    release(db, n, "failed", str(error), finished=time.time())
            return None

        return await self._db.write(work, alone="", short=True)

    async def take(self, agent_id: str, id: str, owner: str, seconds: float) -> tuple[Queued, Claim]:
        def work(db: Connection) -> tuple[Queued, Claim]:
            n, status, borrowed, holder, until = _find(db, find_agent(db, agent_id), id, HOLD)
            if status == "running" and not _is_abandoned(self._db.watch, n, holder, until, seconds):
                raise _busy(id, holder)
            if not borrowed or status not in ("waiting", "running"):
                raise StoreError(f"Job {id} is not waiting for an answer: it is {status}.")
            return _claim(db, n, owner, seconds)

        return await self._db.write(work, agent=agent_id, short=True)

    async def renew(self, claim: Claim, seconds: float) -> None:
        def work(db: Connection) -> None:
            db.execute("UPDATE work SET until = ? WHERE n = ?", (time.time() + seconds, held(db, claim)))

        await self._db.write(work, alone="", short=True)

    async def keep(self, claim: Claim, payload: Json) -> None:
        text = _text(payload, f"The payload of work {claim.id}")

        def work(db: Connection) -> None:
            db.execute("UPDATE payloads SET payload = ? WHERE n = ?", (text, held(db, claim)))

        await self._db.write(work, alone="", short=True)

    async def finish(self, claim: Claim, result: Json) -> None:
        await self._db.write(lambda db: settle(db, None, claim, result), short=True)

    async def fail(self, claim: Claim, error: str, *, retry_in: float | None) -> None:
        def work(db: Connection) -> None:
            n, now = held(db, claim), time.time()
            if retry_in is None:
                release(db, n, "failed", error, finished=now)
            else:
                release(db, n, None, error, due=now + retry_in)

        await self._db.write(work, alone="", short=True)

    async def waits(self, claim: Claim, error: str = "") -> None:
        def work(db: Connection) -> None:
            release(db, held(db, claim), "waiting", error, borrowed=True)

        await self._db.write(work, alone="", short=True)

    async def look(self, agent_id: str | None, id: str) -> Queued:
        return await self._db.read(
            lambda db: _read(db, _find(db, find_agent(db, agent_id), id).n), agent=agent_id, short=True
        )

    async def pending(
        self, agent_id: str | None = None, limit: int = 50, *, kind: str | None = None
    ) -> Sequence[Queued]:
        def work(db: Connection) -> Sequence[Queued]:
            agent = find_agent(db, agent_id)
            query = (
                f"SELECT n FROM work WHERE {owned(agent, 'agent')} AND status <> 'done'"
                " AND (CAST(:kind AS TEXT) IS NULL OR kind = :kind) ORDER BY n LIMIT :limit"
            )
            values = {"agent": agent, "limit": limit, "kind": kind}
            return tuple(readable(db.execute(query, values).fetchall(), lambda row: _read(db, row[0])))

        return await self._db.read(work, agent=agent_id)

    async def accepted_since(self, agent_id: str | None, at: float) -> Sequence[Queued]:
        def work(db: Connection) -> Sequence[Queued]:
            agent = find_agent(db, agent_id)
            query = f"SELECT n FROM work WHERE {owned(agent, 'agent')} AND created >= :at ORDER BY n"
            numbers = db.execute(query, {"agent": agent, "at": at}).fetchall()
            return tuple(readable(numbers, lambda row: _read(db, row[0])))

        return await self._db.read(work, agent=agent_id)

    async def depth(self) -> Mapping[str, Mapping[QueueStatus, int]]:
        def work(db: Connection) -> Mapping[str, Mapping[QueueStatus, int]]:
            depths: dict[str, dict[QueueStatus, int]] = {}
            query = "SELECT kind, status, count(*) FROM work WHERE status <> 'done' GROUP BY kind, status"
            for kind, status, count in db.execute(query):
                depths.setdefault(kind, {})[status] = count
            return depths

        return await self._db.read(work)


def settle(db: Connection, agent: int | None, claim: Claim | None, result: Json) -> None:
    """Finishes the work of this claim, if there is one, in the caller's transaction. agent: the owner it must have."""
    if claim is None:
        return
    n = held(db, claim)
    if agent is not None and db.execute("SELECT agent FROM work WHERE n = ?", (n,)).fetchone()[0] != agent:
        raise LeaseLost(f"Job {claim.id} belongs to another agent and cannot be finished here.")
    release(db, n, "done", finished=time.time(), result=_text(result, f"The result of work {claim.id}"))
    db.execute("DELETE FROM payloads WHERE n = ?", (n,))
    settle_recalls(db, n)


def held(db: Connection, claim: Claim) -> int:
    """The number of the claimed work. Raises `LeaseLost` unless this claim is the newest, and the work is running.

    A claim that nobody has taken over is valid, however old it is: the fence, not the clock, keeps processes apart.
    """
    row = db.execute(f"SELECT n, status, owner, fence FROM work WHERE id = ?{HOLD}", (claim.id,)).fetchone()
    if row is None:
        raise LeaseLost(f"Job {claim.id} no longer exists: it was purged.")
    n, status, owner, fence = row
    if (status, owner, fence) != ("running", claim.owner, claim.fence):
        now = f"is now being run by {owner}" if status == "running" else f"is now {status}"
        raise LeaseLost(f"Job {claim.id} {now}: {claim.owner} can no longer finish it.")
    return n


def release(db: Connection, n: int, status: QueueStatus | None, error: str = "", **values: Any) -> None:
    """Ends the claim of this work.

    Args:
        status: its new status. None: the status that it had before the claim.
        values: new values of further columns.
    """
    new_status = ":status" if status else "CASE WHEN borrowed THEN 'waiting' ELSE 'queued' END"
    sets = "".join(f", {name} = :{name}" for name in values)
    db.execute(
        f"UPDATE work SET status = {new_status}, owner = '', until = 0, error = :error{sets} WHERE n = :n",
        {**values, "status": status, "error": json_text(mask(error)), "n": n},
    )


_FOLLOWS = (
    "INSERT INTO outcomes (receipt, work) SELECT r.n, w.n FROM work w JOIN receipts r"
    " ON r.agent IN (w.agent, 0) WHERE w.n = :work AND r.id = :receipt ON CONFLICT DO NOTHING"
)


def _with_key(
    db: Connection, agent: int | None, kind: str, key: str, hold: str = ""
) -> tuple[int, str, str, str, float] | None:
    """Number, id, status, owner and expiry of the work with this key that has not failed."""
    query = (
        "SELECT n, id, status, owner, until FROM work WHERE agent = ? AND kind = ? AND key = ? AND status <> 'failed'"
    )
    return db.execute(f"{query}{hold}", (agent, kind, key)).fetchone()


def _next_time(db: Connection, watch: Watch, kinds: Sequence[str]) -> float | None:
    """When the next work of these kinds can be claimed, in seconds since the epoch; None if there is none."""
    which = f"kind IN ({', '.join('?' * len(kinds)) or 'NULL'})"
    queued = db.execute(f"SELECT min(due) FROM work WHERE status = 'queued' AND {which}", kinds)
    times: list[float] = [due for (due,) in queued if due is not None]
    running = db.execute(f"{_RUNNING} AND {which}", kinds)
    for n, owner, until in running.fetchall():
        left = CLAIM_SECONDS - watch.seconds_unchanged(_TABLE, n, (owner, until))
        times.append(0.0 if left <= 0 or died(owner) else time.time() + left)
    return min(times, default=None)


_RUNNING = "SELECT n, owner, until FROM work WHERE status = 'running' AND NOT borrowed"


def _claimable(db: Connection, watch: Watch, kinds: Sequence[str], seconds: float, hold: str = "") -> int | None:
    """The number of the oldest work that can be claimed."""
    queued = f"SELECT n FROM work WHERE status = 'queued' AND kind = ? AND due <= ? ORDER BY n LIMIT 1{hold}"
    now = time.time()
    numbers = [n for kind in dict.fromkeys(kinds) for (n,) in db.execute(queued, (kind, now))]
    which = f"kind IN ({', '.join('?' * len(kinds)) or 'NULL'}) ORDER BY n{hold}"
    running = db.execute(f"{_RUNNING} AND {which}", kinds).fetchall()
    numbers += [n for n, owner, until in running if _is_abandoned(watch, n, owner, until, seconds)]
    return min(numbers, default=None)


def _busy(id: str, holder: str) -> LeaseLost:
    return LeaseLost(f"Job {id} is being run by {named(holder)}. Let it finish, or end that process first.")


def _is_abandoned(watch: Watch, n: int, owner: str, until: float, seconds: float) -> bool:
    """Whether the owner has died, or its heartbeat has stood still for so many seconds."""
    return died(owner) or watch.seconds_unchanged(_TABLE, n, (owner, until)) >= seconds


def _claim(db: Connection, n: int, owner: str, seconds: float) -> tuple[Queued, Claim]:
    db.execute(
        "UPDATE work SET status = 'running', owner = ?, until = ?, fence = fence + 1, attempts = attempts + 1"
        " WHERE n = ?",
        (owner, time.time() + seconds, n),
    )
    id, fence = db.execute("SELECT id, fence FROM work WHERE n = ?", (n,)).fetchone()
    return _read(db, n), Claim(id, owner, fence)


class _WorkRow(NamedTuple):
    """The state of a piece of work. until: when its claim expires, in seconds since the epoch."""

    n: int
    status: QueueStatus
    borrowed: int
    owner: str
    until: float


def _find(db: Connection, agent: int | None, id: str, hold: str = "") -> _WorkRow:
    """The state of the work with this id. Raises `NotFound`."""
    query = f"SELECT n, status, borrowed, owner, until FROM work WHERE id = :id AND {owned(agent, 'agent')}{hold}"
    row = db.execute(query, {"id": id, "agent": agent}).fetchone()
    if row is None:
        raise NotFound(f"There is no pending job {id!r} in this bank.")
    return _WorkRow(*row)


def _read(db: Connection, n: int) -> Queued:
    """One piece of work. Running work whose claim has ended appears as queued or waiting. Raises `Unreadable`."""
    row = db.execute(f"{_SELECT} w.n = ?", (n,)).fetchone()
    if row is None:
        raise unreadable(f"Work number {n}", "its agent is missing")
    _, id, kind, agent_id, payload, status, attempts, created, finished, result, error, borrowed, owner, until = row
    shown: QueueStatus = status
    if status == "running" and (died(owner) or until < time.time()):
        shown = "waiting" if borrowed else "queued"
    asked, result, error = (json_of(f"Work {id}", text) for text in (payload or "null", result, error))
    return Queued(id, kind, agent_id, asked, shown, attempts, created, finished, result, error)


def _text(value: Json, what: str) -> str:
    """The value as JSON, with secrets masked."""
    try:
        text = json_text(value)  # raises for a value that is not JSON; masking would not notice it
        masked = mask_json(value)
        return text if masked == value else json_text(masked)
    except InvalidInput as error:
        raise StoreError(f"{what} cannot be stored: {error}") from error
