"""An episode's workspace from its first check to the hand-over of the result; nothing to do where there is none."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Evaluator, Journal, TriesOut
from mulligan.core.records import Episode, Json

if TYPE_CHECKING:
    from mulligan.workspace.git_workspace import GitWorkspace

DELIVERED = "delivered#1"
"""The journal step of the hand-over."""

Notice: TypeAlias = Callable[[str], None]
"""Is told in a sentence what happens around an episode: where it works, where its result is."""


def open_workspace(settings: Mapping[str, Json] | None) -> GitWorkspace | None:
    """The workspace that a recipe describes. Raises `InvalidInput` for settings that it does not have."""
    if settings is None:
        return None
    from mulligan.app.plugins import checked
    from mulligan.workspace.git_workspace import GitWorkspace

    own: dict[str, Any] = {key: value for key, value in settings.items() if key not in ("deliver", "patch")}
    if settings.get("deliver", "branch") not in ("branch", "patch", "in_place"):
        raise InvalidInput(f"A result is delivered as branch, patch or in_place, not {settings['deliver']!r}.")
    checked("workspace", GitWorkspace, own)
    return GitWorkspace(**own)


class Place:
    """Where one episode works. Without a workspace every step of it is nothing."""

    def __init__(self, workspace: GitWorkspace | None, episode: Episode, notice: Notice) -> None:
        self._workspace, self._episode, self._notice = workspace, episode, notice

    async def tried_out(self, judge: Evaluator) -> None:
        """Once, before the first trial of a run: can the check judge here? Raises `InvalidInput` when it cannot."""
        if self._workspace is None or not self._episode.id.endswith(".1") or not isinstance(judge, TriesOut):
            return
        from mulligan.workspace.preflight import preflight

        await preflight(self._workspace, self._episode, judge)

    async def delivered(self, episode: Episode, journal: Journal) -> None:
        """Hands over a result that is solved, or that nobody was to judge, and says how. A step of the journal, so that
        a run that was killed before it can be told from one that is done with."""
        if self._workspace is None or not deliverable(self._workspace, episode):
            return
        from mulligan.workspace.deliver import deliver

        workspace = self._workspace
        how: Any = episode.head.settings["workspace"]
        as_, file = how.get("deliver", "branch"), how.get("patch")

        async def hand_over() -> Json:
            return await deliver(workspace, episode, as_, file)

        name = DELIVERED.partition("#")[0]
        self._notice(str(await journal.step(name, {"as": as_, "file": file}, hand_over, repeatable=as_ != "in_place")))


def deliverable(workspace: GitWorkspace | None, episode: Episode) -> bool:
    """Whether there is a result to hand over: one that is solved, or that nobody was to judge."""
    return workspace is not None and (episode.solved or unjudged(episode))


def unjudged(episode: Episode) -> bool:
    """Whether it came to its end without a verdict because nobody was to judge."""
    judge: Any = episode.head.settings.get("evaluator") or {}
    ended = episode.stop is not None and episode.stop.reason == "exhausted"
    return ended and judge.get("name") == "unjudged" and not episode.judged


@asynccontextmanager
async def working_in(workspace: GitWorkspace | None, episode: Episode, notice: Notice) -> AsyncGenerator[Place]:
    """The episode's place, made for it and removed after it; its states stay in the repository."""
    if workspace is None:
        yield Place(None, episode, notice)
        return
    await workspace.open(episode)
    try:
        yield Place(workspace, episode, notice)
    finally:
        await workspace.close(episode)
