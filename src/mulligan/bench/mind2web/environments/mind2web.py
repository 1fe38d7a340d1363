"""The environment of Mind2Web: asks for the next element of a recorded page, and then goes on as a person did."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mulligan.bench.mind2web._choosing import Walk
from mulligan.bench.mind2web._tasks import read_tasks
from mulligan.plugins import InvalidInput, Outcome, Step

OVER = "The task is over."


class Mind2Web:
    """The environment. An observation is a question; an action is the answer to it.

    Args:
        file: the file of the split that contains the task.
        task: the annotation id of the task.
        scores: the pickle of candidate scores. None: the file has ranks.
        top_k: the number of best-ranked candidates of a step to keep.
    """

    replayable = True

    def __init__(self, *, file: str, task: str, scores: str | None = None, top_k: int = 50) -> None:
        if top_k < 1:
            raise InvalidInput(f"top_k must be at least 1, not {top_k}.")
        self._file, self._task, self._top_k = Path(file), task, top_k
        self._scores = None if scores is None else Path(scores)
        self._walk: Walk | None = None

    async def reset(self) -> str:
        """Go to the first step with a question. Raises `InvalidInput` for an unknown task or an invalid file."""
        tasks = await asyncio.to_thread(read_tasks, self._file, self._scores)
        if self._task not in tasks:
            raise InvalidInput(f"{self._file} has no task {self._task!r}.")
        self._walk = Walk(tasks[self._task], self._top_k)
        return self._walk.question or OVER

    async def step(self, action: str) -> Step:
        if self._walk is None:
            raise RuntimeError("call reset before the first step")
        if self._walk.question:
            self._walk.answer(action)
        observation = self._walk.question or OVER
        return Step(action=action, observation=observation, outcome=Outcome(done=not self._walk.question))

    async def close(self) -> None:
        self._walk = None
