"""Asks a model which of several attempts at one task is the best. It judges none of them by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Prompts
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode, Json
from mulligan.text.formatting import TOKENS, attempt_text, fenced, task_text
from mulligan.text.secrets import mask_attempt

COMPARING = Sampling(0.0, 1024)
PROMPT = "comparison.best"


class Comparison:
    """Compares the best attempt of each episode. `ask` and `take` need no model.

    Args:
        tokens: what all attempts together may take of the prompt.
    """

    def __init__(self, prompts: Prompts, *, tokens: int = 8 * TOKENS) -> None:
        self._prompt = prompts.get(PROMPT).check("task", "attempts")
        self._tokens = tokens

    def ask(self, episodes: Sequence[Episode]) -> Question:
        each = self._tokens // len(episodes)
        task = task_text(episodes[0].task)
        shown = [
            f"Attempt {number}:\n{mask_attempt(_attempt(episode, each), task)}"
            for number, episode in enumerate(episodes, 1)
        ]
        messages = self._prompt.render(task=task, attempts="\n\n".join(shown))
        return Question(messages, schema_of(len(episodes)))

    def take(self, episodes: Sequence[Episode], answer: Json) -> int:
        """The place of the best, from 0. Raises `BadAnswer`."""
        best = cast(dict[str, Json], answer).get("best") if isinstance(answer, dict) else None
        if isinstance(best, bool) or not isinstance(best, int) or not 1 <= best <= len(episodes):
            raise BadAnswer(f'"best" must be the number of an attempt, 1 to {len(episodes)}, not {best!r}.')
        return best - 1


def schema_of(attempts: int) -> Json:
    """The JSON schema of the answer. The reasoning comes first, so that the choice follows from it."""
    return {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "best": {"type": "integer", "enum": [*range(1, attempts + 1)]}},
        "required": ["reasoning", "best"],
        "additionalProperties": False,
    }


def _attempt(episode: Episode, tokens: int) -> str:
    trial = episode.best or (episode.trials[-1] if episode.trials else None)
    return attempt_text(trial.attempt, tokens=tokens) if trial else fenced("(no attempt was made)")
