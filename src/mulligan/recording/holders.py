"""Identify the processes that hold leases, and find out whether they are alive.

For a process on this machine the system knows. A process on another machine loses its lease if its heartbeat has not
changed for a whole lease by our own monotonic clock; clocks of other machines are not trusted: design/028.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable
from functools import cache


class Watch:
    """Measures how long the heartbeats of others have not changed, as seen by this process. clock: returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[tuple[str, int], tuple[object, float]] = {}

    def seconds_unchanged(self, table: str, row: int, heartbeat: object) -> float:
        """Seconds since this heartbeat of the row was first seen here."""
        now = self._clock()
        seen, since = self._seen.get((table, row), (None, now))
        if seen == heartbeat:
            return now - since
        self._seen[table, row] = (heartbeat, now)
        return 0.0


def owner() -> str:
    """A new name for a holder in this process: host:pid:random.birth. From it others can tell whether it has died."""
    return f"{_host(os.getpid())}:{os.getpid()}:{os.urandom(4).hex()}.{_own_birth(os.getpid())}"


@cache
def _host(_pid: int) -> str:
    """This machine and its process namespace: containers may share a host name and a folder, but not process ids."""
    try:
        return f"{socket.gethostname()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()


def named(holder: str) -> str:
    """The host and the process of a holder, for messages."""
    return holder.rpartition(":")[0] or holder


def is_local(holder: str) -> bool:
    """Whether the holder is, or was, a process of this machine."""
    return named(holder).rpartition(":")[0] == _host(os.getpid())


def died(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended, even if its process id is in use again."""
    _, _, pid = named(holder).rpartition(":")
    if not is_local(holder) or not pid.isdigit() or os.name != "posix":
        return False
    recorded = holder.rpartition(":")[2].partition(".")[2]
    if int(pid) == os.getpid():
        return bool(recorded) and recorded != _own_birth(int(pid))
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        pass
    current = birth(int(pid))
    return current is None or bool(recorded and current and recorded != current)


def birth(pid: int) -> str | None:
    """A hash of the time when a process began; None if it has ended, "" if the system does not tell."""
    state, started = _from_proc(pid) if os.path.exists("/proc/self/stat") else _from_ps(pid)
    if state.startswith(("Z", "X")):  # a zombie, or dead
        return None
    return hashlib.sha256(started.encode()).hexdigest()[:8] if started else ""


@cache
def _own_birth(pid: int) -> str:
    return birth(pid) or ""


def _from_proc(pid: int) -> tuple[str, str]:
    """The state of a process, and its start time in ticks since this boot."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            return fields[0], f"{boot.read().strip()} {fields[19]}"
    except (OSError, IndexError):
        return "", ""


def _from_ps(pid: int) -> tuple[str, str]:
    """The state of a process, and its start time as a date, on systems without /proc (macOS)."""
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC0"}
    try:
        output = subprocess.run(command, capture_output=True, text=True, env=env, timeout=5, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return "", ""
    state, _, started = output.strip().partition(" ")
    return state, " ".join(started.split())
