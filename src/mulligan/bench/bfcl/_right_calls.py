"""The right calls of each task as a recorded episode. Only replays use it: a user's bank never learns a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from mulligan.bench.bfcl._wheel import Dialogue, dialogues, run_services, truths, wheel_of
from mulligan.plugins import Attempt, Episode, Json, Sandbox, Step, Task, Trial

CATEGORY = "base"


async def right_episodes(sandbox: Sandbox, files: Sequence[Path]) -> Mapping[str, Episode]:
    """The right calls of each task as a recorded episode, by the task's id. Raises `InvalidInput`, `WorldError`."""
    wheel = wheel_of(files)
    tasks, answers = dialogues(wheel, CATEGORY), cast(Mapping[str, list[list[str]]], truths(wheel, CATEGORY))
    items: list[Json] = [
        {"entry": dict(task.entry), "calls": [[call for turn in answers[id] for call in turn]]}
        for id, task in tasks.items()
    ]
    results = await run_services(sandbox, files, items)
    return {id: _episode(id, tasks[id], answers[id], each) for id, each in zip(tasks, results, strict=True)}


def _episode(id: str, task: Dialogue, answers: Sequence[Sequence[str]], results: Sequence[str]) -> Episode:
    rest, steps = iter(results), list[Step]()
    for turn, calls in enumerate(answers):
        steps += [Step(observation=task.opening(turn)), *(Step(action=call, observation=next(rest)) for call in calls)]
    return Episode(f"{id}.right", Task(task.turns[0]), trials=(Trial(1, Attempt("", tuple(steps))),))
