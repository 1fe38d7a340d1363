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
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def head(folder: Path) -> Generator[str]:
    """A cluster with one machine that others reach through Ray's client, at this address."""
    gcs, client = free_port(), free_port()
    top = tempfile.mkdtemp(prefix=f"mulligan-ray-{os.getpid()}-", dir="/tmp")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={gcs}"]
    options = [f"--ray-client-server-port={client}", f"--num-cpus={CPUS}", "--include-dashboard=false"]
    more = [f"--object-store-memory={80 * 2**20}", f"--temp-dir={top}"]
    environment = {**os.environ, **ENVIRONMENT, "RAY_AUTH_MODE": "token"}
    with open(folder / "head.log", "w") as said:
        process = subprocess.Popen([*command, *options, *more], env=environment, stdout=said, stderr=said)
        try:
            until = time.monotonic() + START
            while time.monotonic() < until and not answers(client):
                time.sleep(0.1)
            yield f"ray://127.0.0.1:{client}"
        finally:
            process.terminate()
            process.wait(START)
            shutil.rmtree(top, ignore_errors=True)


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
