"""Runs the reflect.md of an agent that is defined in files, where tests or a command judge. Its text is the lesson."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.protocols import Journal, Model, Tools
from mulligan.core.records import Episode, Json, Reflection
from mulligan.models.steps import StepFile, perform
from mulligan.text.formatting import review_text


class Review:
    """Performs the step on the task, the result and the verdict. Its own opinion of the result is ignored.

    Args:
        step: a `StepFile` as JSON, made from reflect.md.
    """

    def __init__(self, *, step: Mapping[str, Json], model: Model, journal: Journal, tools: Tools) -> None:
        self._step = StepFile.parse(step)
        self._model, self._journal, self._tools = model, journal, tools

    async def reflect(self, episode: Episode) -> Reflection | None:
        trial = episode.trials[-1]
        told = review_text(episode.task, trial)
        async with self._tools.open(episode) as toolbox:
            seed = episode.head.seed + trial.number
            made = await perform(self._step, told, self._model, self._journal, toolbox, seed)
        return Reflection(made.text)
