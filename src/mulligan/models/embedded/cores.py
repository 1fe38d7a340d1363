"""How many threads an embedded model should take on this machine. Knows nothing of models."""

from __future__ import annotations

import math
import os
from pathlib import Path

from mulligan.core.errors import InvalidInput

BUSY_LOAD_PER_CPU = 1.5


def threads_to_use(chosen: int | None) -> int:
    """`chosen`, else `MULLIGAN_THREADS`, else the physical cores minus one; at least 1. Raises `InvalidInput`."""
    where, value = "threads", str(chosen) if chosen is not None else ""
    if not value:
        where, value = "MULLIGAN_THREADS", os.environ.get("MULLIGAN_THREADS", "")
    if not value:
        return max(1, physical_cores() - 1)
    if not value.isdecimal() or int(value) < 1:
        raise InvalidInput(f"{where} must be a whole number from 1, not {value!r}.")
    return int(value)


def physical_cores() -> int:
    """Cores that this process may use: siblings of one core count once, and a container's CPU quota caps them."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    siblings: set[str] = set()
    for cpu in os.sched_getaffinity(0):
        shared = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(first_line(shared) or str(cpu))
    quota, _, period = first_line(Path("/sys/fs/cgroup/cpu.max")).partition(" ")
    if quota.isdecimal() and period.isdecimal():
        return max(1, min(len(siblings), math.ceil(int(quota) / int(period))))
    return len(siblings)


def first_line(file: Path) -> str:
    try:
        return file.read_text().partition("\n")[0].strip()
    except OSError:
        return ""


def overload() -> float:
    """The load of the last minute per CPU where it is so high that decoding crawls, else 0."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return load if load > BUSY_LOAD_PER_CPU else 0.0
