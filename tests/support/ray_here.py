"""A Ray on this machine for tests, started once, because that takes a while."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NEEDED = 'needs ray: pip install -c constraints.txt -e ".[ray]"'
CPUS = 2
START = 90.0
"""Seconds that a cluster may take until it answers, on a machine that is busy."""
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_TOKEN": "0123456789abcdef" * 4,
    "RAY_worker_niceness": "0",
    "OPENAI_API_KEY": "none",  # workers have keys from where Ray was started
}

_folders: list[str] = []


@cache
def ray() -> Any:
    """The module, connected. Skips the test where the package is absent."""
    if find_spec("ray") is None:
        pytest.skip(NEEDED)
    found: Any = import_module("ray")
    _folders.append(tempfile.mkdtemp(prefix=f"mulligan-ray-{os.getpid()}-", dir="/tmp"))
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    try:
        found.init(
            "local",
            num_cpus=CPUS,
            include_dashboard=False,
            object_store_memory=80 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=_folders[0],
        )
    finally:
        for name in ENVIRONMENT:
            os.environ.pop(name)
        os.environ.update({name: value for name, value in before.items() if name in ENVIRONMENT})
    return found


@dataclass(frozen=True)
class Cluster:
    """Its address for a machine that belongs to it, and that for Ray's client. environment: of commands that use it."""

    address: str
    client: str
    environment: Mapping[str, str]


@contextmanager
def cluster(folder: Path, machines: int = 0) -> Generator[Cluster]:
    """A cluster of processes on this machine. machines: Rays with a CPU each beside a head without; 0: the head alone."""
    ports, top = [free_port(), free_port()], tempfile.mkdtemp(prefix=f"mulligan-ray-{os.getpid()}-", dir="/tmp")
    environment = {**os.environ, **ENVIRONMENT, "RAY_AUTH_MODE": "token"}
    common = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--object-store-memory={80 * 2**20}"]
    head = ["--head", f"--port={ports[0]}", f"--ray-client-server-port={ports[1]}", f"--temp-dir={top}"]
    head += ["--include-dashboard=false", f"--num-cpus={0 if machines else CPUS}"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, options in enumerate([head, *[[f"--address=127.0.0.1:{ports[0]}", "--num-cpus=1"]] * machines]):
            log = folder / f"ray-{number}.log"
            with log.open("w") as said:
                started.append(subprocess.Popen([*common, *options], env=environment, stdout=said, stderr=said))
            wait_for(lambda log=log: "Ray runtime started." in log.read_text(), log)
        wait_for(lambda: answers(ports[1]), folder / "ray-0.log")
        yield Cluster(f"ray:127.0.0.1:{ports[0]}", f"ray://127.0.0.1:{ports[1]}", environment)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(START)
        shutil.rmtree(top, ignore_errors=True)


def wait_for(there: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + START
    while not there():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def stop() -> None:
    """Ends the Ray that `ray` started, if it did."""
    if _folders:
        import_module("ray").shutdown()
        shutil.rmtree(_folders.pop(), ignore_errors=True)
