"""Prepares an episode's workspace, checks it before the first trial, and delivers the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from mulligan.app.plugins import attribute_of, checked
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Brief, Evaluator, Journal, PreflightEvaluator
from mulligan.core.records import Episode, Json, Stop, StopReason
from mulligan.workspace import deliver, preflight
from mulligan.workspace.git_workspace import GitWorkspace

DELIVERED = "delivered#1"
"""The journal step of the hand-over."""

Notice: TypeAlias = Callable[[str], None]
"""Called with a sentence on what happens around an episode: where it works, where its result is."""


def open_workspace(settings: Mapping[str, Json] | None) -> GitWorkspace | None:
    """The workspace that a recipe describes. Raises `InvalidInput` for settings that it does not have."""
    if settings is None:
        return None
    own: dict[str, Any] = {key: value for key, value in settings.items() if key not in ("deliver", "patch")}
    if settings.get("deliver", "branch") not in ("branch", "patch", "in_place"):
        raise InvalidInput(f"A result is delivered as branch, patch or in_place, not {settings['deliver']!r}.")
    checked("workspace", GitWorkspace, own)
    return GitWorkspace(**own)


class EpisodeWorkspace:
    """The workspace of one episode. Where there is none, each method does nothing."""

    def __init__(self, workspace: GitWorkspace | None, episode: Episode, notice: Notice) -> None:
        self._workspace, self._episode, self._notice = workspace, episode, notice

    async def preflight(self, judge: Evaluator) -> None:
        """Before a run's first trial, try whether the check can judge here. Raises `InvalidInput` when it cannot."""
        if self._workspace is None or not self._episode.id.endswith(".1") or not isinstance(judge, PreflightEvaluator):
            return
        await preflight.preflight(self._workspace, self._episode, judge)

    async def deliver(self, episode: Episode, journal: Journal) -> None:
        """Hand over a result that is solved, or that nobody was to judge, and say how.

        It is a step of the journal, so that a run that was killed before it can be told from one that is complete.
        """
        if self._workspace is None or not deliverable(self._workspace, episode):
            return
        workspace = self._workspace
        how: Any = episode.head.settings["workspace"]
        as_, file = how.get("deliver", "branch"), how.get("patch")

        async def hand_over() -> Json:
            return await deliver.deliver(workspace, episode, as_, file)

        name = DELIVERED.partition("#")[0]
        self._notice(str(await journal.step(name, {"as": as_, "file": file}, hand_over, repeatable=as_ != "in_place")))


def deliverable(workspace: GitWorkspace | None, episode: Episode) -> bool:
    """Whether there is a result to hand over: one that is solved, or that nobody was to judge."""
    return workspace is not None and (episode.solved or unjudged(episode))


def has_judge(episode: Episode | Brief) -> bool:
    """Whether the evaluator of the episode gives verdicts."""
    evaluator: Any = episode.head.settings.get("evaluator") or {}
    return attribute_of("evaluators", str(evaluator.get("name", "")), "judges", True)


def unjudged(episode: Episode | Brief) -> bool:
    """Whether the episode ended without a verdict because its evaluator gives none."""
    return stop_reason(episode) == "exhausted" and not episode.judged and not has_judge(episode)


def stop_reason(episode: Episode | Brief) -> StopReason | None:
    """Why it ended; None: not yet."""
    return episode.stop.reason if isinstance(episode.stop, Stop) else episode.stop


@asynccontextmanager
async def working_in(
    workspace: GitWorkspace | None, episode: Episode, notice: Notice
) -> AsyncGenerator[EpisodeWorkspace]:
    """The episode's workspace, made for it and removed after it; its states stay in the repository."""
    if workspace is None:
        yield EpisodeWorkspace(None, episode, notice)
        return
    await workspace.open(episode)
    try:
        yield EpisodeWorkspace(workspace, episode, notice)
    finally:
        await workspace.close(episode)
