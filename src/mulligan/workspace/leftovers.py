"""Find and remove what episodes leave behind: folders, states as refs, worktree entries in the user's repositories.

All of it carries the episode's id in its name. A result's branch is the user's, and is never touched.
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

# Above the states of all episodes, by their ids.
REFS = "refs/mulligan"


@dataclass
class Leftovers:
    """What one episode left on disk.

    Attributes:
        folder: its data, if any.
        worktrees: git's folders for its worktree.
        refs: the names of its states, by the repository that they are in.
    """

    episode: str
    folder: Path | None = None
    worktrees: list[str] = field(default_factory=list[str])
    refs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def working(self) -> bool:
        """Whether a working folder, or git's entry for it, is still there."""
        return bool(self.worktrees) or (self.folder is not None and any(_working(self.folder)))

    @property
    def ours(self) -> bool:
        """Whether it lies in our data, or leads there. Refs alone may be those of another store."""
        return self.folder is not None or bool(self.worktrees)

    @property
    def in_use(self) -> bool:
        """Whether a living process works there."""
        with _locked(self.folder) as free:
            return not free

    def remove(self, *, states: bool = True) -> bool:
        """False, and nothing done, where a living process works. states: the refs as well, and a copy's history."""
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
    """By episode: what lies in these folders of data, and in these repositories (git folders) and those that the
    working folders lead to."""
    found: dict[str, Leftovers] = {}
    tops, search = list(dict.fromkeys(data)), dict.fromkeys(repositories)
    for top in tops:
        for own in sorted(Path(top).iterdir()) if os.path.isdir(top) else ():
            if own.is_dir() and not own.is_symlink() and _is_of_an_episode(own):
                found[own.name] = Leftovers(own.name, own)
                search.update(dict.fromkeys(str(Path(admin).parent.parent) for _, admin in _working(own) if admin))
    for repository in search:
        for episode, worktree in _worktrees(repository, tops):
            found.setdefault(episode, Leftovers(episode)).worktrees.append(worktree)
        for name in _states(repository):
            episode = name.removeprefix(f"{REFS}/").partition("/")[0]
            found.setdefault(episode, Leftovers(episode)).refs.setdefault(repository, []).append(name)
    return found


def repository_of(folder: str) -> str | None:
    """The git folder of the repository that a folder belongs to; None where there is none that git reads."""
    try:
        return find(folder).common
    except (InvalidInput, GitFailed):
        return None


def clear(own: Path) -> None:
    """Remove the working folders in an episode's data, and with the last of it the data; a copy's history stays."""
    for folder, admin in _working(own):
        remove(str(folder))
        if admin:
            remove(admin)
    if not (own / "history.git").exists():
        remove(str(own))


def _working(own: Path) -> Iterator[tuple[Path, str]]:
    """The working folders in an episode's data, each with git's folder for it as a worktree, or "" without."""
    for folder in [path for path in own.iterdir() if path.is_dir() and path.name.endswith(f"-{own.name}")]:
        pointer = folder / ".git"
        said = pointer.read_text() if pointer.is_file() and not pointer.is_symlink() else ""
        admin = Path(said.removeprefix("gitdir: ").strip() or "/nowhere")
        own_entry = admin.parent.name == "worktrees" and admin.name == folder.name
        yield folder, str(admin) if own_entry else ""


def _is_of_an_episode(folder: Path) -> bool:
    """By its lock; or, as that may be missing where a removal was cut off, by a working folder that git's entry for
    it, or a copy's history, shows to be ours."""
    if (folder / "lock").exists():
        return True
    copy = (folder / "history.git").is_dir()
    return any(copy or admin for _, admin in _working(folder))


def _worktrees(repository: str, tops: list[str]) -> Iterator[tuple[str, str]]:
    """The episode, and git's folder, of each worktree of the repository that lies, or lay, in our data."""
    entries = Path(repository, "worktrees")
    for entry in sorted(entries.iterdir()) if entries.is_dir() else ():
        try:
            place = Path((entry / "gitdir").read_text().strip()).parent
        except (OSError, UnicodeDecodeError):
            continue
        if str(place.parent.parent) in tops and place.name.endswith(f"-{place.parent.name}"):
            yield place.parent.name, str(entry)


def _states(repository: str) -> list[str]:
    if not os.path.isdir(repository):
        return []
    try:
        return Git(repository)("for-each-ref", "--format=%(refname)", REFS).splitlines()
    except GitFailed:  # no repository any more
        return []


@contextmanager
def _locked(own: Path | None) -> Generator[bool]:
    """Whether nobody else holds the lock of this data, which is then held."""
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
