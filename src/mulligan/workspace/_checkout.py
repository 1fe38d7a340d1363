"""Sets an episode's folder to a state, and saves it as a state, with low-level git commands and a private index.

So an agent can do no harm by changing `.git`, the branch or the index of its worktree.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mulligan.core.errors import WorkspaceError
from mulligan.workspace._git import Git, GitFailed, ask, in_thread
from mulligan.workspace._user import Fingerprint, UserTree, below, changes, fingerprint

# Characters of a diff that are recorded.
MAX_DIFF = 60_000


@dataclass
class GitCheckout:
    """A `Checkout`: the folder that one episode works in.

    Attributes:
        git: the repository that keeps the history, with the files in `root` and a private index.
        admin: the linked worktree's own git folder. None: the episode works in place.
        links: the user's folders that are linked, by their path in root.
        apart: paths of the user's tree that are neither copied nor watched.
        kept: the user's tree as it was when this was opened. None: the tree is not watched.
        submodules: the submodules whose files are in no state: in place all, otherwise those not checked out.
    """

    root: str
    prefix: str
    git: Git
    admin: str | None
    refs: str
    start: str
    user: UserTree
    links: dict[str, str]
    apart: tuple[str, ...]
    max_file: int
    watch_index: str
    kept: Fingerprint | None = None
    submodules: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return os.path.join(self.root, self.prefix) if self.prefix else self.root

    @property
    def writable(self) -> tuple[str, ...]:
        """The tree, and the folders that git needs for commits in it. In a worktree, they hold no refs or settings of
        the user."""
        if self.admin is None:
            return (self.root, *filter(None, (self.user.own, self.user.common)))
        return (self.root, self.admin, os.path.join(self.git.folder, "objects"))

    async def reset(self, state: str, *, ignored: bool = False) -> None:
        await in_thread(self.bring, state, ignored)

    async def save(self, trial: int, parent: str) -> tuple[str, tuple[str, ...]]:
        return await in_thread(self._save, trial, parent)

    async def diff(self, state: str) -> str:
        return await in_thread(self._diff, state)

    async def changed(self) -> tuple[str, ...]:
        return await in_thread(self._changed)

    async def strayed(self) -> tuple[str, ...]:
        return await in_thread(self._strayed)

    def watch(self) -> None:
        """Remembers the user's tree as it is now."""
        self.kept = fingerprint(self.user, self.git.folder, self.watch_index, self.apart)

    def bring(self, state: str, ignored: bool = False) -> None:
        """`reset`, but blocking. A folder that git cannot repair is created again, unless it is the user's own."""
        try:
            self._bring(state, ignored)
        except (GitFailed, OSError):
            if self.admin is None:
                raise
            remove(self.root)
            Path(self.git.index or "").unlink(missing_ok=True)
            self._bring(state, ignored)

    def put_back(self, state: str, paths: Sequence[str]) -> tuple[str, ...]:
        """Sets the folder to this state, with these paths as at the start. Returns the files that differed.

        New files that git ignores are removed, because no state holds them.
        """
        raw = self.git.paths("diff-tree", "-r", "-z", "--no-renames", self.start, state, "--", *paths) if paths else []
        changed = dict(zip(raw[1::2], raw[::2], strict=True))
        ignored = self.git.paths("ls-files", "-o", "-i", "--exclude-standard", "-z", "--", *paths) if paths else []
        new = [name for name in ignored if not below(name, self.links) and not self._is_users(name)]
        for name in new:
            remove(os.path.join(self.root, name))
        reported = [name for name in new if "__pycache__/" not in name]
        if not changed:
            return tuple(sorted(map(_safe, reported)))
        git = replace(self.git, index=f"{self.git.index}.protected")
        git("read-tree", state)
        before = {name: about.lstrip(":").split(" ") for name, about in changed.items()}
        rows = [f"{mode} {sha}\t{name}\0" for name, (mode, _, sha, *_) in before.items()]
        rows.sort(key=lambda row: not row.startswith("000000"))  # removals first: a folder may have replaced a file
        entries = "".join(rows).encode(errors="surrogateescape")
        git("update-index", "--add", "--replace", "-z", "--index-info", given=entries)
        tree = git("write-tree").strip()
        Path(git.index or "").unlink()
        self.bring(self.git("commit-tree", tree, "-p", state, "-m", "With protected files put back").strip())
        return tuple(sorted(map(_safe, {*changed, *reported})))

    def _is_users(self, name: str) -> bool:
        """Whether a copy brought this ignored file from the user's tree."""
        return self.git.folder != self.user.common and os.path.lexists(os.path.join(self.user.top, name))

    def _bring(self, state: str, ignored: bool) -> None:
        self._secure_root()
        self.git("read-tree", "--reset", "-u", state)
        if self.git.worktree:
            self.git.show_changed(self._above, state)
        self.git("clean", "-ffdq", *(["-x"] if ignored and self.admin else []))
        os.makedirs(self.folder, exist_ok=True)
        for name, target in self.links.items():
            if self._clear(name):
                os.symlink(target, os.path.join(self.root, name))
        for name in self.submodules if self.admin else ():
            if self._clear(name):
                os.mkdir(os.path.join(self.root, name))
        self._show(state)

    @cached_property
    def _above(self) -> str:
        """The user's commit, or the first state if there is none."""
        return self.git("rev-parse", "-q", "--verify", f"{self.start}^", ok=(0, 1, 128)).strip() or self.start

    def _clear(self, name: str) -> bool:
        """Removes what is at this path, which git does not see. Returns whether its parent folder exists."""
        path = os.path.join(self.root, name)
        parent = os.path.dirname(path)
        if not os.path.isdir(parent) or os.path.realpath(parent) != parent:
            return False
        remove(path)
        return True

    def _secure_root(self) -> None:
        """Removes a link that an agent put in the folder's place: git would clean its target."""
        if self.admin and os.path.islink(self.root):
            os.unlink(self.root)
        os.makedirs(self.root, exist_ok=True)
        if os.path.realpath(self.root) != self.root:
            raise WorkspaceError(
                f"{self.root} is no longer the folder that Mulligan created, so Mulligan leaves it alone."
            )

    def _show(self, state: str) -> None:
        """Repairs the agent's own view of git: a clean checkout of `state`, on no branch."""
        if self.admin is None:
            return
        pointer = Path(self.root, ".git")
        if pointer.is_symlink() or not pointer.is_file():
            remove(str(pointer))
        pointer.write_text(f"gitdir: {self.admin}\n")
        os.makedirs(self.admin, exist_ok=True)
        for entry in os.scandir(self.admin):
            if entry.name not in ("commondir", "gitdir", "logs"):
                remove(entry.path)
        Path(self.admin, "commondir").write_text("../..\n")
        Path(self.admin, "gitdir").write_text(f"{pointer}\n")
        Path(self.admin, "HEAD").write_text(f"{state}\n")
        shutil.copyfile(self.git.index or "", os.path.join(self.admin, "index"))

    def _save(self, trial: int, parent: str) -> tuple[str, tuple[str, ...]]:
        notes: list[str] = []
        saved: list[str] = []
        differing = self._differing()
        filtered = {} if self.git.folder != self.user.common else self.git.filtered(differing)
        for name in differing:
            if name in filtered:
                notes.append(f"{_safe(name)} was not kept: the program of git's filter {filtered[name]} is missing")
            elif why := self._why_not(name):
                notes.append(f"{_safe(name)} was not kept: {why}")
            else:
                saved.append(name)
        self.git.stage(saved)
        tree = self.git("write-tree").strip()
        sha = self.git("commit-tree", tree, "-p", parent, "-m", f"Trial {trial}").strip()
        self.git("update-ref", f"{self.refs}/trial-{trial}", sha)
        return sha, tuple(notes)

    def _changed(self) -> tuple[str, ...]:
        return tuple(sorted(_safe(name) for name in self._differing()))

    def _differing(self) -> list[str]:
        """The paths that differ from the index, without those behind our links."""
        self._secure_root()
        excluded = (*self.links, *(self.submodules if self.admin else ()))
        changed = [name for name in self.git.changed() if not below(name, excluded)]
        changed_submodules = [f"{name}/" for name in self.submodules if self._has_changes(name)]
        return list(dict.fromkeys([*changed, *changed_submodules]))

    def _has_changes(self, submodule: str) -> bool:
        """Whether a submodule whose files are in no state was changed. (In a worktree, its folder was empty.)"""
        folder = Path(self.root, submodule)
        if self.admin:
            return any(folder.glob("*"))
        return (folder / ".git").exists() and bool(ask(str(folder), "status", "--porcelain"))

    def _why_not(self, name: str) -> str | None:
        """Why a commit should not or cannot hold this path; None if it can."""
        path = os.path.join(self.root, name)
        try:
            about = os.lstat(path)
        except OSError:
            return None
        if name.endswith("/") and name.rstrip("/") in self.submodules:
            hint = "run `git submodule update --init` in your tree first" if self.admin else "work in a worktree"
            return f"changes in this submodule are not part of a state: {hint}"
        if name.endswith("/"):
            return "it is a git repository of its own"
        if not stat.S_ISREG(about.st_mode):
            return None
        if about.st_size > self.max_file * 1_000_000:
            return f"it has {about.st_size / 1e6:.0f} MB, more than {self.max_file}"
        return None if os.access(path, os.R_OK) else "it cannot be read"

    def _diff(self, state: str) -> str:
        return diff_text(self.git, self.start, state)

    def _strayed(self) -> tuple[str, ...]:
        if self.kept is None:
            return ()
        now = fingerprint(self.user, self.git.folder, self.watch_index, self.apart)
        return tuple(_safe(name) for name in changes(self.user, self.git.folder, self.kept, now))


