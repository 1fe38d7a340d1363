"""A process of ours that asks a database: it can be killed, and what it may use is bounded by the kernel.

Engines and servers cannot be trusted to keep a time-out, nor to bound what they allocate: a query that gets past both
is ended here, with its process, and the next query finds a new one (design/014). Knows nothing of any database.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

from mulligan.core.errors import GraphError, QueryError
from mulligan.core.records import Json
from mulligan.graphs._database import EXHAUSTED, GRACE

OPENING = 60.0
"""Seconds that a database may take to be opened."""
ANSWER = 4_000_000
"""Bytes of JSON of one answer; rows beyond that are left out, and the answer is marked as truncated."""
SETTLING = 0.2
"""Seconds that a worker may take to let go of the last query, from when the next one comes; else it is replaced."""
_SAID = 2_000


class Engine:
    """A worker process, started when it is first asked and again when it was killed. For one thread at a time.

    setup: what the worker is told of its database, over a pipe, so that no password stands in a list of processes.
    memory: MB that the worker may use beyond what it has once the database is open. spent: whether its process has been
    killed, and `refresh` has something to do.
    """

    def __init__(self, name: str, setup: Mapping[str, Json], memory: int) -> None:
        self._name = name
        self._setup = {**setup, "memory": memory << 20, "answer": ANSWER}
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self.spent = False
        self._ready = False
        self._settled = True
        self._was_open = False
        self._left = b""
        self._last_rites: weakref.finalize[..., Any] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's; None where there is none."""
        return self._process.pid if self._process else None

    def ask(self, request: Mapping[str, Json], seconds: float, abandoned: threading.Event) -> dict[str, Json]:
        """The worker's answer. Opening the database for the first time comes on top of the seconds.

        abandoned: set, before `interrupt`, when nobody waits for the answer any more.
        Raises `QueryError` where the query failed, was too slow or too large, `GraphError` where the database failed.
        """
        if not self._was_open:
            self._open(None)
        deadline = time.monotonic() + seconds + GRACE
        self.refresh()
        if not self._settled and not self._receive(time.monotonic() + SETTLING):
            self.stop()
        self._open(deadline)
        if abandoned.is_set():
            raise QueryError("The query was given up before it was asked.", "failed")
        left = max(0.05, min(seconds, deadline - GRACE - time.monotonic()))
        self._send({**request, "seconds": left})
        answer = self._receive(deadline)
        if answer is None:
            self._spend()
            raise QueryError(_slow(seconds), "slow")
        if not answer:
            raise self._death(seconds)
        self._settled = False
        return self._taken(answer, seconds)

    def interrupt(self) -> None:
        """Ends what is running, from any other thread; who asked is told by an error."""
        if process := self._process:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def refresh(self) -> None:
        """Starts a process in the place of one that is spent, so that it opens the database while nobody waits."""
        if self.spent:
            self._start()

    def stop(self) -> None:
        """Ends the process, from the thread that asks, or when none does any more."""
        if self._last_rites:
            self._last_rites()
        self._process, self._ready, self._settled, self._left, self._last_rites = None, False, True, b"", None
        self.spent = False

    def _spend(self) -> None:
        """Kills the process without waiting for its end, as somebody waits for an answer."""
        self.interrupt()
        self.spent = True

    def _taken(self, answer: dict[str, Json], seconds: float) -> dict[str, Json]:
        error = answer.get("error")
        if error is None:
            return answer
        if error["kind"] == "gone":
            self.stop()
            raise GraphError(error["message"])
        if error["kind"] == "large":
            self._spend()  # what it took may not all have been given back
        message = error["message"] or (_slow(seconds) if error["kind"] == "slow" else _large(self._memory))
        raise QueryError(message, error["kind"], error["line"], error["column"])

    def _start(self) -> None:
        """A new process in the place of the old one; it opens the database while nobody waits for it."""
        self.stop()
        command = [sys.executable, "-P", "-m", "mulligan.graphs._worker"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
            "MALLOC_ARENA_MAX": "2",  # an arena for each core would count as memory in use
        }
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", env=environment, start_new_session=True
            )
        except OSError as error:
            raise GraphError(f"No process could be started to ask {self._name}: {error.strerror}.") from None
        self._process = process
        self._last_rites = weakref.finalize(self, _end, process)
        self._send(self._setup)

    def _open(self, deadline: float | None) -> None:
        """Has a worker with an open database. Without a deadline, it may take as long as opening may."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        if self._ready:
            return
        answer = self._receive(deadline or time.monotonic() + OPENING)
        if answer is None:
            if deadline is None:
                self.stop()
                raise GraphError(f"{self._name} could not be opened within {OPENING:.0f} s.")
            raise GraphError(f"{self._name} is being opened again, after a query that was stopped: ask again.")
        if not answer:
            raise GraphError(str(self._death(0, opening=True)))
        self._taken(answer, 0)
        self._ready = self._was_open = True

    def _send(self, message: Mapping[str, Json]) -> None:
        """Raises `QueryError` for what is no JSON. That the worker has died is noticed when it does not answer."""
        try:
            line = json.dumps(message, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise QueryError(f"The parameters of a query are JSON: {error}.", "failed") from None
        process = self._process
        with contextlib.suppress(OSError):
            if process and process.stdin:
                process.stdin.write(line)
                process.stdin.flush()

    def _receive(self, deadline: float) -> dict[str, Json] | None:
        """The next line as JSON; {} when the worker has died, None when the deadline has passed."""
        process = self._process
        if process is None or process.stdout is None:
            return {}
        descriptor = process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        parts, size = [self._left], len(self._left)
        while b"\n" not in parts[-1]:
            wait = deadline - time.monotonic()
            if wait <= 0 or not poll.poll(wait * 1000):
                self._left = b"".join(parts)
                return None
            parts.append(os.read(descriptor, 1 << 20))
            size += len(parts[-1])
            if not parts[-1] or size > 4 * ANSWER:
                return {}
        line, _, self._left = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def _death(self, seconds: float, *, opening: bool = False) -> QueryError:
        """What is said of a worker that died by itself."""
        process = self._process
        if process is None:
            return QueryError("The query was given up.", "failed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        said, code = _said(process), process.returncode
        if opening:
            self.stop()
        else:
            self._spend()
        if code == -signal.SIGALRM:
            return QueryError(_slow(seconds), "slow")
        if code == EXHAUSTED:
            return QueryError(_large(self._memory), "large")
        how = signal.Signals(-code).name if code is not None and code < 0 else f"status {code}"
        what = "while it opened the database" if opening else "over this query: it may be too deep, or too large"
        return QueryError(f"The process that asks {self._name} ended ({how}) {what}.{said}", "failed")


def _slow(seconds: float) -> str:
    return (
        f"The query was stopped after {seconds:g} s. Make it smaller: begin at few nodes, bound the paths, connect "
        "every part of the pattern, add a LIMIT."
    )


def _large(memory: int) -> str:
    return (
        f"The query needs more than the {memory} MB that it may use. Make it smaller: ask for fewer rows and shorter "
        "values, add a LIMIT before what collects or sorts."
    )


def _said(process: subprocess.Popen[bytes]) -> str:
    """The end of what it said on stderr, for a person who has to find out."""
    if process.stderr is None or not select.select([process.stderr], [], [], 0)[0]:
        return ""
    text = os.read(process.stderr.fileno(), 1 << 16).decode("utf-8", "replace").strip()
    return f" It said: {text[-_SAID:]}" if text else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            if pipe:
                pipe.close()
