"""Makes the folder that each episode works in: a git worktree, a copy, or the user's own. Commits restore it after a
crash.

Each episode has a data folder with its index, its lock, the working folder and, for a copy, the private history.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mulligan.core.episode import newest_state
from mulligan.core.errors import InvalidInput, WorkspaceError
from mulligan.core.home import home
from mulligan.core.records import Episode
from mulligan.workspace._checkout import GitCheckout, remove
from mulligan.workspace._git import Git, in_thread
from mulligan.workspace._submodules import first_commit, links_of, submodules
from mulligan.workspace._user import UserTree, below, find, inner_repositories, snapshot
from mulligan.workspace.leftovers import REFS, clear, leftovers

Mode = Literal["worktree", "copy", "in_place"]


class GitWorkspace:
    """A `Workspace` that keeps its states with git.

    Args:
        folder: the user's folder. If it is inside a repository, the whole repository is used.
        mode: "worktree" begins with a snapshot of the user's tree, including uncommitted and untracked (but not
            ignored) work. "copy" copies all files, including ignored ones, so it also works without git. "in_place"
            works in the user's own folder, which must be clean, and resets it between trials.
        data: where worktrees and histories are kept. None: `$MULLIGAN_HOME/workspaces` or the user's data folder.
        link: ignored folders of the user that are linked into a worktree or copy if they exist, because most checks
            need them. If writes are not confined, an agent can write through such a link.
        max_file: MB above which a new or changed file is not kept in a trial's state.
        watch: whether to stop when the user's tree or repository changes during a trial. Turn it off to work there at
            the same time.
        protect: files, folders or patterns in `folder` that are judged as they were before the first trial: during the
            check, changed ones are restored, and new ones are removed.
    """

    def __init__(
        self,
        *,
        folder: str = ".",
        mode: Mode = "worktree",
        data: str | None = None,
        link: Sequence[str] = (".venv", "node_modules"),
        max_file: int = 20,
        watch: bool = True,
        protect: Sequence[str] = (),
    ) -> None:
        if mode not in ("worktree", "copy", "in_place"):
            raise InvalidInput(f"The workspace's mode must be worktree, copy or in_place, not {mode!r}.")
        for name in link:
            if os.path.isabs(name) or ".." in Path(name).parts or not name.strip("/."):
                raise InvalidInput(f"link must be paths inside the workspace, such as .venv, not {name!r}.")
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            if name in os.environ:
                raise InvalidInput(
                    f"{name} is set, as in a git hook, so agents' git commands would not use the workspace. Unset it "
                    "first."
                )
        self.folder = os.path.realpath(folder)
        self.mode: Mode = mode
        self.data = os.path.realpath(data or home() / "workspaces")
        self._link = tuple(name.rstrip("/") for name in link)
        self._max_file = max_file
        self._watch = watch
        if protect and mode == "in_place":
            raise InvalidInput("protect changes files during a check: use mode worktree or copy.")
        self.protect = tuple(protect)
        self._places: dict[str, GitCheckout] = {}
        self._locks: dict[str, int] = {}

    async def open(self, episode: Episode) -> GitCheckout:
        if episode.id not in self._places:
            try:
                self._places[episode.id] = await in_thread(self._open, episode)
            except BaseException:
                if episode.id in self._locks:
                    _remove_if_empty(self._data_of(episode))
                await self.close(episode)
                raise
        return self._places[episode.id]

    @asynccontextmanager
    async def protecting(self, episode: Episode) -> AsyncGenerator[tuple[str, ...]]:
        """Restores the protected files in the episode's folder for a while. Yields the paths that differed."""
        place, state = await self.open(episode), newest_state(episode)
        names = await in_thread(place.put_back, state, _protected(place, self.protect)) if state else ()
        try:
            yield names
        finally:
            if state and names:
                await in_thread(place.bring, state)

    @asynccontextmanager
    async def aside(self, episode: Episode, state: str) -> AsyncGenerator[GitCheckout]:
        place = await self.open(episode)
        own = self._data_of(episode)
        making = asyncio.ensure_future(in_thread(self._aside, place, own, state))
        try:
            yield await asyncio.shield(making)
        finally:
            await asyncio.wait([making])  # the thread continues if its caller is cancelled, and would make it again
            await in_thread(_remove_aside, place, own)

    async def close(self, episode: Episode) -> None:
        if place := self._places.pop(episode.id, None):
            await in_thread(_close, self._data_of(episode), place)
        if (lock := self._locks.pop(episode.id, None)) is not None:
            os.close(lock)

    async def discard(self, episode: str) -> None:
        """Removes everything made for the episode: folders, states, the worktree's entry in the user's repository."""
        user = await in_thread(find, self.folder)
        remains = await in_thread(leftovers, [self.data], [user.common] if user.common else [])
        if episode in remains:
            await in_thread(remains[episode].remove)

    def history(self, episode: Episode) -> tuple[UserTree, Git]:
        """The user's tree, and the repository that holds the episode's states. The episode need not be open."""
        user = find(self.folder)
        if self.mode == "copy":
            return user, Git(str(self._data_of(episode) / "history.git"))
        if user.common is None:
            what = "Mode copy works without one." if self.mode == "worktree" else "Run `git init` and commit first."
            raise InvalidInput(f"{self.folder} is not in a git repository, and mode {self.mode} needs one. {what}")
        return user, Git(user.common)

    def start(self, episode: Episode, git: Git) -> str | None:
        """The recorded first state of this episode, or of the episode that it was forked from."""
        for name in filter(None, (episode.id, episode.forked_from)):
            if sha := git("rev-parse", "-q", "--verify", f"{_refs(name)}/start^{{commit}}", ok=(0, 1)).strip():
                return sha
        return None

    def _data_of(self, episode: Episode) -> Path:
        return Path(self.data, episode.id)

    def _open(self, episode: Episode) -> GitCheckout:
        refs = _refs(episode.id)
        own = self._data_of(episode)
        own.mkdir(parents=True, exist_ok=True)
        self._lock(episode, own)
        user, git = self.history(episode)
        if self.mode == "copy" and not os.path.isdir(git.folder):
            os.makedirs(git.folder)
            git("init", "-q", "--bare")
        start = self.start(episode, git)
        first = start is None
        links = {} if self.mode == "in_place" else self._links(user)
        apart = (*links, *self._own_folders(user))
        root = user.top if self.mode == "in_place" else str(own / f"{_worktree_name(user.top)}-{episode.id}")
        view = user.own if user.sparse and self.mode != "copy" else None
        full = Git(git.folder, root, str(own / "index"), view, user.unfiltered)
        if start is None:
            start = self._begin(user, git, own, apart)
        git("update-ref", f"{refs}/start", start)
        admin = None if self.mode == "in_place" else self._worktree(git, root, start)
        links = _untracked(git, start, links)
        place = GitCheckout(
            root, user.prefix, full, admin, refs, start, user, links, apart, self._max_file, str(own / "watch.index")
        )
        place.submodules = tuple(links_of(git.paths("ls-tree", "-r", "-z", start)))
        if self.mode == "copy" and first:
            place.start = self._fill(user, place)
        place.bring(newest_state(episode) or place.start)
        for name, path in zip(self.protect, _protected(place, self.protect), strict=True) if first else ():
            if not place.git.paths("ls-files", "-z", "--", path):
                raise InvalidInput(f"protect lists {name!r}, but git finds no such file in {user.folder}.")
        if self._watch and self.mode != "in_place":
            place.watch()
        return place

    def _aside(self, place: GitCheckout, own: Path, state: str) -> GitCheckout:
        """Makes a second worktree of the same history. Removes the remains of a killed process first."""
        _remove_aside(place, own)
        root, index = _aside_of(place, own)
        links = _untracked(place.git, state, self._links(place.user))
        admin = self._worktree(Git(place.git.folder), root, state)
        beside = replace(place, root=root, git=replace(place.git, tree=root, index=index), admin=admin, links=links)
        beside.bring(state)
        return beside

    def _begin(self, user: UserTree, git: Git, own: Path, apart: tuple[str, ...]) -> str:
        """The first state: the user's tree as it is now; for a copy an empty one, which `_fill` replaces."""
        if self.mode == "copy":
            tree = git("mktree", "--missing").strip()
            return git("commit-tree", tree, "-m", "Nothing yet").strip()
        if (
            self.mode == "in_place"
            and Git(user.own or "", user.top, None, user.own, user.unfiltered)("status", "--porcelain").strip()
        ):
            raise InvalidInput(
                f"{user.top} has uncommitted work, and in-place mode resets the folder between tries. Commit or stash "
                "it first, or use a worktree, which starts with your uncommitted work."
            )
        index = own / "snapshot.index"
        inner = submodules(user.top, user.own) if self.mode == "worktree" else []
        try:
            tree = snapshot(user, git.folder, str(index), apart, inner)
            others = inner_repositories(user, str(index), apart) if self.mode == "worktree" else []
        finally:
            index.unlink(missing_ok=True)
        if others:
            raise InvalidInput(
                f"{user.top} contains repositories that are not submodules ({', '.join(others[:3])}), and a worktree "
                "does not include them. Use mode copy, which includes their files."
            )
        return first_commit(git, user.own, tree, inner)

    def _worktree(self, git: Git, root: str, start: str) -> str:
        """The git folder of the worktree at `root`, which is created if necessary."""
        admin = os.path.join(git.folder, "worktrees", Path(root).name)
        if not os.path.isdir(root):
            remove(admin)
            git("worktree", "add", "--detach", "--no-checkout", "--force", root, start)
            if not os.path.isdir(admin):
                raise WorkspaceError(
                    f"git does not keep the worktree {root} in {admin}. Your version of git may be too new."
                )
        return admin

    def _fill(self, user: UserTree, place: GitCheckout) -> str:
        """Copies the user's files, and saves them as the first state."""

        def skip(at: str, names: list[str]) -> list[str]:
            paths = {name: os.path.join(at, name) for name in names}
            inside = {name: os.path.relpath(path, user.top) for name, path in paths.items()}
            return [
                name
                for name, path in paths.items()
                if name == ".git" or inside[name] in place.apart or not _can_copy(path)
            ]

        shutil.copytree(user.top, place.root, symlinks=True, ignore=skip, dirs_exist_ok=True)
        place.git.stage(place.git.changed())
        tree = place.git("write-tree").strip()
        sha = place.git("commit-tree", tree, "-m", "Your folder as mulligan found it").strip()
        place.git("update-ref", f"{place.refs}/start", sha)
        return sha

    def _links(self, user: UserTree) -> dict[str, str]:
        names = {name for base in {"", user.prefix} for name in (os.path.join(base, n) for n in self._link)}
        return {name: path for name in sorted(names) if os.path.isdir(path := os.path.join(user.top, name))}

    def _own_folders(self, user: UserTree) -> list[str]:
        """Mulligan's own folders in the user's tree. They change while it works, and are not part of the task."""
        inside = [os.path.join(base, ".mulligan") for base in {"", user.prefix}]
        return [*inside, os.path.relpath(self.data, user.top)] if below(self.data, [user.top]) else inside

    def _lock(self, episode: Episode, own: Path) -> None:
        """Locks the data folder while the episode is open, so that no other process uses or removes it."""
        import fcntl  # not on Windows, where importing this module should still work

        lock = os.open(own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise InvalidInput(
                f"Another process is working on {episode.id} in {own}: wait until it has finished, or end it."
            ) from error
        self._locks[episode.id] = lock


def _remove_if_empty(own: Path) -> None:
    """Removes the data folder of an episode that was refused, if it holds only the lock."""
    if [path.name for path in own.iterdir()] == ["lock"]:
        (own / "lock").unlink()
        own.rmdir()


def _close(own: Path, place: GitCheckout) -> None:
    if place.admin:
        clear(own)
        remove(place.admin)


def _aside_of(place: GitCheckout, own: Path) -> tuple[str, str]:
    """The paths of the temporary folder and its index. The folder's name ends as `leftovers` expects."""
    return str(own / f"{_worktree_name(place.user.top)}-aside-{own.name}"), str(own / "aside.index")


def _remove_aside(place: GitCheckout, own: Path) -> None:
    root, index = _aside_of(place, own)
    for path in (root, os.path.join(place.git.folder, "worktrees", Path(root).name), index, f"{index}.lock"):
        remove(path)


def _protected(place: GitCheckout, names: Sequence[str]) -> list[str]:
    """The paths of these names from the top of the tree. Raises `InvalidInput` for outside paths or the whole tree."""
    user = place.user
    paths = [os.path.relpath(os.path.join(user.folder, os.path.expanduser(name)), user.top) for name in names]
    for name, path in zip(names, paths, strict=True):
        if not name or path == "." or path.split(os.sep)[0] == "..":
            raise InvalidInput(f"protect must be files and folders inside {user.folder}, such as tests/, not {name!r}.")
    return paths


def _untracked(git: Git, state: str, links: Mapping[str, str]) -> dict[str, str]:
    """The links that do not hide a file of this state."""
    tracked = git.paths("ls-tree", "-z", "--name-only", state, "--", *links) if links else []
    return {name: target for name, target in links.items() if name not in tracked}


def _worktree_name(folder: str) -> str:
    """A folder's name in a form that git keeps for a worktree: it would change a name with a space or a dot."""
    return re.sub(r"[^\w-]+", "-", Path(folder).name).strip("-")[:50] or "root"


def _refs(episode: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*", episode):
        raise InvalidInput(f"An episode's id must be a valid name for a folder and a git ref, but {episode!r} is not.")
    return f"{REFS}/{episode}"


def _can_copy(path: str) -> bool:
    """Whether the path is a file, a link or a folder, not a socket, pipe or device."""
    return os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path)
