"""What the tool `solve` does: runs an episode in a task of its own, and reports its progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import anyio

from mulligan.app.hosted import SolveRequest, solve_hosted
from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.records import Episode, Feedback, Json, Trial
from mulligan.mcp_server.tool import SOLVE, Call, Reply
from mulligan.text.plain import count, one_line
from mulligan.text.truncate import truncate_text

log = logging.getLogger("mulligan.serve")

MAX_TOKENS = 400
"""Tokens shown of a feedback or reflection, head and tail; `mulligan runs show --full` has all of it."""

MAX_LINE = 160
"""Characters of feedback or reflection in a progress message."""

CANCEL_SECONDS = 10.0
"""How long recording a cancelled episode as interrupted may take; it takes milliseconds."""

Progress: TypeAlias = "tuple[float, float, str]"
"""How many trials are done, of how many, and a message."""


async def solve(request: SolveRequest, call: Call) -> Reply:
    """Runs the episode and returns the tool's answer; an error that names the episode, if an error stopped it.

    Raises:
        MulliganError: what `solve_hosted` raises before the episode starts.
    """
    watch = ToolWatch(call.on_task)
    work = asyncio.create_task(
        solve_hosted(call.service, request, on_start=watch.started, observers=(watch.saw,), notice=watch.notes.append)
    )
    try:
        episode = await _follow(work, watch, call)
    except MulliganError as error:  # for example in recording; a model's error ends the episode
        if watch.episode is None:
            raise
        return _error_reply(str(error), watch.episode)
    return reply_of(episode, watch.notes)


def reply_of(episode: Episode, notes: list[str]) -> Reply:
    """The tool's answer for an episode that has ended."""
    if episode.stop is not None and episode.stop.reason == "error":
        return _error_reply(episode.stop.detail, episode)
    return Reply(answer(episode, notes), indent=None)


def parse(arguments: Mapping[str, Json], call: Call) -> SolveRequest:
    """Checks the arguments; null counts as left out. Raises `InvalidInput`."""
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in ("task", "tests", "expected"):
        if name in given and not (isinstance(given[name], str) and given[name].strip()):
            raise InvalidInput(f"{name!r} must be a non-empty string.")
    if "task" not in given:
        raise InvalidInput("'task' is missing: describe what to do.")
    trials, remember = given.get("trials"), given.get("remember", False)
    if isinstance(trials, float) and trials.is_integer():
        trials = int(trials)
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int)):
        raise InvalidInput(f"'trials' must be an integer, not {trials!r}.")
    if not isinstance(remember, bool):
        raise InvalidInput("'remember' must be true or false.")
    agent = call.agent(given.get("agentId") or None) or ""
    return SolveRequest(given["task"], given.get("tests"), given.get("expected"), trials, agent, remember)


async def _follow(work: asyncio.Task[Episode], watch: ToolWatch, call: Call) -> Episode:
    """Reports progress until the episode ends, and returns it.

    The episode has a task of its own, because the scope that cancels a call cancels each further await in it, and the
    episode needs some to be recorded as interrupted.
    """
    work.add_done_callback(lambda _: watch.queue.put_nowait(None))
    try:
        while (progress := await watch.queue.get()) is not None:
            await call.progress(*progress)
        return await work
    finally:
        if not work.done():
            work.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({work}, timeout=CANCEL_SECONDS)
            if not work.done():
                log.warning("a cancelled episode is still not recorded as interrupted after %g s", CANCEL_SECONDS)


