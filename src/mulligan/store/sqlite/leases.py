"""Leases: who may drive an episode or a benchmark run. Each function works within the caller's transaction."""

from __future__ import annotations

import time
from dataclasses import dataclass

from mulligan.core.errors import LeaseLost, NotFound
from mulligan.core.protocols import Lease
from mulligan.recording.holders import Watch, died, is_local, named
from mulligan.store.sqlite.engine import Connection


@dataclass(frozen=True)
class Leased:
    """A kind of thing that is leased.

    Attributes:
        word: names it in messages.
        table: its table.
        leases: the table of its leases, with its number in `column`.
    """

    word: str
    table: str
    leases: str
    column: str


EPISODES = Leased("Episode", "episodes", "leases", "episode")
BENCH_RUNS = Leased("Benchmark run", "bench_runs", "bench_leases", "run")


def acquire(db: Connection, watch: Watch, id: str, owner: str, seconds: float, of: Leased = EPISODES) -> Lease:
    """Takes a new lease.

    Raises:
        LeaseLost: Another process holds the lease. A lease is free if its holder was a process of this machine that has
            died, or if its heartbeat has stood still for `seconds`.
        NotFound: There is nothing with this id.
    """
    row, holder, fence, until = _lease_row(db, id, of)
    if holder not in ("", owner) and not died(holder):
        idle_seconds = watch.seconds_unchanged(of.leases, row, (holder, fence, until))
        if idle_seconds < seconds:
            local = is_local(holder)
            raise LeaseLost(
                f"{of.word} {id} is in use by {named(holder)}. Let it finish, or end that process first"
                + ("." if local else f": it can be taken over {seconds:g} s after it has stopped."),
                None if local and until > time.time() else (holder, fence, until),
            )
    db.execute(
        f"INSERT INTO {of.leases} ({of.column}, owner, fence, until) VALUES (?, ?, ?, ?) ON CONFLICT ({of.column})"
        " DO UPDATE SET owner = excluded.owner, fence = excluded.fence, until = excluded.until",
        (row, owner, fence + 1, time.time() + seconds),
    )
    return Lease(id, owner, fence + 1)


def holder(db: Connection, episode: str) -> str | None:
    """Who drives the episode now, for display.

    None if the lease was released, its holder has died, or it has expired by the clock of the machine that wrote it.
    """
    _, holder, _, until = _lease_row(db, episode, EPISODES)
    return holder if holder and until > time.time() and not died(holder) else None


def held(db: Connection, lease: Lease, of: Leased = EPISODES) -> int:
    """The number of the leased row. Raises `LeaseLost` if this lease is no longer the newest.

    A lease that nobody has taken over is valid, however old it is: the fence, not the clock, keeps writers apart.
    """
    row, holder, fence, _ = _lease_row(db, lease.episode, of)
    if (holder, fence) != (lease.owner, lease.fence):
        now = f"is now driven by {named(holder)}" if holder else "was released"
        raise LeaseLost(f"{of.word} {lease.episode} {now}: {named(lease.owner)} can no longer write to it.")
    return row


def renew(db: Connection, lease: Lease, seconds: float, of: Leased = EPISODES) -> None:
    row = held(db, lease, of)
    db.execute(f"UPDATE {of.leases} SET until = ? WHERE {of.column} = ?", (time.time() + seconds, row))


def release(db: Connection, lease: Lease, of: Leased = EPISODES) -> None:
    end(db, held(db, lease, of), of)


def end(db: Connection, row: int, of: Leased = EPISODES) -> None:
    """Ends the lease of the leased row."""
    db.execute(f"UPDATE {of.leases} SET owner = '', until = 0 WHERE {of.column} = ?", (row,))


def _lease_row(db: Connection, id: str, of: Leased) -> tuple[int, str, int, float]:
    """The number of the leased row, the holder and the fence of its lease, and its end in seconds since the epoch."""
    row = db.execute(
        "SELECT d.n, coalesce(l.owner, ''), coalesce(l.fence, 0), coalesce(l.until, 0)"
        f" FROM {of.table} d LEFT JOIN {of.leases} l ON l.{of.column} = d.n WHERE d.id = ?",
        (id,),
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no {of.word.lower()} {id!r} in this store.")
    return row
