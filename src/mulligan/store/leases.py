"""Who may drive an episode: a lease with a heartbeat (wall clock) and a fence that rises with each holder.

Each function is a piece of work within somebody's transaction.
"""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import time

from mulligan.core.errors import LeaseLost, NotFound
from mulligan.core.protocols import Lease


def owner() -> str:
    """A name for one holder in this process: host:pid:random, so that a holder that died can be told."""
    return f"{_host()}:{os.getpid()}:{secrets.token_hex(4)}"


def acquire(db: sqlite3.Connection, episode: str, owner: str, seconds: float) -> Lease:
    """Raises `LeaseLost` while another owner's lease is fresh, unless that was a process here that has died."""
    row, holder, fence, until = _found(db, episode)
    left = until - time.time()
    if holder not in ("", owner) and left > 0 and not died(holder):
        raise LeaseLost(
            f"Episode {episode} is being driven by {holder}, whose lease is good for another {left:.0f} s. "
            "Let it finish, or end that process first."
        )
    db.execute(
        "INSERT OR REPLACE INTO leases (episode, owner, fence, until) VALUES (?, ?, ?, ?)",
        (row, owner, fence + 1, time.time() + seconds),
    )
    return Lease(episode, owner, fence + 1)


def holder(db: sqlite3.Connection, episode: str) -> str | None:
    """Who drives the episode now; None when the lease has run out, was released, or its holder has died."""
    _, holder, _, until = _found(db, episode)
    return holder if holder and until > time.time() and not died(holder) else None


def held(db: sqlite3.Connection, lease: Lease) -> int:
    """The number of the episode's row; raises `LeaseLost` when this lease is no longer the newest.

    A lease that has run out but that nobody has taken is still good: the fence, not the clock, keeps writers apart.
    """
    row, holder, fence, _ = _found(db, lease.episode)
    if (holder, fence) != (lease.owner, lease.fence):
        now = f"is now driven by {holder}" if holder else "was released"
        raise LeaseLost(f"Episode {lease.episode} {now}: {lease.owner} may not write to it any more.")
    return row


def renew(db: sqlite3.Connection, lease: Lease, seconds: float) -> None:
    db.execute("UPDATE leases SET until = ? WHERE episode = ?", (time.time() + seconds, held(db, lease)))


def release(db: sqlite3.Connection, lease: Lease) -> None:
    db.execute("UPDATE leases SET owner = '', until = 0 WHERE episode = ?", (held(db, lease),))


def _found(db: sqlite3.Connection, episode: str) -> tuple[int, str, int, float]:
    """Row number, owner, fence and expiry (seconds since the epoch)."""
    found = db.execute(
        "SELECT e.n, coalesce(l.owner, ''), coalesce(l.fence, 0), coalesce(l.until, 0)"
        " FROM episodes e LEFT JOIN leases l ON l.episode = e.n WHERE e.id = ?",
        (episode,),
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no episode {episode!r} in this store.")
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
