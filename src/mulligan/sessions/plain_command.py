"""Reduces a command line to its command. This is a file of its own because hooks import it at each failure."""

from __future__ import annotations

from mulligan.core.late_pattern import LatePattern

_BEFORE = LatePattern(
    r"^\s*(?:cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)|(?:export\s+)?\w+=(?:\$\([^()]*\)|\"[^\"]*\"|'[^']*'|(?!\$\()[^\s\"'])*+\s*(?:&&|;)?(?=\s)|set\s+-\w+(?:\s+pipefail)?\s*(?:&&|;)|timeout\s+\S+(?=\s))\s*",
    ("cd", "=", "set", "timeout"),
)
_AFTER = LatePattern(r"\s*(?:\d?>&\d|\d?>\s*/dev/null|&>\s*\S+)\s*$", (">",))


def plain(command: str) -> str:
    """The command without what is around it: a change of the folder, variables, the target of its output."""
    shorter = command
    while (
        (cut := _BEFORE.sub("", shorter, count=1)) != shorter
        or (cut := _AFTER.sub("", shorter)) != shorter
        or (cut := _inside(shorter)) != shorter
    ):
        shorter = cut
    return shorter.strip() or command


def _inside(command: str) -> str:
    """The command in the parentheses of a subshell; else the command itself."""
    stripped = command.strip()
    inner = stripped[1:-1]
    return inner if stripped == f"({inner})" and "(" not in inner and ")" not in inner else command
