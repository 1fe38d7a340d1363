"""Records the steps of a client that keeps no order. No step is refused.

Steps that the state machine expects and the client left out are filled in: an attempt without a verdict is recorded as
unjudged, a missing reflection as an empty one. Trials are numbered in the order in which they come, whatever numbers
the client gives.
"""

from __future__ import annotations

from mulligan.app.client_led.course import Course
from mulligan.app.client_led.steps import MOST_TRIALS, ClientStep
from mulligan.core.episode import Move
from mulligan.core.records import Episode, Trial

NO_VERDICT = "The client continued without a verdict."


def begins_anew(episode: Episode, step: ClientStep, task: str) -> bool:
    """Whether this step begins a new episode."""
    if step.kind != "act":
        return episode.stop is not None and not _afterthought(episode, step)
    reflected = any(trial.reflection is not None for trial in episode.trials)
    full = len(episode.trials) >= MOST_TRIALS
    return episode.stop is not None or task != episode.task.prompt or (step.trial == 1 and reflected) or full


async def follow(course: Course, step: ClientStep) -> None:
    """Records the step. `step.memory` holds the reflections that the client was shown, without the new one."""
    if course.episode.stop is not None:
        return
    memory = list(step.memory or ())
    if step.kind == "act":
        await _prompted(course, step, memory)
        return
    if _repeats(course, step):
        return
    if not _goes_on(course, step):
        await _attempted(course, step, memory)
    number = len(course.episode.trials)
    if course.row(number, "evaluate") is None:
        await course.begin(number, "evaluate", {"memory": memory})
    if step.kind == "evaluate" and not step.passed:
        return
    await course.judge(step, memory)
    if step.passed:
        await course.stop()
        return
    if course.row(number, "reflect") is None:
        await course.begin(number, "reflect", {"memory": memory})
    if step.reflection is not None:
        last = step.trial == step.trials or number == MOST_TRIALS
        await course.reflect(number, step.reflection, memory, last=last)
        if last:
            await course.stop()


async def _prompted(course: Course, step: ClientStep, memory: list[str]) -> None:
    """An actor step that comes while something else is due is only asked early: its attempt will tell."""
    trial = len(course.episode.trials) + 1
    if course.due != Move("act", trial):
        return
    request = {"prompt": step.prompt, "memory": memory}
    row = course.row(trial, "act")
    if row is None or row.done or row.request != request:
        await course.begin(trial, "act", request)


async def _attempted(course: Course, step: ClientStep, memory: list[str]) -> None:
    """A new attempt; what the newest one still lacked is made up for."""
    newest = course.newest
    if newest is not None and newest.feedback is None:
        await course.unjudged(memory, NO_VERDICT)
    elif newest is not None and newest.reflection is None and newest.feedback and newest.feedback.passed is False:
        await course.reflect(newest.number, "", memory, last=False)
    trial = len(course.episode.trials) + 1
    if course.row(trial, "act") is None:
        await course.begin(trial, "act", {"prompt": course.episode.task.prompt, "memory": memory})
    await course.attempt(trial, step.output)


def _goes_on(course: Course, step: ClientStep) -> bool:
    """Whether it speaks of the newest attempt, and of what is still open of it."""
    newest = course.newest
    if newest is None or not _same(newest, step) or newest.reflection is not None:
        return False
    if newest.feedback is None:
        return True
    return newest.feedback.passed is False and step.kind == "reflect" and not step.passed


def _repeats(course: Course, step: ClientStep) -> bool:
    """Whether it is the newest trial's reflection once more, and no other trial was begun since."""
    newest = course.newest
    if newest is None or newest.reflection is None or course.row(newest.number + 1, "act") is not None:
        return False
    return _same(newest, step) and step.reflection == newest.reflection.text


def _afterthought(episode: Episode, step: ClientStep) -> bool:
    """Whether it says once more what ended the episode; of an attempt that passed, whether it says anything."""
    newest = episode.trials[-1]
    if episode.solved or step.passed:
        return episode.solved and _same(newest, step)
    return _same(newest, step) and step.reflection in (None, newest.reflection and newest.reflection.text)


def _same(trial: Trial, step: ClientStep) -> bool:
    return trial.attempt.output == step.output
