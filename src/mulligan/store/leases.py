"""Who may drive an episode, or a benchmark run: a lease with a heartbeat and a fence that rises with each holder.

No clock of another machine is believed. A holder of this machine is known to live or not. Another's lease is taken when
its heartbeat has stood still for a full lease by our own monotonic clock (`Watch`): design/028.

Each function is a piece of work within somebody's transaction.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

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


class Watch:
    """How long the heartbeats of others have stood still, as far as this process has seen. clock: counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, int], tuple[object, float]] = {}

    def stood_still(self, table: str, row: int, heartbeat: object) -> float:
        """Seconds since this heartbeat of the row was first seen here."""
        now = self._clock()
        seen, since = self._seen.get((table, row), (None, now))
        if seen == heartbeat:
            return now - since
        self._seen[table, row] = (heartbeat, now)
        return 0.0


def owner() -> str:
    """A name for one holder in this process: host:pid:random.birth, so that a holder that died can be told."""
    return f"{_host()}:{os.getpid()}:{secrets.token_hex(4)}.{_own_birth(os.getpid())}"


def acquire(db: sqlite3.Connection, watch: Watch, id: str, owner: str, seconds: float, of: Driven = EPISODES) -> Lease:
    """Raises `LeaseLost` while another holds it, unless that was a process here that has died, or its heartbeat has
    stood still for `seconds`."""
    row, holder, fence, until = _found(db, id, of)
    if holder not in ("", owner) and not died(holder):
        stood = watch.stood_still(of.leases, row, (holder, fence, until))
        if stood < seconds:
            local = is_local(holder)
            raise LeaseLost(
                f"{of.word} {id} is being driven by {named(holder)}. Let it finish, or end that process first"
                + ("." if local else f": it can be taken over {seconds:g} s after it has stopped."),
                None if local and until > time.time() else (holder, fence, until),
            )
    db.execute(
        f"INSERT OR REPLACE INTO {of.leases} ({of.column}, owner, fence, until) VALUES (?, ?, ?, ?)",
        (row, owner, fence + 1, time.time() + seconds),
    )
    return Lease(id, owner, fence + 1)


def holder(db: sqlite3.Connection, episode: str) -> str | None:
    """Who drives the episode now, to be shown: None when the lease was released, its holder has died, or, by the clock
    of whoever wrote it, it has run out."""
    _, holder, _, until = _found(db, episode, EPISODES)
    return holder if holder and until > time.time() and not died(holder) else None


def held(db: sqlite3.Connection, lease: Lease, of: Driven = EPISODES) -> int:
    """The number of the row; raises `LeaseLost` when this lease is no longer the newest.

    A lease that nobody has taken is good, however old: the fence, not the clock, keeps writers apart.
    """
    row, holder, fence, _ = _found(db, lease.episode, of)
    if (holder, fence) != (lease.owner, lease.fence):
        now = f"is now driven by {named(holder)}" if holder else "was released"
        raise LeaseLost(f"{of.word} {lease.episode} {now}: {named(lease.owner)} may not write to it any more.")
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


def named(holder: str) -> str:
    """A holder as a person is told of it: the host and the process."""
    return holder.rpartition(":")[0] or holder


def is_local(holder: str) -> bool:
    """Whether it is, or was, a process of this machine."""
    return named(holder).rpartition(":")[0] == _host()


def died(holder: str) -> bool:
    """True when the holder was a process of this machine that is there no more, also when its number is another's by
    now, as after a boot."""
    _, _, pid = named(holder).rpartition(":")
    if not is_local(holder) or not pid.isdigit() or os.name != "posix":
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    then, now = holder.rpartition(":")[2].partition(".")[2], birth(int(pid))
    return now is None or bool(then and now and then != now)


def birth(pid: int) -> str | None:
    """When the process began, hashed; None: it has ended. Empty where the system does not say."""
    state, began = _of_proc(pid) if os.path.exists("/proc/self/stat") else _of_ps(pid)
    if state.startswith(("Z", "X")):
        return None
    return hashlib.sha256(began.encode()).hexdigest()[:8] if began else ""


@cache
def _own_birth(pid: int) -> str:
    return birth(pid) or ""


def _of_proc(pid: int) -> tuple[str, str]:
    """The state of a process, and its start in ticks of this boot."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return fields[0], f"{boot.read().strip()} {fields[19]}"
    except (OSError, IndexError):
        return "", ""


def _of_ps(pid: int) -> tuple[str, str]:
    """The same where there is no /proc (macOS): its start as a date."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    plain = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    try:
        said = subprocess.run(command, capture_output=True, text=True, env=plain, timeout=5, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return "", ""
    state, _, began = said.strip().partition(" ")
    return state, " ".join(began.split())
