"""Deliver the result: as a branch, as a patch file, or in the user's tree. Nothing is ever overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode
from mulligan.workspace._git import Git, GitFailed, in_thread, inside
from mulligan.workspace._submodules import FIRST, fold, recorded, send
from mulligan.workspace.git_workspace import GitWorkspace

As = Literal["branch", "patch", "in_place"]


async def deliver(workspace: GitWorkspace, episode: Episode, as_: As = "branch", file: str | None = None) -> str:
    """The best trial's state, and a sentence that says what was done with it.

    branch: `mulligan/<run>`: your commit, your uncommitted work if there was any, and one commit with the change.
    patch: `file`, or `mulligan-<run>.patch` in the current folder; it applies to the tree as it was found.
    in_place: the change is applied to the user's files, all of it or nothing; they may have changed in the meantime.

    Raises `InvalidInput` when there is no trial with a state, or the change does not fit any more.
    """
    if workspace.mode != "in_place":
        return await in_thread(_deliver, workspace, episode, as_, file)
    place = await workspace.open(episode)
    state, what = _best(episode)
    if as_ != "in_place":
        said = await in_thread(_deliver, workspace, episode, as_, file)
        await place.reset(place.start)
        return said
    await place.reset(state)
    return f"Your files in {place.folder} now contain {what}, uncommitted."


def _deliver(workspace: GitWorkspace, episode: Episode, as_: As, file: str | None) -> str:
    state, what = _best(episode)
    user, git = workspace.history(episode)
    start = workspace.start(episode, git)
    if start is None:
        raise InvalidInput(f"The states of episode {episode.id} are no longer in {git.folder}.")
    name = episode.run or episode.id
    if as_ == "branch" and workspace.mode != "copy":
        title = (episode.task.prompt.strip().splitlines() or ["Change"])[0][:70]
        said = f"{title}\n\nMulligan, episode {episode.id}, {what}."
        tree, parent, note = _result(git, start, state, name, said, user.top)
        branch = _there(git, name, tree) or _branch(
            git, name, git("commit-tree", tree, "-p", parent, "-m", said).strip()
        )
        see = f"git diff HEAD...{branch}"
        return f"The branch {branch} has the result of {what}.{note} Your files are unchanged. To see it: {see}"
    patch = git.raw("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", start, state)
    if as_ == "in_place":
        _apply(workspace, user.top, patch, name)
        return f"Your files in {user.top} now contain the result of {what}, uncommitted."
    path = _write(Path(file) if file else Path.cwd() / f"mulligan-{name}.patch", patch)
    return f"{path} has the result of {what}. To apply it in {user.top}: git apply {path}"


def _best(episode: Episode) -> tuple[str, str]:
    """The state to hand over, and what it is."""
    best = episode.best
    for artifact in best.attempt.artifacts if best else ():
        if best and artifact.kind == "git":
            so = "" if episode.solved else " (the best, though not solved)" if episode.judged else " (not judged)"
            return artifact.ref, f"try {best.number}{so}"
    raise InvalidInput(f"Episode {episode.id} has no try with a result to deliver.")


def _result(git: Git, start: str, state: str, name: str, said: str, top: str) -> tuple[str, str, str]:
    """The tree with the whole change, its parent (the user's commit, or one of their uncommitted work), and a note.

    A submodule that changed gets a commit on a branch of its own repository.
    """
    above = git("rev-parse", "-q", "--verify", f"{start}^", ok=(0, 1, 128)).strip()
    heads = recorded(git, start)
    before, after = (git("rev-parse", f"{each}^{{tree}}").strip() for each in (start, state))
    branches: list[str] = []
    if heads:
        trees: dict[str, str] = {}

        def unchanged(path: str, tree: str) -> str:
            trees[path] = tree
            return heads[path]

        def committed(path: str, tree: str) -> str:
            if tree == trees[path]:
                return heads[path]
            theirs = send(git, top, path, tree, trees[path])
            branch = _there(theirs, name, tree)
            if branch is None:
                branch = _branch(theirs, name, theirs("commit-tree", tree, "-p", heads[path], "-m", said).strip())
            branches.append(f"{branch} in {path}")
            return theirs("rev-parse", f"refs/heads/{branch}").strip()

        before, after = fold(git, start, heads, unchanged), fold(git, state, heads, committed)
    note = f" Submodules that changed have a branch too: {', '.join(branches)}." if branches else ""
    if above and git("rev-parse", f"{above}^{{tree}}").strip() == before:
        return after, above, note
    if heads:
        start = git("commit-tree", before, *(("-p", above) if above else ()), "-m", FIRST).strip()
    return after, start, note


def _there(git: Git, name: str, state: str) -> str | None:
    """The branch, where it was made before whoever made it could say so."""
    branch = f"mulligan/{name}"
    tree = git("rev-parse", "-q", "--verify", f"refs/heads/{branch}^{{tree}}", ok=(0, 1, 128)).strip()
    return branch if tree and tree == git("rev-parse", f"{state}^{{tree}}").strip() else None


def _branch(git: Git, name: str, commit: str) -> str:
    """A new branch; the next number when there is one of that name."""
    nothing = "0" * len(commit)
    bases = (f"mulligan/{name}", f"mulligan-{name}")
    for branch in (f"{base}{f'-{n}' if n > 1 else ''}" for base in bases for n in range(1, 100)):
        try:
            git("update-ref", f"refs/heads/{branch}", commit, nothing)
        except GitFailed:
            continue
        return branch
    raise InvalidInput(f"No branch name is free: mulligan/{name} to mulligan/{name}-99 already exist.")


def _apply(workspace: GitWorkspace, top: str, patch: bytes, name: str) -> None:
    if not patch:
        return
    kept = _write(Path(workspace.data, f"mulligan-{name}.patch"), patch)
    try:
        inside(top, "apply", str(kept))
    except GitFailed as error:
        raise InvalidInput(
            f"Your files in {top} changed in the meantime, so the result cannot be applied: {error}. The result is "
            f"kept in {kept}."
        ) from error
    kept.unlink()


def _write(path: Path, patch: bytes) -> Path:
    """A new file; the next number when there is one of that name."""
    for n in range(1, 1000):
        to = path if n == 1 else path.with_stem(f"{path.stem}-{n}")
        try:
            with open(to, "xb") as out:
                out.write(patch)
        except FileExistsError:
            continue
        return to
    raise InvalidInput(f"{path} already exists, and so do all numbered copies of it.")
