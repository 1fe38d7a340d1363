"""The loopback provider as tests use it: a process of its own, told over HTTP what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked import forked

SERVER = Path(__file__).parent / "provider_server.py"
KEY = "sk-test-0123456789abcdefSECRET"


@dataclass(frozen=True)
class Wire:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def plays(self, *entries: Any) -> None:
        """From now on the server does this, and has seen nothing."""
        self._call("PUT", "/_script", list(entries))

    def release(self) -> None:
        """Let out the answers that are held."""
        self._call("PUT", "/_release")

    @property
    def log(self) -> dict[str, Any]:
        return self._call("GET", "/_log")

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.log["requests"]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request["body"] for request in self.requests]

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)


@contextmanager
def running(*options: str) -> Generator[Wire]:
    command = [sys.executable, str(SERVER), *options]
    with forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Wire(int(process.stdout.readline()))
        finally:
            process.kill()


class Naps:
    """A sleep that only notes for how long, and a chance that never varies anything."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    @staticmethod
    def chance() -> float:
        return 1.0


def patience(reply: Mapping[str, Any]) -> float:
    """Seconds of a time-out: few only for a server that does not answer in time, as a busy machine is slow, too."""
    return 1.0 if reply.get("hang") or "drip" in reply else 30.0
