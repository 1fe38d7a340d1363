"""Which goal stands for a folder, and whether anything in the folder has changed.

A goal is bound to the real path of a folder and to git's folder there, which all worktrees share. What a configuration
claims of the project counts nothing.
"""

from __future__ import annotations

import os

from mulligan.workspace.git_files import repository

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mulligan.goals.database import Row

_MOST = 20_000
"""Files of a folder without git that are looked at."""
_QUIET = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false")
_LISTS = (
    ("ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"),
    ("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"),
)
"""What differs from the index or is new; and what is ignored, with a folder that is ignored as one entry."""


class Place:
    """A folder as goals know it.

    Attributes:
        folder: its real path.
        common: git's folder, which all worktrees share; "" without git.
        top: the top of the working tree; the folder itself without git.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        here = repository(self.folder)
        is_own = here is not None and here.own  # a link to somebody else's repository is no worktree of it
        self.common, self.top = (here.common, here.top) if here and is_own else ("", self.folder)

    @property
    def prefix(self) -> str:
        """The folder as seen from the top."""
        inside = os.path.relpath(self.folder, self.top)
        return "" if inside == "." else inside

    def goal(self, goals: Iterable[Row]) -> Row | None:
        """The goal that stands here: that of the nearest folder upwards, here or in another worktree."""
        fitting = [goal for goal in goals if self._holds(goal)]
        return max(fitting, key=lambda goal: (len(goal.prefix), goal.made), default=None)

    def where(self, goal: Row) -> str:
        """The folder in which the goal's check runs for a session here: the same of this worktree."""
        return goal.folder if not goal.common or self._below(goal.folder) else os.path.join(self.top, goal.prefix)

    def _holds(self, goal: Row) -> bool:
        if self._below(goal.folder):
            return True
        inside = os.path.join(self.top, goal.prefix) if goal.prefix else self.top
        return bool(goal.common) and goal.common == self.common and self._below(inside)

    def _below(self, folder: str) -> bool:
        return self.folder == folder or self.folder.startswith(os.path.join(folder, ""))


def fingerprint(folder: str) -> str:
    """A text that changes with the files of a folder: tracked and new ones, and ignored ones outside ignored folders.

    It goes by sizes and times, of which nobody sets the last (ctime).
    """
    import hashlib  # while the worker starts, as `subprocess`

    listings = _listed(folder)
    if None in listings:
        paths: Sequence[str] = list(_walked(folder))
        state = ""
    else:
        changed, ignored = ((listing or "").split("\0") for listing in listings)
        paths = [path for path in (*changed, *ignored) if path and not path.endswith("/")]
        git = repository(folder)
        state = git.head if git else ""
    digest = hashlib.sha256(state.encode())
    for path in sorted(set(paths)):
        try:
            status = os.lstat(os.path.join(folder, path))
            digest.update(
                f"{path}\0{status.st_mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\0".encode(
                    errors="surrogateescape"
                )
            )
        except OSError:
            digest.update(f"{path}\0gone\0".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def _listed(folder: str) -> list[str | None]:
    """What git says of `_LISTS`; None where it refuses. No program of the repository's configuration runs."""
    import subprocess

    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        processes = [
            subprocess.Popen(
                ["git", *_QUIET, *words],
                cwd=folder,
                env={**environ, "GIT_OPTIONAL_LOCKS": "0"},
                stdin=null,
                stdout=pipe,
                stderr=null,
            )
            for words in _LISTS
        ]
    except OSError:
        return [None]
    outputs = [process.communicate()[0] for process in processes]
    return [
        None if process.returncode else text.decode("utf-8", "surrogateescape")
        for process, text in zip(processes, outputs, strict=True)
    ]


def _walked(folder: str) -> Iterator[str]:
    """The files of a folder without git, hidden folders left out."""
    remaining, folders = _MOST, [folder]
    while folders and remaining > 0:
        try:
            entries = sorted(os.scandir(folders.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            remaining -= 1
            if entry.is_dir(follow_symlinks=False):
                folders += (
                    [] if entry.name.startswith(".") or entry.name in ("node_modules", "__pycache__") else [entry.path]
                )
            else:
                yield os.path.relpath(entry.path, folder)
