"""Runs jobs as processes of this machine. First version: process group, scratch folder and limits on time and output."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mulligan.core.protocols import Channel, Job, Ran


class LocalSandbox:
    """A `Sandbox` on this machine. `level`: "auto", "strict", or the name of a level."""

    def __init__(self, *, level: str = "auto") -> None:
        self.level = "none" if level == "auto" else level

    async def run(self, job: Job) -> Ran:
        """Run to the end. Raises `SandboxError` when the job could not be started."""
        started = time.monotonic()
        scratch = _scratch(job)
        process = await _start(job, scratch, asyncio.subprocess.PIPE)
        timed_out = False
        try:
            async with asyncio.timeout(job.seconds):
                out, err = await process.communicate(job.stdin.encode())
        except TimeoutError:
            out, err, timed_out = b"", b"", True
        finally:
            await _end(process, scratch)
        return Ran(
            None if timed_out or process.returncode is None or process.returncode < 0 else process.returncode,
            out[: job.output].decode("utf-8", "replace"),
            err[: job.output].decode("utf-8", "replace"),
            timed_out,
            len(out) > job.output or len(err) > job.output,
            time.monotonic() - started,
            self.level,
        )

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncGenerator[Channel]:
        """Start the job and talk to it; its standard error is thrown away."""
        scratch = _scratch(job)
        process = await _start(job, scratch, asyncio.subprocess.DEVNULL)
        try:
            yield _Lines(process, job)
        finally:
            await _end(process, scratch)


class _Lines:
    def __init__(self, process: asyncio.subprocess.Process, job: Job) -> None:
        self._process = process
        self._ends = time.monotonic() + job.seconds

    async def send(self, line: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(line.encode() + b"\n")
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass

    async def receive(self) -> str | None:
        stdout = self._process.stdout
        assert stdout is not None
        try:
            async with asyncio.timeout(max(0.0, self._ends - time.monotonic())):
                line = await stdout.readline()
        except (TimeoutError, ValueError):
            return None
        return line.decode("utf-8", "replace").rstrip("\n") if line else None


def _scratch(job: Job) -> Path:
    scratch = Path(tempfile.mkdtemp(prefix="mulligan-"))
    for name, text in job.files.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return scratch


async def _start(job: Job, scratch: Path, stderr: int) -> asyncio.subprocess.Process:
    argv = [part.replace("{scratch}", str(scratch)) for part in job.argv]
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        cwd=job.cwd or scratch,
        env={**os.environ, **job.env},
        start_new_session=True,
        limit=job.output,
    )


async def _end(process: asyncio.subprocess.Process, scratch: Path) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    await process.wait()
    shutil.rmtree(scratch, ignore_errors=True)
