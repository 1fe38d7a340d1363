"""Where Mulligan keeps what belongs to the user: one rule for the store, the weights and the workspaces."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # a type checker takes it for True; importing typing would slow down hooks

if TYPE_CHECKING:
    from pathlib import Path


def home() -> Path:
    """Returns `MULLIGAN_HOME`, or else `mulligan` in the user's data folder (XDG, or Application Support on macOS)."""
    from pathlib import Path  # not above: it would slow down hooks

    return Path(home_path())


def home_path() -> str:
    """`home()` as text."""
    if chosen := os.environ.get("MULLIGAN_HOME"):
        return os.path.expanduser(chosen)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/mulligan")
    return os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "mulligan")
