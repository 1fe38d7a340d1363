"""Records the steps of a client that keeps no order. No step is refused.

Steps that the client left out are filled in: an attempt without a verdict is recorded as unjudged, and a missing
reflection as an empty one. Trials are numbered in the order in which they come, whatever numbers the client gives.
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
        return episode.stop is not None and not _repeats_end(episode, step)
    reflected = any(trial.reflection is not None for trial in episode.trials)
    full = len(episode.trials) >= MOST_TRIALS
    return episode.stop is not None or task != episode.task.prompt or (step.trial == 1 and reflected) or full


async def follow(course: Course, step: ClientStep) -> None:
    """Records the step. `step.memory` holds the reflections that the client was shown, without the new one."""
    if course.episode.stop is not None:
        return
    memory = list(step.memory or ())
    if step.kind == "act":
        await _begin_trial(course, step, memory)
        return
    if _repeats(course, step):
        return
    if not _concerns_open_trial(course, step):
        await _record_attempt(course, step, memory)
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


async def _begin_trial(course: Course, step: ClientStep, memory: list[str]) -> None:
    """Begins the actor step, unless something else is due: then the step came early, and its attempt decides."""
    trial = len(course.episode.trials) + 1
    if course.due != Move("act", trial):
        return
    request = {"prompt": step.prompt, "memory": memory}
    row = course.row(trial, "act")
    if row is None or row.done or row.request != request:
        await course.begin(trial, "act", request)


async def _record_attempt(course: Course, step: ClientStep, memory: list[str]) -> None:
    """Records a new attempt, after completing the newest trial."""
    newest = course.newest
    if newest is not None and newest.feedback is None:
        await course.unjudged(memory, NO_VERDICT)
    elif newest is not None and newest.reflection is None and newest.feedback and newest.feedback.passed is False:
        await course.reflect(newest.number, "", memory, last=False)
    trial = len(course.episode.trials) + 1
    if course.row(trial, "act") is None:
        await course.begin(trial, "act", {"prompt": course.episode.task.prompt, "memory": memory})
    await course.attempt(trial, step.output)


def _concerns_open_trial(course: Course, step: ClientStep) -> bool:
    """Whether the step concerns the newest attempt, and a part of its trial that is still open."""
    newest = course.newest
    if newest is None or not _same_output(newest, step) or newest.reflection is not None:
        return False
    if newest.feedback is None:
        return True
    return newest.feedback.passed is False and step.kind == "reflect" and not step.passed


def _repeats(course: Course, step: ClientStep) -> bool:
    """Whether the step repeats the newest trial's reflection, and no other trial has begun since."""
    newest = course.newest
    if newest is None or newest.reflection is None or course.row(newest.number + 1, "act") is not None:
        return False
    return _same_output(newest, step) and step.reflection == newest.reflection.text


def _repeats_end(episode: Episode, step: ClientStep) -> bool:
    """Whether the step repeats what ended the episode, or, if the attempt passed, concerns it at all."""
    newest = episode.trials[-1]
    if episode.solved or step.passed:
        return episode.solved and _same_output(newest, step)
    return _same_output(newest, step) and step.reflection in (None, newest.reflection and newest.reflection.text)


def _same_output(trial: Trial, step: ClientStep) -> bool:
    return trial.attempt.output == step.output
