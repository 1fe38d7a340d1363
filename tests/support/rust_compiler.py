"""Whether Rust can be compiled here."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path


@cache
def rustc_runs() -> bool:
    """Whether there is a rustc that runs: that of rustup is there and cannot, where no toolchain is installed."""
    rustc = shutil.which("rustc") or str(Path("~/.cargo/bin/rustc").expanduser())
    try:
        return subprocess.run([rustc, "--version"], capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False
