"""The thread of this process that downloads, loads and runs embedded models, one job after the other.

Two models that decode at the same time on the same cores take far longer than one after the other. `threads_to_use`
tells how many threads a model may use, `prompt_cache` how much memory its prompts may.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mulligan.core.errors import InvalidInput

T = TypeVar("T")
EXIT_SECONDS = 30.0
BUSY_LOAD_PER_CPU = 1.5


@dataclass
class Job:
    """Work for the thread. `work` is called with `abandoned`, and checks it often; its result goes to `future`."""

    work: Callable[[threading.Event], Any]
    future: Future[Any] = field(default_factory=Future[Any])
    abandoned: threading.Event = field(default_factory=threading.Event)


class EmbeddedWorker:
    """Runs jobs in order. When the process exits, it abandons the current job, waits for it, and drops the others."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._current: Job | None = None
        # It is a daemon, so that the exit does not wait for a whole generation. But native code crashes if it still
        # runs while the interpreter is finalized, so `close` waits until the job has noticed.
        self._thread = threading.Thread(target=self._run, name="mulligan-embedded", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Runs a job and returns its result. If cancelled, it abandons the job and returns at once."""
        job = self.submit(work)
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            job.abandoned.set()
            raise

    def submit(self, work: Callable[[threading.Event], Any]) -> Job:
        job = Job(work)
        self._jobs.put(job)
        return job

    def close(self) -> None:
        self._closing.set()
        if current := self._current:
            current.abandoned.set()
        self._jobs.put(None)
        self._thread.join(EXIT_SECONDS)

    def _run(self) -> None:
        while job := self._jobs.get():
            if not job.future.set_running_or_notify_cancel():
                continue
            self._current = job
            if self._closing.is_set():
                job.abandoned.set()
            try:
                result = job.work(job.abandoned)
            except BaseException as error:
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
                del result
            self._current = None
            del job


@cache
def embedded_worker() -> EmbeddedWorker:
    return EmbeddedWorker()


def threads_to_use(chosen: int | None) -> int:
    """`chosen`, else `MULLIGAN_THREADS`, else the physical cores minus one; at least 1. Raises `InvalidInput`."""
    if chosen is not None:
        return _whole_number("threads", str(chosen), 1)
    if value := os.environ.get("MULLIGAN_THREADS", ""):
        return _whole_number("MULLIGAN_THREADS", value, 1)
    return max(1, physical_cores() - 1)


def prompt_cache() -> int:
    """MB of memory for processed prompts: `MULLIGAN_PROMPT_CACHE`, else 0. Raises `InvalidInput`."""
    return _whole_number("MULLIGAN_PROMPT_CACHE", os.environ.get("MULLIGAN_PROMPT_CACHE") or "0", 0)


def _whole_number(name: str, value: str, least: int) -> int:
    if not value.isdecimal() or int(value) < least:
        raise InvalidInput(f"{name} must be an integer of at least {least}, not {value!r}.")
    return int(value)


def physical_cores() -> int:
    """The cores that this process may use. Threads of one core count once, and a container's CPU quota is a cap."""
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
    """The load per CPU in the last minute if it is so high that decoding is very slow, else 0."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return load if load > BUSY_LOAD_PER_CPU else 0.0
