"""Who may drive an episode, or a benchmark run: a lease with a heartbeat (wall clock) and a fence that rises with each
holder.

Each function is a piece of work within somebody's transaction.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import time
from dataclasses import dataclass

from mulligan.core.errors import LeaseLost, NotFound
from mulligan.core.protocols import Lease


@dataclass(frozen=True)
class Driven:
    """What is held: its word, the table of its rows, that of its leases, and the column there that names the row."""

    word: str
    rows: str
    leases: str
    column: str


EPISODES = Driven("Episode", "episodes", "leases", "episode")
BENCH_RUNS = Driven("Benchmark run", "bench_runs", "bench_leases", "run")


def owner() -> str:
    """A name for one holder in this process: host:pid:random, so that a holder that died can be told."""
    return f"{_host()}:{os.getpid()}:{secrets.token_hex(4)}"


def acquire(db: sqlite3.Connection, id: str, owner: str, seconds: float, of: Driven = EPISODES) -> Lease:
    """Raises `LeaseLost` while another owner's lease is fresh, unless that was a process here that has died."""
    row, holder, fence, until = _found(db, id, of)
    left = until - time.time()
    if holder not in ("", owner) and left > 0 and not died(holder):
        raise LeaseLost(
            f"{of.word} {id} is being driven by {holder}, whose lease is good for another {left:.0f} s. "
            "Let it finish, or end that process first."
        )
    db.execute(
        f"INSERT OR REPLACE INTO {of.leases} ({of.column}, owner, fence, until) VALUES (?, ?, ?, ?)",
        (row, owner, fence + 1, time.time() + seconds),
    )
    return Lease(id, owner, fence + 1)


def holder(db: sqlite3.Connection, episode: str) -> str | None:
    """Who drives the episode now; None when the lease has run out, was released, or its holder has died."""
    _, holder, _, until = _found(db, episode, EPISODES)
    return holder if holder and until > time.time() and not died(holder) else None


def held(db: sqlite3.Connection, lease: Lease, of: Driven = EPISODES) -> int:
    """The number of the row; raises `LeaseLost` when this lease is no longer the newest.

    A lease that has run out but that nobody has taken is still good: the fence, not the clock, keeps writers apart.
    """
    row, holder, fence, _ = _found(db, lease.episode, of)
    if (holder, fence) != (lease.owner, lease.fence):
        now = f"is now driven by {holder}" if holder else "was released"
        raise LeaseLost(f"{of.word} {lease.episode} {now}: {lease.owner} may not write to it any more.")
    return row


def renew(db: sqlite3.Connection, lease: Lease, seconds: float, of: Driven = EPISODES) -> None:
    row = held(db, lease, of)
    db.execute(f"UPDATE {of.leases} SET until = ? WHERE {of.column} = ?", (time.time() + seconds, row))


def release(db: sqlite3.Connection, lease: Lease, of: Driven = EPISODES) -> None:
    row = held(db, lease, of)
    db.execute(f"UPDATE {of.leases} SET owner = '', until = 0 WHERE {of.column} = ?", (row,))


def _found(db: sqlite3.Connection, id: str, of: Driven) -> tuple[int, str, int, float]:
    """Row number, owner, fence and expiry (seconds since the epoch)."""
    found = db.execute(
        "SELECT d.n, coalesce(l.owner, ''), coalesce(l.fence, 0), coalesce(l.until, 0)"
        f" FROM {of.rows} d LEFT JOIN {of.leases} l ON l.{of.column} = d.n WHERE d.id = ?",
        (id,),
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no {of.word.lower()} {id!r} in this store.")
    return found


def _host() -> str:
    """This machine, as far as process ids go: containers may share a name and a folder, but not their processes."""
    try:
        return f"{socket.gethostname()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()


def died(holder: str) -> bool:
    """True when the holder was a process of this machine that is there no more."""
    host, _, rest = holder.rpartition(":")[0].rpartition(":")
    if host != _host() or not rest.isdigit() or os.name != "posix":
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        return False
    return False