def diff_text(git: Git, before: str, after: str) -> str:
    """The difference of two states as a unified diff. If it is long, it is cut, and further files are only named."""
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "-M")
    text = git.raw("diff", *options, before, after).decode("utf-8", "replace")
    if len(text) <= MAX_DIFF:
        return text
    files = git.raw("diff", "--stat=100", *options, before, after).decode("utf-8", "replace")
    cut = text[:MAX_DIFF].rpartition("\n")[0]
    names = git.paths("diff", "--name-only", "--no-renames", "-z", before, after)
    # The names of the other files, for a judge that looks for tests among them.
    rest = "".join(f"diff --git a/{name} b/{name}\n" for name in names if f" b/{name}\n" not in cut)[:MAX_DIFF]
    why = f"[cut: {len(text)} characters; all of it: git diff {before} {after}]"
    return _safe(f"{cut}\n{why}\n{files[-4000:]}\n{rest}")


def remove(path: str) -> None:
    """Removes a file, link or folder without following links. Makes unwritable folders writable first."""
    if os.path.islink(path) or not os.path.isdir(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    for at, folders, _ in os.walk(path):
        for name in ("", *folders):
            inside = os.path.join(at, name)
            if not os.path.islink(inside):
                with contextlib.suppress(OSError):
                    os.chmod(inside, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _safe(name: str) -> str:
    """The path in a form that can be recorded, whatever bytes it has."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
