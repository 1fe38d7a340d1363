"""Starts and ends a server as a process, and reads its figures from the kernel. Linux only."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcp_parts.client import Client, Revision
from mcp_parts.wires import Pipes, Posts

TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Command:
    """How a server is started. port: of one that speaks HTTP; "{port}" in the command stands for it."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str]
    http: bool = False


class Running:
    """A server that runs, with its client. `started` is the wall clock's reading before it was started; `port` is 0
    unless it speaks HTTP."""

    def __init__(self, command: Command, revision: Revision, log: IO[bytes]) -> None:
        self.port = port = free_port() if command.http else 0
        words = [word.replace("{port}", str(port)) for word in command.words]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **command.environment},
        )
        try:
            if command.http:
                self._await_port(port)
            wire = Posts([port], "/mcp", revision) if command.http else Pipes(self.process)
            self.client = Client(wire, revision)
            self.tools = self.client.hello()
        except BaseException:
            self.end()
            raise

    def _await_port(self, port: int) -> None:
        until = time.perf_counter() + 30
        while time.perf_counter() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.002)
        raise RuntimeError("the server does not listen")

    def cpu(self) -> float:
        """Seconds of CPU so far, user and system, all threads, to a hundredth."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK

    def held(self) -> float:
        """MB resident now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def end(self) -> float:
        """Kills it. Returns the seconds of CPU that it took in all, to the microsecond; 0 when it had ended before."""
        spent = 0.0
        if self.process.returncode is None:
            self.process.kill()
            _, status, usage = os.wait4(self.process.pid, 0)
            self.process.returncode = os.waitstatus_to_exitcode(status)
            spent = usage.ru_utime + usage.ru_stime
        if hasattr(self, "client"):
            self.client.wire.close()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        return spent


@contextmanager
def running(command: Command, revision: Revision) -> Generator[Running]:
    """The server for the time of the block. Where something fails, the end of the server's log is told."""
    with tempfile.TemporaryFile() as log:
        try:
            one = Running(command, revision, log)
            try:
                yield one
            finally:
                one.end()
        except Exception as error:
            log.seek(0)
            error.add_note(log.read()[-2000:].decode(errors="replace"))
            raise


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
