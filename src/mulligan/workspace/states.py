"""States of the user's own tree, kept as commits without touching the tree, its index or its branches."""

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
"""Mulligan's own folder in a tree grows while it works, and is no part of a state."""


def keep(folder: str, name: str, index: Path) -> str | None:
    """The commit of the tree that a folder is in as it is now: tracked and new files, ignored ones left out.

    Args:
        folder: any in the tree.
        name: of the state, below Mulligan's own refs: an id and a name, such as `4f2a.1/start`.
        index: a file for the time of this call.

    Returns:
        None where the folder is in no repository, or no state of it can be kept.
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
    """What one state changed of another, as a unified diff cut where it is long; None where git has not both."""
    try:
        return diff_text(_git(folder), before, after)
    except (InvalidInput, GitFailed):
        return None


def file_text(folder: str, state: str, path: str) -> str | None:
    """A file as a state has it; of a link, where it points to. None where the state has no such file.

    Args:
        path: from the top of the tree.
    """
    try:
        return _git(folder).raw("cat-file", "blob", f"{state}:{path}").decode("utf-8", "replace")
    except (InvalidInput, GitFailed):
        return None


def files_git_hides(folder: str) -> list[str]:
    """Files below a folder that no state shows as changed: ignored ones outside ignored folders, and tracked ones with
    the flag assume-unchanged or skip-worktree."""
    try:
        git = Git(_repository(folder).git, folder)
        ignored = git.paths("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
        flagged = [one[2:] for one in git.paths("ls-files", "-z", "-v") if one[:1] == "S" or one[:1].islower()]
    except (InvalidInput, GitFailed, OSError):
        return []
    return [*flagged, *(name for name in ignored if not name.endswith("/"))]


def added(folder: str, before: str, after: str) -> list[str]:
    """The files, from the top of the tree, that only the later state has."""
    return _git(folder).paths("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", before, after)


def names(folder: str, state: str) -> list[str]:
    """The files of a state, from the top of the tree."""
    return _git(folder).paths("ls-tree", "-r", "--name-only", "-z", state)


def drop(folder: str, id: str) -> None:
    """Forget the states of this id; those of which a person has made a branch or a tag stay."""
    try:
        git = _git(folder)
    except InvalidInput:
        return
    names = git("for-each-ref", "--format=%(refname)", f"{REFS}/{id}").split()
    git("update-ref", "--stdin", given="".join(f"delete {name}\n" for name in names).encode())


def _git(folder: str) -> Git:
    return Git(_repository(folder).common)


def _repository(folder: str) -> Repository:
    """Raises `InvalidInput` where the folder is in no repository. Git is not started to find it."""
    if found := repository(folder, environment()):
        return found
    raise InvalidInput(f"{folder} is not in a repository that git can read.")
