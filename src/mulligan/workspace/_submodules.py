"""Submodules: an episode's folder and its states contain their files as ordinary files (design/127).

So changes in a submodule are seen, saved and restored like others, and the agent's folder contains no repository of the
user. A branch has commits of the submodules in their place again.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mulligan.core.errors import InvalidInput
from mulligan.workspace._git import Git, GitFailed, ask, inside

FIRST = "Your tree as mulligan found it"
"""The first line of the message of a first state. A line for each submodule follows."""
_LINE = "Submodule: "
_ENTRY = re.compile(r"(?P<mode>\d{6}) (?P<sha>[0-9a-f]{40,64}) \d\t")


@dataclass(frozen=True)
class Submodule:
    """A submodule that is checked out.

    Attributes:
        path: its path from the top of the user's tree, like all paths here.
        files: its files that are tracked, or new and not ignored.
        empty: the submodules in it that are not checked out, as entries of an index.
    """

    path: str
    head: str
    files: tuple[str, ...]
    empty: tuple[str, ...]


def links_of(lines: Iterable[str]) -> list[str]:
    """The paths of submodules in the output of `ls-files -s` or `ls-tree -r`."""
    return [line.split("\t", 1)[1] for line in lines if line.startswith("160000")]


def submodules(top: str, own: str | None) -> list[Submodule]:
    """The submodules that are checked out, inner ones after outer ones. Raises `InvalidInput`."""
    paths = links_of(Git(own, top).paths("ls-files", "-s", "-z")) if own else []
    return [submodule for path in paths for submodule in _below(top, path)]


def _below(top: str, path: str) -> Iterator[Submodule]:
    """The submodule at this path and those inside it, if they are checked out."""
    folder = os.path.join(top, path)
    if os.path.islink(folder) or not os.path.exists(os.path.join(folder, ".git")):
        return
    try:
        head = inside(folder, "rev-parse", "-q", "--verify", "HEAD").strip()
        listed = inside(folder, "ls-files", "-z", "-s", "-o", "--exclude-standard").split("\0")
    except GitFailed as error:
        raise InvalidInput(
            f"git cannot read the submodule {path} of {top}. Run `git status` in it to see why, or use mode copy."
        ) from error
    files, inner, empty = list[str](), list[str](), list[str]()
    for line in dict.fromkeys(line for line in listed if line and not line.endswith("/")):
        entry = _ENTRY.match(line)
        name = f"{path}/{line[entry.end() :] if entry else line}"
        full = os.path.join(top, name)
        if os.path.isdir(full) and not os.path.islink(full):
            if os.path.exists(os.path.join(full, ".git")):
                inner.append(name)
            elif entry and entry["mode"] == "160000":
                empty.append(f"160000 {entry['sha']} 0\t{name}")
        elif os.path.lexists(full):
            files.append(name)
    yield Submodule(path, head, tuple(dict.fromkeys(files)), tuple(empty))
    for name in inner:
        yield from _below(top, name)


def record(submodules: Iterable[Submodule]) -> str:
    """The lines about submodules in the message of a first state."""
    return "".join(f"\n{_LINE}{submodule.head} {submodule.path}" for submodule in submodules)


def first_commit(git: Git, own: str | None, tree: str, submodules: Iterable[Submodule]) -> str:
    """The commit of a first state, on top of the user's HEAD. own: the git folder of the user's tree."""
    head = Git(own or "")("rev-parse", "-q", "--verify", "HEAD", ok=(0, 1)).strip()
    parent = ("-p", head) if head else ()
    return git("commit-tree", tree, *parent, "-m", f"{FIRST}\n{record(submodules)}").strip()


def recorded(git: Git, start: str) -> dict[str, str]:
    """The commit of each submodule whose files are in a first state, by its path."""
    lines = git("log", "-1", "--format=%B", start).splitlines()
    pairs = [line.removeprefix(_LINE).split(" ", 1) for line in lines if line.startswith(_LINE)]
    return {path: head for head, path in pairs}


def fold(git: Git, state: str, heads: Mapping[str, str], commit: Callable[[str, str], str]) -> str:
    """The tree of a state in the form of the user's repository: with a commit of each submodule in place of its files.

    commit: returns the commit for a submodule's path and the tree of its files. It is called for inner ones first.
    """
    with tempfile.TemporaryDirectory() as folder:
        staged = replace(git, index=os.path.join(folder, "index"))
        staged("read-tree", state)
        for path in sorted(heads, key=len, reverse=True):
            names = staged.paths("ls-files", "-z", "--", f":(top,literal){path}/")
            tree = staged("write-tree", f"--prefix={path}/") if names else staged("mktree")
            staged.forget(names)
            link = f"160000,{commit(path, tree.strip())},{path}"
            staged("update-index", "--add", "--replace", "--cacheinfo", link)
        return staged("write-tree").strip()


def send(git: Git, top: str, path: str, tree: str, known: str) -> Git:
    """Copies a tree to the repository of a submodule, and returns that. known: a tree that it may already have.

    Raises `InvalidInput` if the submodule is no longer checked out.
    """
    folder = os.path.join(top, path)
    own = ask(folder, "rev-parse", "--absolute-git-dir") if os.path.exists(os.path.join(folder, ".git")) else None
    if own is None:
        raise InvalidInput(
            f"The result changes the submodule {path}, which is no longer checked out in {top}. Run `git submodule "
            f"update --init {path}` there, or deliver a patch (workspace.deliver = patch)."
        )
    theirs = Git(own)
    has = theirs("rev-parse", "-q", "--verify", f"{known}^{{tree}}", ok=(0, 1, 128)).strip()
    wanted = f"{tree}\n{f'^{known}' if has else ''}\n"
    theirs("unpack-objects", "-q", given=git.raw("pack-objects", "-q", "--revs", "--stdout", given=wanted.encode()))
    return theirs
