"""Finds and removes what episodes leave behind: folders, states as refs, worktree entries in the user's repositories.

All of it has the episode's id in its name. The branch of a result belongs to the user, and is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.workspace._checkout import remove
from mulligan.workspace._git import Git, GitFailed
from mulligan.workspace._user import find

# The prefix of the refs of all states; the episode's id follows.
REFS = "refs/mulligan"


@dataclass
class Leftovers:
    """What one episode has left on the disk.

    Attributes:
        folder: its data folder, if any.
        worktrees: git's folders for its worktrees.
        refs: the names of its states, by repository.
    """

    episode: str
    folder: Path | None = None
    worktrees: list[str] = field(default_factory=list[str])
    refs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def working(self) -> bool:
        """Whether a working folder, or git's entry for it, still exists."""
        return bool(self.worktrees) or (self.folder is not None and any(_working(self.folder)))

    @property
    def ours(self) -> bool:
        """Whether it is in our data, or points there. Refs alone may belong to another store."""
        return self.folder is not None or bool(self.worktrees)

    @property
    def in_use(self) -> bool:
        """Whether a living process works there."""
        with _locked(self.folder) as free:
            return not free

    def remove(self, *, states: bool = True) -> bool:
        """Removes it, unless a living process works there. Returns whether it was removed.

        states: also remove the refs, and a copy's history.
        """
        with _locked(self.folder) as free:
            if not free:
                return False
            if self.folder is not None:
                clear(self.folder)
            for worktree in self.worktrees:
                remove(worktree)
            if not states:
                return True
            for repository, names in self.refs.items():
                orders = "".join(f"delete {name}\n" for name in names)
                Git(repository)("update-ref", "--stdin", given=orders.encode())
            if self.folder is not None:
                remove(str(self.folder))
        return True


def leftovers(data: Iterable[str], repositories: Iterable[str]) -> dict[str, Leftovers]:
    """What each episode has left in these data folders, in these repositories (git folders), and in the repositories
    that the working folders point to."""
    by_episode: dict[str, Leftovers] = {}
    tops, search = list(dict.fromkeys(data)), dict.fromkeys(repositories)
    for top in tops:
        for own in sorted(Path(top).iterdir()) if os.path.isdir(top) else ():
            if own.is_dir() and not own.is_symlink() and _is_of_an_episode(own):
                by_episode[own.name] = Leftovers(own.name, own)
                search.update(dict.fromkeys(str(Path(admin).parent.parent) for _, admin in _working(own) if admin))
    for repository in search:
        for episode, worktree in _worktrees(repository, tops):
            by_episode.setdefault(episode, Leftovers(episode)).worktrees.append(worktree)
        for name in _states(repository):
            episode = name.removeprefix(f"{REFS}/").partition("/")[0]
            by_episode.setdefault(episode, Leftovers(episode)).refs.setdefault(repository, []).append(name)
    return by_episode


def repository_of(folder: str) -> str | None:
    """The git folder of the repository that a folder belongs to; None if there is none that git can read."""
    try:
        return find(folder).common
    except (InvalidInput, GitFailed):
        return None


def clear(own: Path) -> None:
    """Removes the working folders in an episode's data, and the data folder, unless it holds a copy's history."""
    for folder, admin in _working(own):
        remove(str(folder))
        if admin:
            remove(admin)
    if not (own / "history.git").exists():
        remove(str(own))


def _working(own: Path) -> Iterator[tuple[Path, str]]:
    """The working folders in an episode's data, each with git's folder for the worktree, or "" if it has none."""
    for folder in [path for path in own.iterdir() if path.is_dir() and path.name.endswith(f"-{own.name}")]:
        pointer = folder / ".git"
        text = pointer.read_text() if pointer.is_file() and not pointer.is_symlink() else ""
        admin = Path(text.removeprefix("gitdir: ").strip() or "/nowhere")
        is_own_entry = admin.parent.name == "worktrees" and admin.name == folder.name
        yield folder, str(admin) if is_own_entry else ""


def _is_of_an_episode(folder: Path) -> bool:
    """Whether a folder is the data of an episode.

    It has a lock; or, if a removal was cut off, a working folder with git's entry for it or with a copy's history.
    """
    if (folder / "lock").exists():
        return True
    copy = (folder / "history.git").is_dir()
    return any(copy or admin for _, admin in _working(folder))


def _worktrees(repository: str, tops: list[str]) -> Iterator[tuple[str, str]]:
    """The episode and git's folder of each worktree of the repository that is, or was, in our data."""
    entries = Path(repository, "worktrees")
    for entry in sorted(entries.iterdir()) if entries.is_dir() else ():
        try:
            folder = Path((entry / "gitdir").read_text().strip()).parent
        except (OSError, UnicodeDecodeError):
            continue
        if str(folder.parent.parent) in tops and folder.name.endswith(f"-{folder.parent.name}"):
            yield folder.parent.name, str(entry)


def _states(repository: str) -> list[str]:
    if not os.path.isdir(repository):
        return []
    try:
        return Git(repository)("for-each-ref", "--format=%(refname)", REFS).splitlines()
    except GitFailed:  # it is no longer a repository
        return []


@contextmanager
def _locked(own: Path | None) -> Generator[bool]:
    """Tries to hold the lock of this data folder. Yields whether it was free."""
    import fcntl  # not on Windows, where importing this module should still work

    if own is None:
        yield True
        return
    try:
        lock = os.open(own / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        free = False
    else:
        free = True
    try:
        yield free
    finally:
        os.close(lock)
