"""Judges by the reflect.md of an agent that is defined in files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Journal, Model, Tools
from mulligan.core.questions import Question
from mulligan.core.records import Attempt, Episode, Feedback, Json
from mulligan.models.steps import Performed, StepFile, perform, question_of
from mulligan.text.formatting import review_text, task_text
from mulligan.text.secrets import mask_attempt

_DONE = re.compile(r"\s*DONE\b", re.IGNORECASE)


class Review:
    """Judges by a step that is performed on the task and the result.

    The attempt passes if `finish` is called with the key "done", or a plain text begins with the word DONE in any
    case. With any other key or text it fails, and the value or the whole text is the feedback. An attempt that was
    halted never passes. `passed` is None if the step was halted or not performed. `ask` and `take` of a oneshot step
    can be used alone, without a model.

    Args:
        step: a `StepFile` as JSON, read from reflect.md.
        judged: the number of the last trial that is judged. None judges all.
    """

    expects: Literal["text", "code", "workspace"] = "text"

    def __init__(
        self,
        *,
        step: Mapping[str, Json],
        judged: int | None = None,
        model: Model,
        journal: Journal,
        tools: Tools,
    ) -> None:
        self._step = StepFile.parse(step)
        self._judged = judged
        self._model, self._journal, self._tools = model, journal, tools

    async def evaluate(self, episode: Episode) -> Feedback:
        trial = episode.trials[-1]
        if self._judged is not None and trial.number > self._judged:
            return Feedback(None, "The last trial is not judged (judge_last: false).", source="review")
        material = _shown(episode)
        async with self._tools.open(episode) as toolbox:
            seed = episode.head.seed + trial.number
            result = await perform(self._step, material, self._model, self._journal, toolbox, seed)
        return verdict(result, trial.attempt)

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        return question_of(self._step, _shown(episode))

    def take(self, episodes: Sequence[Episode], answer: Json) -> Feedback:
        if not isinstance(answer, str):
            raise BadAnswer("A review is a string: DONE, or what to improve.")
        return verdict(Performed(answer.strip()), episodes[0].trials[-1].attempt)


def _shown(episode: Episode) -> str:
    return mask_attempt(review_text(episode.task, episode.trials[-1]), task_text(episode.task))


def verdict(result: Performed, attempt: Attempt) -> Feedback:
    """The feedback of a review."""
    if result.halted:
        return Feedback(None, f"The reflector came to no verdict: {result.halted}.", source="review")
    done = _DONE.match(result.text) is not None if result.key is None else result.key.casefold() == "done"
    halted = attempt.outcome.halted if attempt.outcome else None
    note = (f"the reflector was satisfied with an attempt that was halted: {halted}",) if done and halted else ()
    return Feedback(done and not halted, result.text, source="review", notes=note)
