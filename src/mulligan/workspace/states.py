"""Saves states of the user's own tree as commits, without touching the tree, its index or its branches."""

from __future__ import annotations

from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.workspace._checkout import diff_text
from mulligan.workspace._git import Git, GitFailed, environment
from mulligan.workspace._submodules import first_commit, submodules
from mulligan.workspace._user import find, snapshot
from mulligan.workspace.git_files import Repository, repository
from mulligan.workspace.leftovers import REFS

LEFT_OUT = (".mulligan",)
"""Mulligan's own folder in a tree. It changes while Mulligan works, and is not part of a state."""


def keep(folder: str, name: str, index: Path) -> str | None:
    """Saves the tree that a folder is in, with tracked and new but without ignored files, and returns the commit.

    Args:
        folder: any folder in the tree.
        name: the name of the state among Mulligan's refs: an id and a name, such as `4f2a.1/start`.
        index: a temporary file for this call.

    Returns:
        None if the folder is not in a repository, or its state cannot be saved.
    """
    try:
        user = find(folder)
        if user.common is None:
            return None
        inner = submodules(user.top, user.own)
        tree = snapshot(user, user.common, str(index), LEFT_OUT, inner)
    except (InvalidInput, GitFailed, OSError):
        return None
    finally:
        index.unlink(missing_ok=True)
    git = Git(user.common)
    sha = first_commit(git, user.own, tree, inner)
    git("update-ref", f"{REFS}/{name}", sha)
    return sha


def diff(folder: str, before: str, after: str) -> str | None:
    """The changes from one state to another as a unified diff, cut if it is long; None if git does not have both."""
    try:
        return diff_text(_git(folder), before, after)
    except (InvalidInput, GitFailed):
        return None


def file_text(folder: str, state: str, path: str) -> str | None:
    """The text of a file in a state; for a link, its target. None if the state does not have the file.

    Args:
        path: the path from the top of the tree.
    """
    try:
        return _git(folder).raw("cat-file", "blob", f"{state}:{path}").decode("utf-8", "replace")
    except (InvalidInput, GitFailed):
        return None


def files_git_hides(folder: str) -> list[str]:
    """The files in a folder whose changes no state shows.

    These are ignored files outside ignored folders, and tracked files with the flag assume-unchanged or skip-worktree.
    """
    try:
        git = Git(_repository(folder).git, folder)
        ignored = git.paths("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        lines = git.paths("ls-files", "-z", "-v")
        flagged = [line[2:] for line in lines if line[:1] == "S" or line[:1].islower()]
    except (InvalidInput, GitFailed, OSError):
        return []
    return [*flagged, *(name for name in ignored if not name.endswith("/"))]


def added(folder: str, before: str, after: str) -> list[str]:
    """The files that only the later state has, with paths from the top of the tree."""
    return _git(folder).paths("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", before, after)


def names(folder: str, state: str) -> list[str]:
    """The files of a state, with paths from the top of the tree."""
    return _git(folder).paths("ls-tree", "-r", "--name-only", "-z", state)


def drop(folder: str, id: str) -> None:
    """Removes the states of this id. Branches and tags that a person has made of them stay."""
    try:
        git = _git(folder)
    except InvalidInput:
        return
    names = git("for-each-ref", "--format=%(refname)", f"{REFS}/{id}").split()
    git("update-ref", "--stdin", given="".join(f"delete {name}\n" for name in names).encode())


def _git(folder: str) -> Git:
    return Git(_repository(folder).common)


def _repository(folder: str) -> Repository:
    """The repository of a folder, found without starting git. Raises `InvalidInput` if there is none."""
    if found := repository(folder, environment()):
        return found
    raise InvalidInput(f"{folder} is not in a repository that git can read.")
