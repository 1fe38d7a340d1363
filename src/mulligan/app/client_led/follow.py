"""Recording a client that keeps to no order, as clients of the seed's server may: whatever it says, it is taken down.

Nothing is refused here. What came and what the state machine waits for are brought together: an attempt that nobody
judged is left as unjudged, a reflection that never came as an empty one. Trials are numbered as they come, whatever the
client calls them.
"""

from __future__ import annotations

from mulligan.app.client_led.course import Course
from mulligan.app.client_led.steps import MOST_TRIALS, ClientStep
from mulligan.core.episode import Move
from mulligan.core.records import Episode, Trial

NO_VERDICT = "The client went on without a verdict."


def begins_anew(episode: Episode, step: ClientStep, task: str) -> bool:
    """Whether this step belongs to an episode of its own, and not to this one."""
    if step.kind != "act":
        return episode.stop is not None and not _afterthought(episode, step)
    reflected = any(trial.reflection is not None for trial in episode.trials)
    full = len(episode.trials) >= MOST_TRIALS
    return episode.stop is not None or task != episode.task.prompt or (step.trial == 1 and reflected) or full


async def follow(course: Course, step: ClientStep) -> None:
    """Takes the step down. `step.memory` is what the client was shown in it, without the reflection that it brings."""
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
