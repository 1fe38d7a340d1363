"""A Ray on this machine for tests, started once, because that takes a while."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

NEEDED = 'needs ray: pip install -c constraints.txt -e ".[ray]"'
CPUS = 2
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


def stop() -> None:
    """Ends the Ray that `ray` started, if it did."""
    if _folders:
        import_module("ray").shutdown()
        shutil.rmtree(_folders.pop(), ignore_errors=True)
