"""What `solve` does between its arguments and its answer: the episode in a task of its own, told of as it goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import anyio

from mulligan.app.hosted import Wanted, solve_hosted
from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected
from mulligan.core.errors import InvalidInput, MulliganError, UnknownName
from mulligan.core.records import Episode, Feedback, Json, Trial
from mulligan.mcp_server.tool import Call, Reply
from mulligan.text.plain import one_line
from mulligan.text.truncate import truncate_text

log = logging.getLogger("mulligan.serve")

TOKENS = 400
"""What is told of one feedback or reflection, head and tail; `mulligan runs show --full` has all of it."""

WIDTH = 160
"""Characters of foreign text in a line of progress."""

LEAVING = 10.0
"""Seconds that a cancelled episode gets to be recorded as interrupted; it takes milliseconds."""

Line: TypeAlias = "tuple[float, float, str]"
"""A notification of progress: how far (in trials), of how many, in words."""


async def solved(wanted: Wanted, call: Call) -> Reply:
    """The answer of the tool; of an episode that an error stopped, an error that names it. Raises what `solve_hosted`
    raises before the episode is begun."""
    watch = Watch()
    begun = solve_hosted(call.service, wanted, on_start=watch.began, observers=(watch.saw,), notice=watch.notes.append)
    work = asyncio.create_task(begun)
    try:
        episode = await _finished(work, watch, call)
    except MulliganError as error:  # what could not be kept, say; the episode itself takes the model's errors
        if watch.episode is None:
            raise
        return _erred(str(error), watch.episode)
    if episode.stop is not None and episode.stop.reason == "error":
        return _erred(episode.stop.detail, episode)
    return Reply(answer(episode, watch.notes), indent=None)


def wanted_of(arguments: Mapping[str, Json], known: Collection[str], call: Call) -> Wanted:
    """The arguments, checked; null stands for one that is left out. Raises `InvalidInput`."""
    for name in arguments:
        if name not in known:
            raise UnknownName("argument of solve", name, known)
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in ("task", "tests", "expected"):
        if name in given and not (isinstance(given[name], str) and given[name].strip()):
            raise InvalidInput(f"{name!r} must be a text that is not empty.")
    if "task" not in given:
        raise InvalidInput("'task' is missing: say what is to be done.")
    trials, remember = given.get("trials"), given.get("remember", False)
    if isinstance(trials, float) and trials.is_integer():
        trials = int(trials)
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int)):
        raise InvalidInput(f"'trials' must be a whole number, not {trials!r}.")
    if not isinstance(remember, bool):
        raise InvalidInput("'remember' must be true or false.")
    agent = call.agent(given.get("agentId")) or ""
    return Wanted(given["task"], given.get("tests"), given.get("expected"), trials, agent, remember)


async def _finished(work: asyncio.Task[Episode], watch: Watch, call: Call) -> Episode:
    """The episode at its end, told of as it goes. It has a task of its own: the scope in which a call is cancelled
    cancels again at each await, and an episode needs some to be recorded as interrupted."""
    work.add_done_callback(lambda _: watch.lines.put_nowait(None))
    try:
        while (line := await watch.lines.get()) is not None:
            await call.progress(*line)
        return await work
    finally:
        if not work.done():
            work.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({work}, timeout=LEAVING)
            if not work.done():
                log.warning("a cancelled episode is still not recorded as interrupted after %g s", LEAVING)


class Watch:
    """Follows the episode from inside its task, and puts what is to be told into `lines`; None is the end of them."""

    def __init__(self) -> None:
        self.episode: Episode | None = None
        self.lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self.notes: list[str] = []
        self._trials = 0

    def began(self, episode: Episode, limits: Any) -> None:
        self.episode, self._trials = episode, limits.trials
        self._tell(0, f"episode {episode.id} begun, judged by {judge_of(episode)}")

    def saw(self, episode: Episode, event: Event) -> None:
        self.episode = episode
        before, at = len(episode.trials) - 1, f"trial {len(episode.trials)} of {self._trials}"
        match event:
            case Recalled(recall):
                self._tell(0.1, f"recalled {len(recall.lessons)} lessons")
            case Acted():
                self._tell(before + 0.4, f"{at}: tried")
            case Evaluated(_, feedback):
                self._tell(before + 0.8, _line(f"{at}: {_verdict(feedback)}", "" if feedback.passed else feedback.text))
            case Reflected(_, reflection) if reflection:
                said = f"{at}: lesson withheld" if reflection.withheld else f"{at}: reflected"
                self._tell(before + 1, _line(said, reflection.withheld or reflection.text))
            case _ if episode.stop:
                self._tell(self._trials, _line(f"over: {episode.stop.reason}", episode.stop.detail))
            case _:
                pass

    def _tell(self, done: float, words: str) -> None:
        self.lines.put_nowait((done, self._trials, words))


def answer(episode: Episode, notes: list[str]) -> dict[str, Json]:
    """The episode as the output schema has it."""
    best, usage = episode.best, episode.usage
    return {
        "status": episode.stop.reason if episode.stop else "interrupted",
        "solved": episode.solved,
        "output": best.attempt.output if best else None,
        "episodeId": episode.id,
        "trials": [_told(trial) for trial in episode.trials],
        "usage": {"tokens": usage.tokens, "calls": usage.calls, "cost": usage.cost},
        "judgedBy": judge_of(episode),
        "notes": [*_qualified(episode), *notes],
    }


def judge_of(episode: Episode) -> str:
    spec: Any = episode.head.settings["evaluator"]
    return str(spec["name"])


def _told(trial: Trial) -> Json:
    feedback = trial.feedback
    return {
        "number": trial.number,
        "passed": feedback.passed if feedback else None,
        "score": feedback.score if feedback else None,
        "feedback": truncate_text(feedback.text, TOKENS) if feedback else "",
        "reflection": truncate_text(trial.lesson, TOKENS) or None,
    }


def _qualified(episode: Episode) -> list[str]:
    """What whoever reads the verdict has to know of it."""
    notes, models, best = list[str](), episode.head.models, episode.best
    if judge_of(episode) == "model_judge":
        who = models.get("evaluator", "a model")
        itself = "the model that tried, " if who == models.get("actor") else ""
        notes.append(f"Judged by {itself}{who}, not by a test: weaker than `tests` or `expected`.")
    if best and best.feedback:
        notes += best.feedback.notes
    if episode.stop and episode.stop.reason != "solved":
        notes.append(f"Not solved: {episode.stop.detail}.")
    if episode.stop and episode.stop.reason == "over_budget":
        notes.append(f"With a higher limit it goes on: mulligan runs resume {episode.run}")
    return notes


def _erred(message: str, episode: Episode) -> Reply:
    """An error that names the episode: what it had is kept, and can be gone on with."""
    best = episode.best
    so_far: dict[str, Json] = {"output": best.attempt.output} if best else {}
    said = f"{message.rstrip('.')}. What was done is recorded: mulligan runs resume {episode.run}"
    return Reply({"error": said, "status": "error", "episodeId": episode.id, **so_far}, error=True, indent=None)


def _verdict(feedback: Feedback) -> str:
    said = {True: "passed", False: "failed", None: "no verdict"}[feedback.passed]
    return said if feedback.score is None else f"{said}, score {feedback.score:.2f}"


def _line(start: str, text: str) -> str:
    shown = one_line(text, WIDTH)
    return f"{start}: {shown}" if shown else start
