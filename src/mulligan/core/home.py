"""Where Mulligan keeps what belongs to the user: one rule for the store, the weights and the workspaces."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """`MULLIGAN_HOME`, else `mulligan` in the user's data folder (XDG, or Application Support on macOS)."""
    if chosen := os.environ.get("MULLIGAN_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "mulligan"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "mulligan"
