"""Errors of hooks that their agents do not see, also if the journal cannot be written: a full disk, a lost folder."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mulligan.core.home import home_path
from mulligan.core.light import NamedTuple

FALLBACK = "hooks-errors.txt"
"""Has the last errors if `hooks.db` cannot be written. Its blocks exist beforehand, so it works on a full disk."""
_FILE_BYTES, _LINE_BYTES = 4096, 256


class Swallowed(NamedTuple):
    """An error of a hook, which its agent did not see. what: its type and message."""

    at: float
    agent: str
    event: str
    what: str


def make_room(folder: str) -> None:
    """Make the file of the last errors, with all its blocks, unless it exists."""
    if not os.path.exists(file := os.path.join(folder, FALLBACK)):
        with open(file, "wb", opener=private) as opened:
            opened.write(b" " * _FILE_BYTES)


def private(path: str, flags: int) -> int:
    """Open a file, as an `opener` of `open`. A new file can be read by its owner only."""
    return os.open(path, flags, 0o600)


def keep_line(line: str) -> None:
    """Write a line to the first such file that can be written. Raises nothing."""
    for folder in _fallbacks():
        try:
            _put(os.path.join(folder, FALLBACK), line)
            return
        except OSError:
            continue


def fallback_errors() -> Sequence[Swallowed]:
    """The last errors that could not be noted in the journal, the newest first."""
    errors = list[Swallowed]()
    for folder in _fallbacks():
        try:
            with open(os.path.join(folder, FALLBACK), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in filter(str.strip, lines):
            at, _, rest = line.strip().partition(" ")
            hook, _, what = rest.partition(": ")
            agent, _, event = hook.partition(" ")
            if at.isdigit():
                errors.append(Swallowed(float(at), agent, event, what))
    return sorted(errors, reverse=True)


def _fallbacks() -> Sequence[str]:
    """The user's data folder; then, in case it is gone, another folder that only the user can write in."""
    return [home_path(), *filter(None, [os.environ.get("XDG_RUNTIME_DIR")])]


def _put(file: str, line: str) -> None:
    """Write the line over the oldest one, in place: that needs no further block on the disk."""
    text = (line.encode()[: _LINE_BYTES - 1]).decode(errors="ignore").encode().ljust(_LINE_BYTES - 1) + b"\n"
    with open(file, "r+b" if os.path.exists(file) else "w+b", opener=private) as opened:
        lines = [opened.read(_LINE_BYTES) for _ in range(_FILE_BYTES // _LINE_BYTES)]
        times = [int(start) if (start := old[:16].split(b" ")[0]).isdigit() else 0 for old in lines]
        opened.seek(times.index(min(times)) * _LINE_BYTES)
        opened.write(text)
