"""A process that has everything imported forks a child for each order, and a test kills the child.

The two talk in lines of JSON. The test writes an order; the process answers {"pid": N}, {"ready": true} as soon as the
child has its lease, and {"exit": STATUS, "said": TEXT} when it has ended, whether it was ready or not.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MODELS = ("pydantic_ai.models.openai", "pydantic_ai.providers.openai")
"""What a child imports that asks a provider."""


def tell(**what: Any) -> None:
    """Write a line of JSON to the test, from the process or from a child."""
    os.write(1, (json.dumps(what) + "\n").encode())


def serve(
    preloaded: Sequence[str],
    work: Callable[[dict[str, Any]], Coroutine[Any, Any, str]],
    said: Callable[[dict[str, Any]], Path],
) -> None:
    """Fork a child for each order on stdin, until it ends.

    Args:
        preloaded: Modules that are imported before the fork, so that a child does not spend its short life on it.
        work: What the child does with the order; returns what it has to say.
        said: A file of the order's own, in which the child leaves that.
    """
    for name in preloaded:
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        if "port" in order:
            os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{order['port']}/v1"
            os.environ["OPENAI_API_KEY"] = "none"
        out = said(order)
        out.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            out.write_text(asyncio.run(work(order)))
            os._exit(0)
        tell(pid=pid)
        _, status = os.waitpid(pid, 0)
        tell(exit=os.waitstatus_to_exitcode(status), said=out.read_text() if out.exists() else "")


class Forking:
    """Runs the script that calls `serve`, and the provider server that its children ask, if there are answers for it."""

    def __init__(self, script: Path, folder: Path | None = None, answers: Sequence[Mapping[str, Any]] = ()) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self.port = self._server(folder, answers) if folder else 0
        self.process = self._run(script)
        self.ended: dict[str, Any] | None = None

    def start(self, **order: Any) -> int:
        """Begin a child; return its pid, once it has its lease or has ended without one."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"port": self.port, **order} if self.port else order) + "\n")
        self.process.stdin.flush()
        told: dict[str, Any] = {}
        while "pid" not in told or not {"ready", "exit"} & set(told):
            told |= self.hear()
        self.ended = {key: told[key] for key in ("exit", "said")} if "exit" in told else None
        return told["pid"]

    def end(self) -> dict[str, Any]:
        """Wait for the end of the child; return {"exit": STATUS, "said": TEXT}."""
        return self.ended or self.hear()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def asked(self) -> list[str]:
        """The newest message of each request to the provider server so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_log", timeout=10) as log:
            return [str(request["body"]["messages"][-1]["content"]) for request in json.load(log)["requests"]]

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate(timeout=10)

    def _server(self, folder: Path, answers: Sequence[Mapping[str, Any]]) -> int:
        file = folder / "answers.json"
        file.write_text(json.dumps(answers))
        server = self._run(HERE / "provider_server.py", "--answers", str(file))
        assert server.stdout is not None
        return int(server.stdout.readline())

    def _run(self, script: Path, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), *arguments]
        made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(made)
        return made


@contextmanager
def killed_after(pid: int, seconds: float) -> Generator[None]:
    """Kill the process after that time, by another process that knows nothing of what it does."""
    with subprocess.Popen(["sh", "-c", f"sleep {seconds:.4f}; kill -9 {pid} 2>/dev/null"]) as killer:
        try:
            yield
        finally:
            killer.kill()
