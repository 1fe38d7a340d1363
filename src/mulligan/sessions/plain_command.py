"""A command line without what stands around its command. A file of its own, as hooks import it at each failure."""

from __future__ import annotations

import re

_BEFORE = re.compile(
    r"^\s*(?:cd\s+(?:\"[^\"]*\"|'[^']*'|[^\s;&|]+)\s*(?:&&|;)|(?:export\s+)?\w+=(?:\$\([^()]*\)|\"[^\"]*\"|'[^']*'|(?!\$\()[^\s\"'])*+\s*(?:&&|;)?(?=\s)|set\s+-\w+(?:\s+pipefail)?\s*(?:&&|;)|timeout\s+\S+(?=\s))\s*"
)
_SUBSHELL = re.compile(r"\A\s*\(([^()]*)\)\s*\Z")
_AFTER = re.compile(r"\s*(?:\d?>&\d|\d?>\s*/dev/null|&>\s*\S+)\s*$")

_AROUND = ((_BEFORE, ""), (_AFTER, ""), (_SUBSHELL, r"\1"))


def plain(command: str) -> str:
    """The command without what stands around it: a change of the folder, variables, where its output goes."""
    shorter = command
    while any((cut := of.sub(by, shorter, count=1)) != shorter for of, by in _AROUND):
        shorter = cut
    return shorter.strip() or command
