"""Runs jobs on this machine, as confined as it allows. The other files of this folder confine it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

from mulligan.core.errors import SandboxError
from mulligan.core.protocols import Channel, Job, Ran

if sys.platform == "win32":
    raise SandboxError("Mulligan's sandbox needs Linux or macOS. On Windows, run Mulligan inside WSL 2.")

from mulligan.sandbox import kernel, policy
from mulligan.sandbox.client import Begun
from mulligan.sandbox.detect import choose, fallback
from mulligan.sandbox.levels import NONE, Level
from mulligan.sandbox.process import Process

_holding: ContextVar[bool] = ContextVar("mulligan_sandbox_slot", default=False)


class LocalSandbox:
    """A `Sandbox` on this machine.

    A job started inside an open one needs no slot of its own, so that nesting cannot lock up. An unconfined job is the
    user's own and never waits. If it names folders in `writable`, it can write to no others, where Landlock is there
    and `level` is not "none"; its `Ran.level` then is "unconfined+landlock-writes", else "none".

    Args:
        level: "auto" takes the strongest level that works here (tried once per process with a small job); "strict" the
            same but nothing below "landlock+seccomp+unprivileged"; any other value is the name of a level
            (`levels.LEVELS`).
        parallel: confined jobs at the same time. None is the number of CPUs.

    Attributes:
        fallback: a sentence that says what is not confined, if "auto" had to take a level that leaves files open.

    Raises:
        SandboxError: the level does not work here; the error says what would raise it.
    """

    def __init__(self, *, level: str = "auto", parallel: int | None = None) -> None:
        self._level = choose(level)
        self.level = self._level.name
        self.fallback = fallback(self._level) if level == "auto" else ""
        self._parallel = parallel or os.cpu_count() or 1
        self._slots: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )

    async def run(self, job: Job) -> Ran:
        """Run to the end. Standard error ends with a line of the sandbox's own when the job was killed.

        Raises `InvalidInput` for a job that no sandbox could run, `SandboxError` when this one could not start it.
        """
        async with self._slot(job), self._started(job, lines=False) as process:
            return await _finished(process, job)

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncGenerator[Channel]:
        """Start the job and talk to it. Its standard error is thrown away; a longer line than `job.output` is cut."""
        async with self._slot(job), self._started(job, lines=True) as process:
            yield process

    @asynccontextmanager
    async def _started(self, job: Job, *, lines: bool) -> AsyncGenerator[Process]:
        process = await Process.start(job, self.level_for(job), lines=lines)
        try:
            yield process
        finally:
            await process.end()

    def level_for(self, job: Job) -> Level:
        """The isolation that the job gets."""
        if job.confined or self._level is NONE:
            return self._level
        return policy.unconfined(job, kernel.landlock_abi())

    @asynccontextmanager
    async def _slot(self, job: Job) -> AsyncGenerator[None]:
        if not job.confined or _holding.get():
            yield
            return
        slots = self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._parallel))
        async with slots:
            _holding.set(True)
            try:
                yield
            finally:
                _holding.set(False)


class BegunSandbox:
    """A `Sandbox` for the one job that runs already. level: the isolation that it was started with."""

    def __init__(self, begun: Begun, level: str) -> None:
        self._begun, self.level = begun, level

    async def run(self, job: Job) -> Ran:
        """Wait for its end. job: says how long, and how much of its output is kept."""
        process = await Process.adopt(self._begun, job, self.level)
        try:
            return await _finished(process, job)
        finally:
            await process.end()

    def open(self, job: Job) -> AbstractAsyncContextManager[Channel]:
        raise SandboxError("This job was started without a channel.")


async def _finished(process: Process, job: Job) -> Ran:
    started = time.monotonic()
    out, err, ended = await process.finish(job.stdin)
    here = f"{process.scratch}/"  # another each time: what is said of a job must not differ for it
    note = _note(ended.signal, ended.reason, job)
    return Ran(
        exit_code=ended.exit_code,
        stdout=out.text().replace(here, ""),
        stderr=err.text().replace(here, "") + note,
        timed_out=ended.reason == "time",
        truncated=out.truncated or err.truncated,
        seconds=time.monotonic() - started,
        level=process.level,
    )


def _note(number: int, reason: str, job: Job) -> str:
    if reason == "time":
        return f"\n[sandbox] killed after {job.seconds:g} seconds\n"
    if reason:
        return f"\n[sandbox] killed: {reason}\n"
    if number:
        name = str(number)
        with contextlib.suppress(ValueError):
            name = signal.Signals(number).name
        return f"\n[sandbox] ended by {name}\n"
    return ""
