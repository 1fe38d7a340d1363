"""Prepares an episode's workspace, checks it before the first trial, and delivers the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from mulligan.app.plugins import attribute_of, checked
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput, NotFound
from mulligan.core.protocols import Brief, Evaluator, Journal, PreflightEvaluator
from mulligan.core.records import Episode, Feedback, Json, Stop, StopReason
from mulligan.core.stores import EpisodeReader
from mulligan.recording.ledger import Entry
from mulligan.workspace import deliver, preflight
from mulligan.workspace.git_workspace import GitWorkspace

BASELINE = "baseline#1"
"""The journal step with the check's verdict before the first trial."""
DELIVERED = "delivered#1"
"""The journal step that delivers the result."""

MAX_FILE_NAMES = 10
"""How many protected files a note names."""

Notice: TypeAlias = Callable[[str], None]
"""Called with a sentence on what happens around an episode: where it works, where its result is."""


def open_workspace(settings: Mapping[str, Json] | None) -> GitWorkspace | None:
    """The workspace that a recipe describes. Raises `InvalidInput` for unknown settings."""
    if settings is None:
        return None
    git_settings: dict[str, Any] = {key: value for key, value in settings.items() if key not in ("deliver", "patch")}
    if settings.get("deliver", "branch") not in ("branch", "patch", "in_place"):
        raise InvalidInput(f"'deliver' must be branch, patch or in_place, not {settings['deliver']!r}.")
    checked("workspace", GitWorkspace, git_settings)
    return GitWorkspace(**git_settings)


async def recorded_baseline(store: EpisodeReader, episode: Episode) -> Feedback | None:
    """The check's verdict before the run's first trial, from the record of this episode or of the run's first one."""
    for id in dict.fromkeys((episode.id, f"{episode.id.rpartition('.')[0]}.1")):
        with suppress(NotFound):
            for row in await store.steps(id):
                if row.key == BASELINE and row.done:
                    return from_json(Feedback, row.result)
    return None


def protected(judge: Evaluator, workspace: GitWorkspace | None) -> Evaluator:
    """The judge, with protected files restored for it. Raises `InvalidInput` if it does not judge files."""
    if workspace is None or not workspace.protect:
        return judge
    if judge.expects != "workspace":
        raise InvalidInput(
            f"'protect' restores files for a check of the workspace, but this judge looks only at {judge.expects}. "
            "Judge with a command, or omit 'protect'."
        )
    return _ProtectedEvaluator(judge, workspace)


class _ProtectedEvaluator:
    """Judges each attempt with the protected files as they were before the first trial."""

    expects: Literal["workspace"] = "workspace"

    def __init__(self, inner: Evaluator, workspace: GitWorkspace) -> None:
        self._inner, self._workspace = inner, workspace

    async def evaluate(self, episode: Episode) -> Feedback:
        async with self._workspace.protecting(episode) as changed:
            feedback = await self._inner.evaluate(episode)
        if not changed:
            return feedback
        others = f" and {len(changed) - MAX_FILE_NAMES} more" if len(changed) > MAX_FILE_NAMES else ""
        names = ", ".join(changed[:MAX_FILE_NAMES])
        note = f"judged with protected files as they were before the first trial: {names}{others}"
        return replace(feedback, notes=(*feedback.notes, note))


class EpisodeWorkspace:
    """The workspace of one episode. Without a workspace, each method does nothing."""

    def __init__(self, workspace: GitWorkspace | None, episode: Episode, notice: Notice) -> None:
        self._workspace, self._episode, self._notice = workspace, episode, notice

    async def preflight(self, judge: Evaluator, entry: Entry) -> None:
        """Records the check's verdict before a run's first trial. Raises `InvalidInput` if it cannot judge here."""
        if self._workspace is None or not self._episode.id.endswith(".1") or not isinstance(judge, PreflightEvaluator):
            return
        verdict = await preflight.preflight(self._workspace, self._episode, judge)
        await entry.begin_step(BASELINE, {})  # only now: an episode whose check is refused leaves no steps
        await entry.finish_step(BASELINE, to_json(verdict))

    async def deliver(self, episode: Episode, journal: Journal) -> None:
        """Delivers a result that is solved or has no judge, and says how.

        It is a step of the journal, so that a run that was killed before it differs from a complete one.
        """
        if self._workspace is None or not deliverable(self._workspace, episode):
            return
        workspace = self._workspace
        settings: Any = episode.head.settings["workspace"]
        form, file = settings.get("deliver", "branch"), settings.get("patch")

        async def do() -> Json:
            return await deliver.deliver(workspace, episode, form, file)

        name = DELIVERED.partition("#")[0]
        self._notice(str(await journal.step(name, {"as": form, "file": file}, do, repeatable=form != "in_place")))


def deliverable(workspace: GitWorkspace | None, episode: Episode) -> bool:
    """Whether there is a result to deliver: one that is solved or has no judge."""
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
    """The episode's workspace, created for the block and removed after it. Its states stay in the repository."""
    if workspace is None:
        yield EpisodeWorkspace(None, episode, notice)
        return
    await workspace.open(episode)
    try:
        yield EpisodeWorkspace(workspace, episode, notice)
    finally:
        await workspace.close(episode)
