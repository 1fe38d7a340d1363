"""Asks a model which of several attempts at one task is the best. The attempts are compared, not judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question, Sampling, object_schema
from mulligan.core.records import Episode, Json
from mulligan.text.formatting import TOKENS, attempt_text, fenced, task_text
from mulligan.text.secrets import mask_attempt

COMPARING = Sampling(0.0, 1024)
PROMPT = "comparison.best"


class Comparison:
    """Compares the best attempts of several episodes. `ask` and `take` do not need a model.

    Args:
        tokens: Maximum tokens of all attempts in the prompt.
        numbers: The numbers by which the prompt names the attempts. None counts from 1.
    """

    def __init__(self, prompts: Prompts, *, tokens: int = 8 * TOKENS, numbers: Sequence[int] | None = None) -> None:
        self._prompt = prompts.get(PROMPT).check("task", "attempts")
        self._tokens, self._numbers = tokens, numbers

    def ask(self, episodes: Sequence[Episode]) -> Question:
        tokens = self._tokens // len(episodes)
        task = task_text(episodes[0].task)
        shown = [
            f"Attempt {number}:\n{mask_attempt(_attempt(episode, tokens), task)}"
            for number, episode in zip(self._numbers_of(episodes), episodes, strict=True)
        ]
        messages = self._prompt.render(task=task, attempts="\n\n".join(shown))
        return Question(messages, schema_of(self._numbers_of(episodes)))

    def take(self, episodes: Sequence[Episode], answer: Json) -> int:
        """The index of the best episode. Raises `BadAnswer`."""
        best = cast(dict[str, Json], answer).get("best") if isinstance(answer, dict) else None
        numbers = self._numbers_of(episodes)
        if isinstance(best, bool) or not isinstance(best, int) or best not in numbers:
            known = " or ".join(map(str, numbers))
            raise BadAnswer(f'"best" must be the number of an attempt ({known}), not {best!r:.40}.')
        return numbers.index(best)

    def _numbers_of(self, episodes: Sequence[Episode]) -> Sequence[int]:
        return range(1, len(episodes) + 1) if self._numbers is None else self._numbers


def schema_of(numbers: Sequence[int]) -> Json:
    """The JSON schema of the answer. The reasoning comes first, so that the choice follows from it."""
    return object_schema(reasoning={"type": "string"}, best={"type": "integer", "enum": [*numbers]})


def _attempt(episode: Episode, tokens: int) -> str:
    trial = episode.best or (episode.trials[-1] if episode.trials else None)
    return attempt_text(trial.attempt, tokens=tokens) if trial else fenced("(no attempt was made)")
