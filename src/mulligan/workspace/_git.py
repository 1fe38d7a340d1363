"""Runs git so that nothing of the user's fires or changes: no hooks, no signing, no prompts, an index of our own.

All calls block: callers put them in a thread, with `in_thread`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from mulligan.core.errors import InvalidInput, WorkspaceError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_QUIET = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false"),
    *("core.safecrlf=false", "core.trustctime=true", "core.checkStat=default"),
    *("core.logAllRefUpdates=false", "core.quotePath=false", "index.sparse=false", "gc.auto=0"),
    *("maintenance.auto=false", "advice.addEmbeddedRepo=false"),
)
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")


class GitFailed(WorkspaceError):
    """git ended with an error; the message holds the command and what it said."""


async def in_thread(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call `do`, which may block, in a thread. Raises `WorkspaceError` where the disk fails."""
    try:
        return await asyncio.to_thread(do, *args, **kwargs)
    except OSError as error:
        raise WorkspaceError(f"The workspace's files could not be read or written: {str(error)[:1000]}") from error


def environment() -> dict[str, str]:
    """The user's environment without what would point git at another repository or index (as inside a hook)."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}


@dataclass(frozen=True)
class Git:
    """A repository as one caller sees it.

    Attributes:
        folder: its git folder.
        tree: the files.
        index: the index to use for them.
        worktree: the git folder of the user's own worktree, whose sparse checkout counts. None: all files are there.
        unfiltered: filters whose program is missing: files stay as they are stored.
    """

    folder: str
    tree: str | None = None
    index: str | None = None
    worktree: str | None = None
    unfiltered: tuple[str, ...] = ()

    def __call__(self, *args: str, ok: tuple[int, ...] = (0,), given: bytes = b"") -> str:
        """What git prints, `given` on standard input. Raises `GitFailed` for a status that is not in `ok`."""
        return self.raw(*args, ok=ok, given=given).decode("utf-8", "surrogateescape")

    def raw(self, *args: str, ok: tuple[int, ...] = (0,), given: bytes = b"") -> bytes:
        own_settings = [] if self.worktree else ["-c", "core.sparseCheckout=false"]
        for name in self.unfiltered:
            parts = ("process=", "smudge=", "clean=", "required=false")
            own_settings += [word for part in parts for word in ("-c", f"filter.{name}.{part}")]
        where = [*own_settings, "--git-dir", self.worktree or self.folder]
        where += ["--work-tree", self.tree] if self.tree else []
        own = {"GIT_INDEX_FILE": self.index} if self.index else {}
        return _run([*where, *args], self.tree or self.folder, own, ok, given)

    def changed(self) -> list[str]:
        """Paths that differ from the index: changed, gone, or new and not ignored. A repository inside ends with /."""
        return list(dict.fromkeys(self.paths("ls-files", "-z", "-m", "-d", "-o", "--exclude-standard")))

    def stage(self, paths: Iterable[str]) -> None:
        """Take these paths into the index as they are in the tree; those that are gone are removed.

        Path by path, because `git add` with an exclusion refuses when what is excluded is ignored as well. What lies
        behind a link that took a folder's place is gone, too, though the system would find something there.
        """
        every = list(paths)
        gone = [path for path in every if _is_gone(self.tree or "", path)]
        there = sorted(set(every) - set(gone))
        if gone:
            self.forget(gone)
        if there:
            self("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=listed(there))

    def forget(self, paths: Iterable[str]) -> None:
        """Remove these paths from the index."""
        self("update-index", "-z", "--force-remove", "--stdin", given=listed(paths))

    def filtered(self, paths: Iterable[str]) -> dict[str, str]:
        """Those of these paths whose filter is missing, with its name."""
        if not self.unfiltered:
            return {}
        told = self("check-attr", "-z", "--stdin", "filter", given=listed(paths)).split("\0")
        return {path: name for path, name in zip(told[::3], told[2::3], strict=False) if name in self.unfiltered}

    def show_changed(self, above: str, state: str) -> None:
        """Of a sparse checkout, also show the paths outside its part in which `state` differs from `above`."""
        hidden = {line[2:] for line in self.paths("ls-files", "-t", "-z") if line.startswith("S ")}
        if hidden:
            changed = self.paths("diff-tree", "-r", "-z", "--no-renames", "--name-only", above, state)
            shown = listed(path for path in changed if path in hidden)
            self("update-index", "--no-skip-worktree", "-z", "--stdin", given=shown)
            self("checkout-index", "-f", "-z", "--stdin", given=shown)

    def paths(self, *args: str) -> list[str]:
        """The NUL-separated paths that git prints."""
        return [path for path in self(*args).split("\0") if path]


def _is_gone(tree: str, path: str) -> bool:
    """Whether no file, link or submodule stands at this path of the tree itself."""
    full = os.path.join(tree, path)
    folder = os.path.dirname(full)
    if not os.path.lexists(full) or os.path.realpath(folder) != folder:
        return True
    return os.path.isdir(full) and not os.path.islink(full) and not os.path.exists(os.path.join(full, ".git"))


def listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def inside(folder: str, *args: str) -> str:
    """What git prints in this folder, whichever repository it belongs to."""
    return _run(list(args), folder, {}).decode("utf-8", "surrogateescape")


def missing_filters(folder: str) -> tuple[str, ...]:
    """The filters that git requires in this folder, such as git-lfs, and whose program is not found."""
    required, missing = set[str](), set[str]()
    told = ask(folder, "config", "--get-regexp", r"^filter\..*\.(process|smudge|clean|required)$")
    if not told:
        return ()
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), ask(folder, "--exec-path"))))
    for line in told.splitlines():
        key, _, value = line.partition(" ")
        name, _, what = key.removeprefix("filter.").rpartition(".")
        if what == "required":
            (required.discard if value.lower() in ("false", "no", "off", "0") else required.add)(name)
        elif word := re.match(r"""(?:"([^"$`\\]+)"|'([^']+)'|([\w./~+-]+))(?=\s|$)""", value):  # else a shell's
            program = os.path.expanduser(word[word.lastindex or 0])
            asked = ["sh", "-c", 'command -v "$0"', program]  # a builtin
            if (
                not shutil.which(program, path=path)
                and subprocess.run(asked, capture_output=True, check=False).returncode
            ):
                missing.add(name)
    return tuple(sorted(required & missing))


def ask(folder: str, *args: str) -> str | None:
    """What git says in this folder, whichever repository it belongs to; None when it refuses."""
    try:
        return inside(folder, *args).rstrip("\n")
    except GitFailed:
        return None


def _run(args: list[str], cwd: str, env: Mapping[str, str], ok: tuple[int, ...] = (0,), given: bytes = b"") -> bytes:
    settings = [part for setting in _QUIET for part in ("-c", setting)]
    ours = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    for who in ("AUTHOR", "COMMITTER"):
        ours |= {f"GIT_{who}_NAME": "Mulligan", f"GIT_{who}_EMAIL": "mulligan@localhost"}
    try:
        ran = subprocess.run(
            ["git", *settings, *args],
            cwd=cwd,
            env={**environment(), **ours, **env},
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        if not Path(cwd).is_dir():
            raise GitFailed(f"There is no folder {cwd}.") from error
        raise InvalidInput("git is not installed, or not on PATH: command-line agents need it.") from error
    if ran.returncode not in ok:
        said = ran.stderr.decode("utf-8", "replace").strip() or f"status {ran.returncode}"
        raise GitFailed(f"git {' '.join(args)[:200]} failed in {cwd}: {said[-1000:]}")
    return ran.stdout
