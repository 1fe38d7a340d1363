"""A command line without what stands around its command. A file of its own, as hooks import it at each failure."""

from __future__ import annotations

import re

_BEFORE = re.compile(
    r"^\s*(?:cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)|(?:export\s+)?\w+=(?:\$\([^()]*\)|\"[^\"]*\"|'[^']*'|(?!\$\()[^\s\"'])*+\s*(?:&&|;)?(?=\s)|set\s+-\w+(?:\s+pipefail)?\s*(?:&&|;)|timeout\s+\S+(?=\s))\s*"
)
_AFTER = re.compile(r"\s*(?:\d?>&\d|\d?>\s*/dev/null|&>\s*\S+)\s*$")


def plain(command: str) -> str:
    """The command without what stands around it: a change of the folder, variables, where its output goes."""
    shorter = command
    while (
        (cut := _BEFORE.sub("", shorter, count=1)) != shorter
        or (cut := _AFTER.sub("", shorter)) != shorter
        or (cut := _inside(shorter)) != shorter
    ):
        shorter = cut
    return shorter.strip() or command


def _inside(command: str) -> str:
    """What stands in the parentheses of a subshell; else the command itself."""
    whole = command.strip()
    inner = whole[1:-1]
    return inner if whole == f"({inner})" and "(" not in inner and ")" not in inner else command
