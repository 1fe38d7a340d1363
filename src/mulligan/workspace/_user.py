"""The user's own tree: finds it, takes snapshots, and notices changes. Nothing here writes to it.

A snapshot only adds objects to the repository: the index is a private copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.workspace._git import Git, ask, listed, missing_filters
from mulligan.workspace._submodules import Submodule, submodules


@dataclass(frozen=True)
class UserTree:
    """The user's tree.

    Attributes:
        top: the folder of the whole tree.
        prefix: the path of the user's folder in it.
        common: its repository; None if it has none.
        own: the git folder of this tree, which is not `common` in a linked worktree.
        sparse: whether it is a sparse checkout.
        unfiltered: filters of git whose program is missing.
    """

    top: str
    prefix: str = ""
    common: str | None = None
    own: str | None = None
    sparse: bool = False
    unfiltered: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return os.path.join(self.top, self.prefix) if self.prefix else self.top


@dataclass(frozen=True)
class Fingerprint:
    """A fingerprint of the tree and its repository. `refs` does not contain our own refs."""

    tree: str
    refs: dict[str, str]
    rest: dict[str, str]


def find(folder: str) -> UserTree:
    """The tree that a folder is in.

    Raises `InvalidInput` if it is not a folder, or is a bare repository, or git cannot read its repository.
    """
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        raise InvalidInput(f"The workspace {folder} is not a folder.")
    places = _places(path)
    if places is None:
        if ask(path, "rev-parse", "--is-inside-work-tree") == "false":
            raise InvalidInput(
                f"{path} is a bare repository or a .git folder: use a folder with its files checked out."
            )
        above = next((p for p in (Path(path), *Path(path).parents) if (p / ".git").exists()), None)
        if above:
            raise InvalidInput(
                f"git cannot read the repository at {above}. Run `git status` there to see why "
                "(another owner? see `git help config`, safe.directory), or use mode copy."
            )
        return UserTree(path, unfiltered=missing_filters(path))
    top, own, common = os.path.realpath(places[0]), places[1], os.path.realpath(os.path.join(path, places[2]))
    prefix = os.path.relpath(path, top)
    sparse = ask(path, "config", "--type=bool", "core.sparseCheckout") == "true"
    return UserTree(top, "" if prefix == "." else prefix, common, own, sparse, missing_filters(path))


def _places(path: str) -> Sequence[str] | None:
    """The top of the work tree, its own git folder and the common one; None outside of a work tree."""
    names = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    together = ask(path, "rev-parse", *names)
    if together is None:
        return None
    lines = together.split("\n")
    return lines if len(lines) == len(names) else [ask(path, "rev-parse", name) or "" for name in names]  # line breaks


def below(path: str, names: Iterable[str]) -> bool:
    """Whether the path is one of these paths or inside one."""
    return any(path.rstrip("/") == name or path.startswith(f"{name}/") for name in names)


def snapshot(user: UserTree, repository: str, index: str, leave: Sequence[str], inner: Sequence[Submodule] = ()) -> str:
    """Writes a tree of all tracked and untracked (but not ignored) files as they are now, and returns its id.

    Args:
        index: a private index, copied from the user's own so that unchanged files are not read again.
        leave: paths to leave out.
        inner: submodules whose files the tree contains in place of their commits.
    """
    theirs = os.path.join(user.own, "index") if user.own else ""
    if not os.path.exists(index) and os.path.exists(theirs):
        shutil.copyfile(theirs, index)
    git = Git(user.own or repository, user.top, index, user.own if user.sparse else None, user.unfiltered)
    if unmerged := git.paths("ls-files", "-u", "-z"):
        files = sorted({line.split("\t", 1)[-1] for line in unmerged})
        raise InvalidInput(f"A merge is in progress in {user.top}: {', '.join(files[:5])}. Finish or abort it first.")
    changed = [path for path in git.changed() if not below(path, leave)]
    if user.own and (filtered := git.filtered(changed)):
        name, files = next(iter(filtered.values())), ", ".join(list(filtered)[:3])
        raise InvalidInput(
            f"{user.top} has changed files that git stores through the filter {name!r}, whose program is missing: "
            f"{files}. Install it (see `git config filter.{name}.clean`), undo these changes, or use mode copy."
        )
    inner_paths = [module.path for module in inner]
    gone = [path for path in changed if below(path, inner_paths) and not os.path.lexists(os.path.join(user.top, path))]
    git.stage(path for path in changed if not path.endswith("/") and not below(path, inner_paths))
    if inner:
        git.forget([*inner_paths, *gone])
        git.stage(path for module in inner for path in module.files if not below(path, leave))
        git("update-index", "-z", "--index-info", given=listed(entry for module in inner for entry in module.empty))
    return git("write-tree").strip()


def inner_repositories(user: UserTree, index: str, leave: Sequence[str]) -> list[str]:
    """The repositories inside the tree that are not submodules. Git would leave out their files."""
    git = Git(user.own or "", user.top, index, user.own if user.sparse else None, user.unfiltered)
    return [path for path in git.changed() if path.endswith("/") and not below(path, leave)]


def fingerprint(user: UserTree, repository: str, index: str, leave: Sequence[str]) -> Fingerprint:
    try:
        inner = submodules(user.top, user.own)
    except InvalidInput:  # a worktree has refused them at its start, and a copy contains their files
        inner = []
    tree = snapshot(user, repository, index, leave, inner)
    if not user.common or not user.own:
        return Fingerprint(tree, {}, {})
    git = Git(user.own)
    lines = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    refs = dict(line.split(" ", 1) for line in lines if not line.startswith("refs/mulligan/"))
    staged = Git(user.own, user.top).raw("ls-files", "-s", "-z")
    rest = {
        "HEAD": Path(user.own, "HEAD").read_text(),
        "what is staged": _hash(staged),
        "config": _hash(_read(Path(user.common, "config"))),
        "hooks": _hash(*(p.name.encode() + _read(p) for p in sorted(Path(user.common, "hooks").glob("*")))),
    }
    rest |= {f"commit of the submodule {each.path}": each.head for each in inner}
    return Fingerprint(tree, refs, rest)


def changes(user: UserTree, repository: str, before: Fingerprint, after: Fingerprint) -> tuple[str, ...]:
    """The files, refs and parts of the repository that differ. New refs do no harm and are not named."""
    git = Git(user.own or repository)
    files = git.paths("diff-tree", "-r", "-z", "--name-only", before.tree, after.tree)
    moved = {name: sha for name, sha in before.refs.items() if after.refs.get(name) != sha}
    refs = [f"{name} (was {sha[:12]})" for name, sha in moved.items()]
    rest = [f"the repository's {name}" for name, value in before.rest.items() if after.rest.get(name) != value]
    return (*files, *refs, *rest)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()
