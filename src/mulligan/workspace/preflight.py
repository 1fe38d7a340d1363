"""Before the first trial: can the check judge what happens in the workspace at all?

It runs once in the fresh place. A worktree lacks what git does not keep, and an editable install leads a check back
to the user's own files, which no trial changes; both are found here, before anything is paid for.
"""

from __future__ import annotations

import os
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import PreflightEvaluator
from mulligan.core.records import Episode, Feedback
from mulligan.workspace._checkout import GitCheckout
from mulligan.workspace._git import in_thread
from mulligan.workspace.git_workspace import GitWorkspace

_WATCHER = Path(__file__).parent / "_imports"
_REPORT = ".mulligan-outside-files"  # in the place, because elsewhere the check may not be able to write


async def preflight(workspace: GitWorkspace, episode: Episode, check: PreflightEvaluator) -> Feedback:
    """What the check says of the untouched tree: it fails, as it should.

    Raises `InvalidInput`, with the check's output, when it already passes, cannot run here, or runs files of the
    user's own tree. The place is back at its first state afterwards.
    """
    feedback = await tried(workspace, episode, check)
    if feedback.passed:
        raise InvalidInput(f"The check already passes, so there is nothing to solve.\n{feedback.text}")
    return feedback


async def tried(workspace: GitWorkspace, episode: Episode, check: PreflightEvaluator) -> Feedback:
    """What the check says of the untouched tree. Raises `InvalidInput` as `preflight` does where it cannot judge."""
    place = await workspace.open(episode)
    if inward := await in_thread(_links_back, place):
        raise InvalidInput(_outside(inward, place))
    watching = place.root != place.user.top
    feedback = await check.try_out(place.folder, watching_environment(place) if watching else {})
    outside = await in_thread(outside_files, place)
    await place.reset(place.start)
    if outside:
        raise InvalidInput(_outside(outside, place))
    if feedback.passed is None:
        linked = f" Linked into it: {', '.join(place.links)}." if place.links else ""
        raise InvalidInput(
            f"{feedback.text}\nIt ran in {place.folder}, which contains your files as git sees them, uncommitted "
            f"work included, but nothing that git ignores.{linked} List the ignored folders that it needs in the "
            "workspace's `link`, let the check set up what it needs (`uv run pytest -q`), or use mode copy or "
            "in_place."
        )
    return feedback


def outside_files(place: GitCheckout) -> list[str]:
    """The files of the user's own tree that a check has run, which had `watching_environment`."""
    report = Path(place.root, _REPORT)
    if not report.is_file():
        return []
    files = sorted(set(report.read_text("utf-8", "replace").splitlines()))
    report.unlink()
    return files


def watching_environment(place: GitCheckout) -> dict[str, str]:
    """What lets a check in this place report which files of the user's own tree it runs."""
    spared = [os.path.realpath(target) for target in place.links.values()]
    spared.append(place.root)
    path = os.pathsep.join(filter(None, (str(_WATCHER), os.environ.get("PYTHONPATH"))))
    return {
        "PYTHONPATH": path,
        "MULLIGAN_WATCH": os.pathsep.join((place.user.top, *spared)),
        "MULLIGAN_WATCH_REPORT": os.path.join(place.root, _REPORT),
    }


def _links_back(place: GitCheckout) -> list[str]:
    """Entries of linked node_modules that are links to packages of the user's own tree (workspaces, `npm link`)."""
    found: list[str] = []
    for target in place.links.values():
        if os.path.basename(target) == "node_modules":
            scopes = [target, *(entry.path for entry in os.scandir(target) if entry.name.startswith("@"))]
            entries = [entry.path for scope in scopes if os.path.isdir(scope) for entry in os.scandir(scope)]
            inside = [path for path in entries if os.path.islink(path) and not path.startswith(os.path.realpath(path))]
            tops = (place.user.top + os.sep, os.path.realpath(target) + os.sep)
            real = {path: os.path.realpath(path) + os.sep for path in inside}
            found += [p for p, to in real.items() if to.startswith(tops[0]) and not to.startswith(tops[1])]
    return found


def _outside(files: list[str], place: GitCheckout) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return (
        f"The check runs files of your own tree, not of the workspace: {', '.join(files[:3])}{more}. No trial changes "
        "those, so the verdict would never change. An editable install, PYTHONPATH or a linked package leads there. "
        "Put the workspace first (`env PYTHONPATH=src pytest -q`), let the check set up an environment of its own "
        f"(link: [] and `uv run pytest -q`), or work in place. The workspace is {place.folder}."
    )
