"""How to install an extra of Mulligan where it is installed now, and the error for one that is missing."""

from __future__ import annotations

import sys
from pathlib import Path

from mulligan.core.errors import InvalidInput


class MissingExtra(InvalidInput):
    """A part of Mulligan needs packages that are not installed. The message ends with the command that installs them.

    Args:
        need: what needs them, as the beginning of a sentence: "A plot needs matplotlib".
        extras: the extras of Mulligan that bring them.
    """

    def __init__(self, need: str, *extras: str) -> None:
        super().__init__(f"{need}: {install_command(*extras)}")


def install_command(*extras: str) -> str:
    """The command that installs these extras: `pip install` would reach no tool of uv or pipx."""
    wanted = f'"mulligan[{",".join(extras)}]"'
    here = Path(sys.prefix)
    if (here / "uv-receipt.toml").is_file():
        return f"uv tool install {wanted}"
    if (here / "pipx_metadata.json").is_file():
        return f"pipx install --force {wanted}"
    if "archive-v0" in here.parts or "environments-v2" in here.parts:  # where uvx unpacks what it runs
        return f"uvx --from {wanted} mulligan"
    return f"pip install {wanted}"
