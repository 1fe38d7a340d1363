"""A pool of worker processes with an engine each, because to start one takes half a second of CPU.

Threads cannot share TextWorld, which replaces sys.stdout and sys.argv, and keeps its options in modules. Fast Downward
is under the GPL, so it runs in a separate process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from mulligan.plugins import InvalidInput, WorldError
from mulligan.running import home

IDLE = 4
"""The maximum number of idle processes to keep. One takes about 150 MB."""


class Worker:
    """A worker process. game: the game that it has loaded. Only one thread may use it at a time; `ask` blocks."""

    def __init__(self, kind: str = "faster", folder: Path | None = None) -> None:
        cache_folder = (folder or home() / "cache" / "alfworld").absolute()
        self.game = ""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self._busy = threading.RLock()
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mulligan.bench.alfworld._engine.engine", str(cache_folder), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def open(self, game: str, seconds: float) -> str:
        """Load a game; returns the engine's notice, which may be empty."""
        answer = self.ask({"do": "open", "game": game}, seconds)
        self.game = game
        return answer["notice"]

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and wait for the answer. After an error the process is killed.

        Raises:
            InvalidInput: the game cannot be played.
            WorldError: the engine failed, died, or did not answer within `seconds`.
        """
        with self._busy:
            return self._answer(request, seconds)

    def _answer(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            answer = json.loads(self._line(time.monotonic() + seconds))
        except TimeoutError:
            self.kill()
            raise WorldError(f"ALFWorld's engine did not answer within {seconds:g} s and was killed.") from None
        except (OSError, ValueError, EOFError) as error:
            output = self._end_of_stderr()
            self.kill()
            raise WorldError(f"ALFWorld's engine died: {output or error}") from None
        if "error" in answer:
            self.kill()
            raise (InvalidInput if answer.get("invalid") else WorldError)(answer["error"])
        return answer

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            ready, _, _ = select.select([handle], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            if not (more := os.read(handle, 1 << 16)):
                raise EOFError("its output ended")
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _end_of_stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-500:].decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """Kill the process, from any thread. Its streams are closed once no thread waits in `ask`."""
        self._process.kill()
        with self._busy:
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._errors):
                assert stream is not None
                with contextlib.suppress(OSError):  # a request may still be in the buffer
                    stream.close()


class Workers:
    """The pool of idle workers. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        atexit.register(self.close)

    def take(self, game: str) -> Worker:
        """A worker that has the game loaded, else any idle one, else a new one."""
        with self._lock:
            self._idle = [worker for worker in self._idle if worker.alive]
            if self._idle:
                worker = next((worker for worker in self._idle if worker.game == game), self._idle[0])
                self._idle.remove(worker)
                return worker
        return Worker()

    def give(self, worker: Worker) -> None:
        with self._lock:
            if worker.alive and len(self._idle) < IDLE:
                self._idle.append(worker)
                return
        worker.kill()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()


@cache
def workers() -> Workers:
    return Workers()
