"""Turns of a session as rules get them."""

from mulligan.core.turns import Turn


def call(id: str, tool: str, command: str, output: str, failed: bool | None = False, at: float = 0.0) -> Turn:
    """A call that has come back."""
    return Turn("tool", output, tool, id, failed, at, command=command, output=output)
