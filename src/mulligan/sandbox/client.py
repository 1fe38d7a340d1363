"""Mulligan's end of the supervisor: starts the server once per process, and hands it jobs.

Wire: to the server, one byte with four descriptors (control, stdin, stdout, stderr); on control, a length of 8 bytes
and the marshalled `Spec`. The supervisor answers with one line when all is over: "exited CODE",
"killed SIGNAL REASON" or "failed MESSAGE". Closing the control socket gives the job up.
"""

from __future__ import annotations

import atexit
import marshal
import os
import socket
import sys
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False  # the check of a goal waits for what is imported here

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

# Imports the supervisor without the packages' own `__init__`, so that the process stays small and quick to fork.
_BOOT = """
import os, sys, types, socket
os.chdir("/")
os.closerange(3, 4096)
for name, folder in (("mulligan", sys.argv[1]), ("mulligan.core", sys.argv[1] + "/core"),
                     ("mulligan.sandbox", sys.argv[1] + "/sandbox")):
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module
from mulligan.sandbox.supervisor import serve
if serve(socket.socket(fileno=0)):
    try:
        exec(sys.orig_argv[-1], vars(sys.modules["__main__"]))
    except Exception as error:
        sys.excepthook(type(error), error.with_traceback(error.__traceback__.tb_next), None)
        sys.exit(1)
"""
_STOP_SECONDS = 10.0


class _Server:
    """The server process of this Mulligan process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._socket: socket.socket | None = None
        self._owner = 0

    def prepare(self) -> None:
        """Start it now, so that the first job need not wait for it."""
        with self._lock:
            if self._owner != os.getpid():
                self._start()

    def submit(self, fds: list[int]) -> None:
        with self._lock:
            if self._owner != os.getpid():
                self._start()
            try:
                self._send(fds)
            except (BrokenPipeError, ConnectionResetError):
                self._start()
                self._send(fds)

    def _send(self, fds: list[int]) -> None:
        assert self._socket is not None
        socket.send_fds(self._socket, [b"j"], fds)

    def _start(self) -> None:
        if self._owner == os.getpid():
            self._stop()
        here, there = socket.socketpair()
        folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
        try:
            process = os.posix_spawn(  # without `subprocess`, whose import takes as long as the rest of this module's
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _BOOT, folder],
                {"LANG": "C.UTF-8"},  # as its jobs have
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, there.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
        except OSError as error:
            from mulligan.core.errors import SandboxError

            raise SandboxError(f"The sandbox's supervisor could not be started: {error}") from error
        finally:
            there.close()
        self._process, self._socket, self._owner = process, here, os.getpid()

    def _stop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        until = time.monotonic() + _STOP_SECONDS
        with suppress(ChildProcessError):
            while self._process and not os.waitpid(self._process, os.WNOHANG)[0] and time.monotonic() < until:
                time.sleep(0.001)
        self._process, self._socket = 0, None

    def stop(self) -> None:
        """End the server of this process, and with it nothing else: running jobs have supervisors of their own."""
        with self._lock:
            if self._owner == os.getpid():
                self._stop()
                self._owner = 0


_server = _Server()
atexit.register(_server.stop)


def prepare() -> None:
    """Start what starts jobs, before there is one."""
    _server.prepare()


class Begun:
    """A job that runs, and this end of its streams.

    Attributes:
        at: when it was started, in nanoseconds since the epoch.
    """

    def __init__(self, spec: Spec) -> None:
        """Start the job. Its standard input is empty."""
        self.at = time.time_ns()
        self.scratch = spec["scratch"]
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            self.control, first = submit(spec, null, out, err)
        except BaseException:
            os.close(self.stdout)
            os.close(self.stderr)
            raise
        finally:
            for fd in (null, out, err):
                os.close(fd)
        self.control.sendall(first)


def submit(spec: Spec, stdin: int, stdout: int, stderr: int) -> tuple[socket.socket, bytes]:
    """Ask for a job. Returns its control socket and what to send over it first; the descriptors stay the caller's."""
    control, theirs = socket.socketpair()
    try:
        _server.submit([theirs.fileno(), stdin, stdout, stderr])
    except BaseException:
        control.close()
        raise
    finally:
        theirs.close()
    data = marshal.dumps(dict(spec))
    return control, len(data).to_bytes(8, "little") + data
