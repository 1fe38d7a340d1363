"""The one thread of this process in which embedded models are pulled, loaded and run, one job after the other.

Two models that decode at once on the same cores take far longer than one after the other. Knows nothing of models.
"""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Any

EXIT_SECONDS = 30.0


@dataclass
class Job:
    """`work` is called with `abandoned`, which it should look at as often as it can; its result goes to `future`."""

    work: Callable[[threading.Event], Any]
    future: Future[Any] = field(default_factory=Future[Any])
    abandoned: threading.Event = field(default_factory=threading.Event)


class EmbeddedWorker:
    """Runs jobs in order. At exit of the process the job at hand is abandoned and waited for, the others dropped."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._current: Job | None = None
        # A daemon, so that the exit does not wait for a whole generation; but native code must not run on while the
        # interpreter goes away (it crashes), so `close` waits until it has noticed.
        self._thread = threading.Thread(target=self._run, name="mulligan-embedded", daemon=True)
        self._thread.start()
        atexit.register(self.close)

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
