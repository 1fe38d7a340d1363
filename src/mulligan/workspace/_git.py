"""Runs git without side effects for the user: no hooks, no signing, no prompts, and a private index.

All calls block: callers run them in a thread, with `in_thread`.
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

# fmt: off
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false",
    "core.safecrlf=false", "core.trustctime=true", "core.checkStat=default", "core.logAllRefUpdates=false",
    "core.quotePath=false", "index.sparse=false", "gc.auto=0", "maintenance.auto=false", "advice.addEmbeddedRepo=false",
)
# fmt: on
_INHERITED = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH")


class GitFailed(WorkspaceError):
    """git ended with an error. The message contains the command and git's own message."""


async def in_thread(do: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Calls `do`, which may block, in a thread. Raises `WorkspaceError` if the disk fails."""
    try:
        return await asyncio.to_thread(do, *args, **kwargs)
    except OSError as error:
        raise WorkspaceError(f"The workspace's files could not be read or written: {str(error)[:1000]}") from error


def environment() -> dict[str, str]:
    """The user's environment without variables that point git to another repository or index, as inside a hook."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _INHERITED}


@dataclass(frozen=True)
class Git:
    """A repository, with the files and the index that a caller uses.

    Attributes:
        folder: its git folder.
        tree: the folder of the files.
        index: the index for these files.
        worktree: the git folder of the user's own worktree, whose sparse checkout applies. None: all files exist.
        unfiltered: filters whose program is missing; their files stay in the form that git stores.
    """

    folder: str
    tree: str | None = None
    index: str | None = None
    worktree: str | None = None
    unfiltered: tuple[str, ...] = ()

    def __call__(self, *args: str, ok: tuple[int, ...] = (0,), given: bytes = b"") -> str:
        """Runs git with `given` as its input, and returns its output. Raises `GitFailed` for a status not in `ok`."""
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
        """Paths that differ from the index: changed, missing, or new and not ignored. Inner repositories end with /."""
        return list(dict.fromkeys(self.paths("ls-files", "-z", "-m", "-d", "-o", "--exclude-standard")))

    def stage(self, paths: Iterable[str]) -> None:
        """Updates these paths in the index from the tree; missing ones are removed.

        It names each path, because `git add` with an exclusion fails if the excluded path is also ignored. If a link
        has replaced a folder, the paths behind it count as missing, although the system would find files there.
        """
        all_paths = list(paths)
        missing = [path for path in all_paths if _is_missing(self.tree or "", path)]
        existing = sorted(set(all_paths) - set(missing))
        if missing:
            self.forget(missing)
        if existing:
            self("update-index", "-z", "--add", "--remove", "--replace", "--stdin", given=listed(existing))

    def forget(self, paths: Iterable[str]) -> None:
        """Removes these paths from the index."""
        self("update-index", "-z", "--force-remove", "--stdin", given=listed(paths))

    def filtered(self, paths: Iterable[str]) -> dict[str, str]:
        """The paths among these whose filter is missing, with its name."""
        if not self.unfiltered:
            return {}
        output = self("check-attr", "-z", "--stdin", "filter", given=listed(paths)).split("\0")
        return {path: name for path, name in zip(output[::3], output[2::3], strict=False) if name in self.unfiltered}

    def show_changed(self, above: str, state: str) -> None:
        """In a sparse checkout, also checks out the hidden paths in which `state` differs from the commit `above`."""
        hidden = {line[2:] for line in self.paths("ls-files", "-t", "-z") if line.startswith("S ")}
        if hidden:
            changed = self.paths("diff-tree", "-r", "-z", "--no-renames", "--name-only", above, state)
            paths = listed(path for path in changed if path in hidden)
            self("update-index", "--no-skip-worktree", "-z", "--stdin", given=paths)
            self("checkout-index", "-f", "-z", "--stdin", given=paths)

    def paths(self, *args: str) -> list[str]:
        """The NUL-separated paths that git prints."""
        return [path for path in self(*args).split("\0") if path]


def _is_missing(tree: str, path: str) -> bool:
    """Whether the tree itself has no file, link or submodule at this path."""
    full = os.path.join(tree, path)
    folder = os.path.dirname(full)
    if not os.path.lexists(full) or os.path.realpath(folder) != folder:
        return True
    return os.path.isdir(full) and not os.path.islink(full) and not os.path.exists(os.path.join(full, ".git"))


def listed(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def inside(folder: str, *args: str) -> str:
    """Git's output in this folder, whichever repository it belongs to."""
    return _run(list(args), folder, {}).decode("utf-8", "surrogateescape")


def missing_filters(folder: str) -> tuple[str, ...]:
    """The filters, such as git-lfs, that git requires in this folder but whose program is missing."""
    required, missing = set[str](), set[str]()
    settings = ask(folder, "config", "--get-regexp", r"^filter\..*\.(process|smudge|clean|required)$")
    if not settings:
        return ()
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), ask(folder, "--exec-path"))))
    for line in settings.splitlines():
        key, _, value = line.partition(" ")
        name, _, what = key.removeprefix("filter.").rpartition(".")
        if what == "required":
            (required.discard if value.lower() in ("false", "no", "off", "0") else required.add)(name)
        elif word := re.match(r"""(?:"([^"$`\\]+)"|'([^']+)'|([\w./~+-]+))(?=\s|$)""", value):  # else shell syntax
            program = os.path.expanduser(word[word.lastindex or 0])
            if not shutil.which(program, path=path):
                look_up = ["sh", "-c", 'command -v "$0"', program]  # it may be a builtin of the shell
                if subprocess.run(look_up, capture_output=True, check=False).returncode:
                    missing.add(name)
    return tuple(sorted(required & missing))


def ask(folder: str, *args: str) -> str | None:
    """Git's output in this folder without the last line break; None if git fails."""
    try:
        return inside(folder, *args).rstrip("\n")
    except GitFailed:
        return None


def _run(args: list[str], cwd: str, env: Mapping[str, str], ok: tuple[int, ...] = (0,), given: bytes = b"") -> bytes:
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    variables = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    for who in ("AUTHOR", "COMMITTER"):
        variables |= {f"GIT_{who}_NAME": "Mulligan", f"GIT_{who}_EMAIL": "mulligan@localhost"}
    try:
        result = subprocess.run(
            ["git", *settings, *args],
            cwd=cwd,
            env={**environment(), **variables, **env},
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        if not Path(cwd).is_dir():
            raise GitFailed(f"There is no folder {cwd}.") from error
        raise InvalidInput("git is not installed, or not on PATH: command-line agents need it.") from error
    if result.returncode not in ok:
        message = result.stderr.decode("utf-8", "replace").strip() or f"status {result.returncode}"
        raise GitFailed(f"git {' '.join(args)[:200]} failed in {cwd}: {message[-1000:]}")
    return result.stdout
