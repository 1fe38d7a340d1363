"""Runs the acting step of an agent that is defined in files: one answer, or a ReAct step with tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from mulligan.core.protocols import Journal, Model, Tools
from mulligan.core.records import Attempt, Episode, Json, Outcome, Past
from mulligan.models.steps import StepFile, perform
from mulligan.text.formatting import retry_text
from mulligan.text.programs import program


class Agent:
    """Performs the step on the task; on a retry, the message also has the previous attempt and its feedback.

    If a react step ends without `finish` or an answer, the attempt's `outcome.halted` says why.

    Args:
        step: a `StepFile` as JSON, made from AGENT.md or act.md.
        output: "code" takes the Python code out of the result.
    """

    def __init__(
        self,
        *,
        step: Mapping[str, Json],
        model: Model,
        journal: Journal,
        tools: Tools,
        output: Literal["text", "code"] = "text",
    ) -> None:
        self._step = StepFile.parse(step)
        self._model, self._journal, self._tools = model, journal, tools
        self._extracts_code = output == "code"

    async def act(self, episode: Episode, past: Past) -> Attempt:
        number = len(episode.trials) + 1
        message = retry_text(episode.task, past)
        temperature = self._step.temperature if past.temperature is None else past.temperature
        step = replace(self._step, temperature=temperature)
        async with self._tools.open(episode) as toolbox:
            seed, images = episode.head.seed + number, episode.task.images
            result = await perform(step, message, self._model, self._journal, toolbox, seed, images)
            artifacts = await toolbox.artifacts(number)
        output = program(result.text, episode.task.prompt) if self._extracts_code else result.text
        return Attempt(output, result.steps, Outcome(halted=result.halted) if result.halted else None, artifacts)
