"""Runs a task with five trajectories and a bank, or resumes it, and is killed: `mortal_scale.py LOG CALL`.

CALL: the number of the answer of a model after which the process kills itself; 0 for never. Each answer leaves a line
in LOG.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, Literal

import mulligan
from mulligan.app.config import load
from mulligan.app.memory import open_bank
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Episode, Feedback
from mulligan.models.scripted import ScriptedModel
from mulligan.store import open_store


class Fourth:
    """The second attempt of the fourth trajectory passes."""

    expects: Literal["text"] = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(episode.trials[-1].attempt.output == "answer 3002", "", score=0.0, source="fourth")


class Mortal(ScriptedModel):
    def __init__(self, log: Path, at: int) -> None:
        super().__init__(self._answered)
        self._log, self._at, self._count = log, at, 0

    def _answered(self, question: Question, sampling: Sampling) -> Any:
        if question.schema is None:
            return f"answer {sampling.seed}"
        lesson = {"title": "Say tea", "description": "When asked.", "content": "Answer with tea.", "steps": [1]}
        return {"why": "w", "lessons": [lesson], "nothing_because": ""}

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        await asyncio.sleep(0)
        answer = await super().ask(question, sampling)
        self._count += 1
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"answered {'bank' if question.schema else sampling.seed}\n")
        if self._count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


async def main(log: Path, at: int) -> None:
    model = Mortal(log, at)
    async with open_store(load().store) as store:
        runs = await store.list()
    if runs:
        episode = await mulligan.resume(runs[0].run, model=model, evaluator=Fourth())
    else:
        given: dict[str, Any] = {"strategy": "none", "trials": 2, "evaluator": Fourth(), "bank": "drinker"}
        episode = await mulligan.solve("Name a drink.", model=model, scale="parallel:5", **given)
    async with open_store(load().store) as store:
        count = len(await store.list(run=episode.run))
    async with open_bank("drinker") as bank:
        lessons = len(await bank.list())
    print(f"{count} trajectories, the best is {episode.id.rpartition('.')[2]}, {lessons} lesson")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
