"""Who holds a lease: names for processes, whether one has died, and how long a heartbeat has stood still.

No clock of another machine is believed. Of a holder on this machine it is known whether it lives. A holder on another
machine loses its lease when its heartbeat has stood still for a full lease by our own monotonic clock: design/028.
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
    """Measures how long heartbeats of others have stood still, as seen by this process. clock: counts seconds."""

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
    """A name for one holder in this process: host:pid:random.birth, so that others can tell when it died."""
    return f"{_host(os.getpid())}:{os.getpid()}:{os.urandom(4).hex()}.{_own_birth(os.getpid())}"


@cache
def _host(_pid: int) -> str:
    """This machine as the space of its process ids: containers may share a name and a folder, but not processes."""
    try:
        return f"{socket.gethostname()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return socket.gethostname()


def named(holder: str) -> str:
    """A holder as messages name it: the host and the process."""
    return holder.rpartition(":")[0] or holder


def is_local(holder: str) -> bool:
    """Whether it is, or was, a process of this machine."""
    return named(holder).rpartition(":")[0] == _host(os.getpid())


def died(holder: str) -> bool:
    """Whether the holder was a process of this machine that has ended; another process may have its number by now."""
    _, _, pid = named(holder).rpartition(":")
    if not is_local(holder) or not pid.isdigit() or os.name != "posix":
        return False
    then = holder.rpartition(":")[2].partition(".")[2]
    if int(pid) == os.getpid():
        return bool(then) and then != _own_birth(int(pid))
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        pass
    now = birth(int(pid))
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
