"""A Python process without the time that its imports take: forked from one that has them all.

    with forked([sys.executable, "-m", "mulligan", "serve"], stdout=subprocess.PIPE) as process: ...

Takes what `subprocess.Popen` takes and gives a Popen: a process with its own pid, environment, folder, streams and exit
status. Most of the time of a server that a test starts is Python's imports, the same ones each time. What they are like
in a fresh process is for the tests that start one: the command's own (tests/cli), and real MCP clients.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

PRELOADED = (
    "mulligan.actors.complete",
    "mulligan.app.hosted",
    "mulligan.app.memory",
    "mulligan.bank.recall.retrieval.fused",
    "mulligan.bank.upkeep.upkeep",
    "mulligan.bank.upkeep.deduplication.semantic",
    "mulligan.bank.upkeep.merging.llm",
    "mulligan.cli.hooks.install",
    "mulligan.cli.hooks.uninstall",
    "mulligan.cli.main",
    "mulligan.cli.serve",
    "mulligan.cli.serve_paste",
    "mulligan.cli.solve",
    "mulligan.evaluators.exact_match",
    "mulligan.mcp_server.http.site",
    "mulligan.mcp_server.logs",
    "mulligan.mcp_server.server",
    "mulligan.mcp_server.stdio",
    "mulligan.mcp_server.tools.extract_memory",
    "mulligan.mcp_server.tools.memory_task",
    "mulligan.mcp_server.tools.reflexion_thinking",
    "mulligan.mcp_server.tools.retrieve_memory",
    "mulligan.mcp_server.tools.solve",
    "mulligan.mcp_server.tools.solving",
    "mulligan.models.wire",
    "mulligan.reflectors.verbal",
    "mulligan.sandbox.local",
    "mulligan.store.sqlite",
    "mulligan.strategies.evidence_and_reflexion",
    "anyio._backends._asyncio",
    "genai_prices.data",
    "openai.resources.chat.completions.completions",
    "pydantic_ai.providers.openai_compatible",
    "uvicorn.server",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.lifespan.on",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "langgraph.checkpoint.sqlite",
    "langgraph.checkpoint.sqlite.aio",
    "mulligan.langgraph.reflexion_graph",
)


def forked(command: Sequence[str], *, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[Any]:
    """Start the command, `python -m MODULE …` or `python FILE …`. Where a process cannot be forked as it would be started
    (not Linux, or another setting of Python's), it is started."""
    env = dict(os.environ if env is None else env)
    start = _Forked if sys.platform == "linux" and _of_python(env) == _of_python(os.environ) else subprocess.Popen[Any]
    return start(command, env=env, **options)


def run_forked(command: Sequence[str], *, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`, with what it says as text."""
    with forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _of_python(env: Mapping[str, str]) -> dict[str, str]:
    """What Python reads when it starts, but for where compiled modules are."""
    names = {name for name in env if name.startswith(("PYTHON", "LC_", "LANG"))}
    return {name: env[name] for name in names - {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}}


class _Forked(subprocess.Popen[Any]):
    """Where Popen forks itself and asks the system for the exit status, this one asks the parent of the new process."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        cwd, env, pipes = others[4], others[5], others[9:15]
        read, _, _, written, _, errors = pipes
        self._ended, status = os.pipe()
        order = {"arguments": args[1:], "cwd": cwd or os.getcwd(), "env": env}
        streams = [n if fd == -1 else fd for n, fd in enumerate((read, written, errors))]
        self.pid = _parent().fork(order, [*streams, status])
        self._child_created = True
        os.close(status)
        self._close_pipe_fds(*pipes)  # pyright: ignore

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._ended], (), (), 0)[0]:
            return 0, 0
        said = os.read(self._ended, 20)
        os.close(self._ended)
        return self.pid, int(said)

    def _internal_poll(self, _deadstate: Any = None, **_: Any) -> int | None:
        with self._waitpid_lock:  # pyright: ignore
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class _Parent:
    """The process that forks, as its client sees it."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process is forked while it has one thread
            self._process = subprocess.Popen(command, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        atexit.register(self.close)

    def fork(self, order: Any, files: Sequence[int]) -> int:
        with self._lock:
            socket.send_fds(self._orders, [json.dumps(order, default=os.fspath).encode()], files)
            return int(self._orders.recv(20))

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


_parent = functools.cache(_Parent)


def _noted(number: int, frame: object) -> None:
    """Nothing to do: the number is written to the descriptor that wakes the loop."""


def _next_order(orders: socket.socket) -> tuple[Any, list[int]]:
    """Fork for each order, and tell how each child ended. Returns in the children."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, _noted)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the tests
    signal.set_wakeup_fd(wakes)
    ends: dict[int, int] = {}
    while True:
        ready = select.select([orders, woken], (), ())[0]
        if woken in ready:
            os.read(woken, 1000)
            with suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    with suppress(BrokenPipeError):  # nobody wants to know
                        os.write(ends[ended[0]], str(ended[1]).encode())
                    os.close(ends.pop(ended[0]))
        if orders in ready:
            text, files, _, _ = socket.recv_fds(orders, 1 << 20, 4)
            if not text:
                os._exit(0)
            if (pid := os.fork()) == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                return json.loads(text), files
            ends[pid] = files.pop()
            for file in files:
                os.close(file)
            orders.send(str(pid).encode())


def _main() -> None:
    """As a process that has imported everything; and, in each child, as the process that was asked for."""
    for name in PRELOADED:
        with suppress(ModuleNotFoundError):  # what an older version of a package does not have
            importlib.import_module(name)
    gc.freeze()
    order, files = _next_order(socket.socket(fileno=int(sys.argv[1])))
    for stream, file in enumerate(files[:3]):
        os.dup2(file, stream)
    os.closerange(3, 1 << 16)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os._exit(_ended(*order["arguments"]))


def _ended(first: str, *arguments: str) -> int:
    """The exit status of what Python runs for these arguments. Only the modules are not taken apart at the end, which
    takes a while for so many."""
    status: Any = 0
    try:
        if first == "-m":
            sys.path[0], sys.argv = os.getcwd(), list(arguments)
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0], sys.argv = os.path.dirname(first), [first, *arguments]
            runpy.run_path(first, run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # pyright: ignore
    atexit._run_exitfuncs()  # pyright: ignore
    sys.stdout.flush()
    if status is None or isinstance(status, int):
        return status or 0
    print(status, file=sys.stderr)
    return 1


if __name__ == "__main__":
    _main()