class ToolWatch:
    """Observes the episode from its own task, and puts progress into `queue`; None ends it."""

    def __init__(self, on_task: Callable[[str], object] | None) -> None:
        self._on_task = on_task
        self.episode: Episode | None = None
        self.queue: asyncio.Queue[Progress | None] = asyncio.Queue()
        self.notes: list[str] = []
        self._trials = 0

    def started(self, episode: Episode, limits: Any) -> None:
        self.episode, self._trials = episode, limits.trials
        self._report(0, f"episode {episode.id} begun, judged by {judge_of(episode)}")
        if self._on_task is not None:
            self._on_task(SOLVE + episode.id)

    def saw(self, episode: Episode, event: Event) -> None:
        self.episode = episode
        before, at = len(episode.trials) - 1, f"trial {len(episode.trials)} of {self._trials}"
        match event:
            case Recalled(recall):
                self._report(0.1, _line(f"recalled {count(len(recall.lessons), 'lesson')}", recall.note))
            case Acted():
                self._report(before + 0.4, f"{at}: tried")
            case Evaluated(_, feedback):
                self._report(
                    before + 0.8, _line(f"{at}: {_verdict(feedback)}", "" if feedback.passed else feedback.text)
                )
            case Reflected(_, reflection) if reflection:
                text = f"{at}: lesson not shown" if reflection.withheld else f"{at}: reflected"
                self._report(before + 1, _line(text, reflection.withheld or reflection.text))
            case _ if episode.stop:
                self._report(self._trials, _line(f"over: {episode.stop.reason}", episode.stop.detail))
            case _:
                pass

    def _report(self, done: float, words: str) -> None:
        self.queue.put_nowait((done, self._trials, words))


def answer(episode: Episode, notes: list[str]) -> dict[str, Json]:
    """The episode in the format of the output schema."""
    best, usage = episode.best, episode.usage
    return {
        "status": episode.stop.reason if episode.stop else "interrupted",
        "solved": episode.solved,
        "output": best.attempt.output if best else None,
        "episodeId": episode.id,
        "trials": [_trial(trial) for trial in episode.trials],
        "usage": {"tokens": usage.tokens, "calls": usage.calls, "cost": usage.cost},
        "judgedBy": judge_of(episode),
        "notes": [*_qualifications(episode), *notes],
    }


def judge_of(episode: Episode) -> str:
    spec: Any = episode.head.settings["evaluator"]
    return str(spec["name"])


def _trial(trial: Trial) -> Json:
    feedback = trial.feedback
    return {
        "number": trial.number,
        "passed": feedback.passed if feedback else None,
        "score": feedback.score if feedback else None,
        "feedback": truncate_text(feedback.text, MAX_TOKENS) if feedback else "",
        "reflection": truncate_text(trial.lesson, MAX_TOKENS) or None,
    }


def _qualifications(episode: Episode) -> list[str]:
    """What a reader of the verdict should know about it."""
    notes, models, best = list[str](), episode.head.models, episode.best
    if judge_of(episode) == "model_judge":
        who = models.get("evaluator", "a model")
        itself = "the model that tried, " if who == models.get("actor") else ""
        notes.append(f"Judged by {itself}{who}, not by a test: weaker than `tests` or `expected`.")
    if best and best.feedback:
        notes += best.feedback.notes
    if episode.stop and episode.stop.reason != "solved":
        notes.append(f"{'Not solved' if episode.judged else 'Could not be judged'}: {episode.stop.detail}.")
    if episode.stop and episode.stop.reason == "over_budget":
        notes.append(f"To continue with a higher limit: mulligan runs resume {episode.run}")
    return notes


def _error_reply(message: str, episode: Episode) -> Reply:
    """An error that names the episode, which is recorded and can be resumed."""
    best = episode.best
    so_far: dict[str, Json] = {"output": best.attempt.output} if best else {}
    error = f"{message.rstrip('.')}. What was done is recorded: mulligan runs resume {episode.run}"
    return Reply({"error": error, "status": "error", "episodeId": episode.id, **so_far}, error=True, indent=None)


def _verdict(feedback: Feedback) -> str:
    text = {True: "passed", False: "failed", None: "no verdict"}[feedback.passed]
    return text if feedback.score is None else f"{text}, score {feedback.score:.2f}"


def _line(start: str, text: str) -> str:
    shown = one_line(text, MAX_LINE)
    return f"{start}: {shown}" if shown else start
