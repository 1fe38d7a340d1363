"""Errors that hooks kept from their agents, also where the journal cannot be written: a full disk, a lost folder."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mulligan.core.home import home_path
from mulligan.core.light import NamedTuple

FALLBACK = "hooks-errors.txt"
"""Keeps the last errors where `hooks.db` cannot be written. Its blocks exist beforehand, so a full disk takes them."""
_ROOM, _LINE = 4096, 256


class Swallowed(NamedTuple):
    """An error that a hook kept from its agent."""

    at: float
    agent: str
    event: str
    what: str


def make_room(folder: str) -> None:
    """Makes the file whose blocks exist beforehand."""
    if not os.path.exists(file := os.path.join(folder, FALLBACK)):
        with open(file, "wb", opener=private) as opened:
            opened.write(b" " * _ROOM)


def private(path: str, flags: int) -> int:
    """Opens a file that nobody else may read if it is new."""
    return os.open(path, flags, 0o600)


def keep_line(line: str) -> None:
    """Keeps a line in the first of these files that can be written. Raises nothing."""
    for folder in _fallbacks():
        try:
            _put(os.path.join(folder, FALLBACK), line)
            return
        except OSError:
            continue


def fallback_errors() -> Sequence[Swallowed]:
    """The last errors that could not be noted in the journal, the newest first."""
    found = list[Swallowed]()
    for folder in _fallbacks():
        try:
            with open(os.path.join(folder, FALLBACK), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in filter(str.strip, lines):
            at, _, rest = line.strip().partition(" ")
            who, _, what = rest.partition(": ")
            agent, _, event = who.partition(" ")
            if at.isdigit():
                found.append(Swallowed(float(at), agent, event, what))
    return sorted(found, reverse=True)


def _fallbacks() -> Sequence[str]:
    """The user's data folder; and a folder that other users cannot write in, for a data folder that is gone."""
    return [home_path(), *filter(None, [os.environ.get("XDG_RUNTIME_DIR")])]


def _put(file: str, line: str) -> None:
    """Writes the line over the oldest one, in place: that needs no further block on the disk."""
    slots = _ROOM // _LINE
    text = (line.encode()[: _LINE - 1]).decode(errors="ignore").encode().ljust(_LINE - 1) + b"\n"
    with open(file, "r+b" if os.path.exists(file) else "w+b", opener=private) as opened:
        there = [opened.read(_LINE) for _ in range(slots)]
        ages = [int(at) if (at := one[:16].split(b" ")[0]).isdigit() else 0 for one in there]
        opened.seek(ages.index(min(ages)) * _LINE)
        opened.write(text)
