"""Runs a script as an unprivileged user, with a Python of the system's that anybody may run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

UID = 61234
SOURCE = Path(__file__).parent.parent.parent / "src"


def run_as_another(command: list[str], folder: Path) -> str:
    """What the script printed; its home is a new folder in `folder`. Skips where no such Python is found."""
    home = folder / "home"
    home.mkdir()
    os.chown(home, UID, UID)
    ran = subprocess.run(
        [_python_for_everybody(), "-B", *command],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(SOURCE)},
        cwd="/",
        user=UID,
        group=UID,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _python_for_everybody() -> str:
    """A Python of the system that another user may run, and that may read this checkout."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    asks = "import sys, mulligan.sandbox.local; sys.exit(sys.version_info < (3, 11))"
    if found is None:
        pytest.skip("no system Python here that another user could run")
    ran = subprocess.run(
        [found, "-B", "-c", asks], env={"PYTHONPATH": str(SOURCE)}, user=UID, capture_output=True, cwd="/"
    )
    if ran.returncode:
        pytest.skip("the system's Python is too old, or this checkout is closed to other users")
    return found
