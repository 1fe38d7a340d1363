"""A model says in a few sentences why the trial failed and what to do differently (Shinn et al. 2023, section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.episodic import newest
from mulligan.core.errors import BadAnswer
from mulligan.core.formatting import TOKENS, attempt_text, feedback_text, reflections_text
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Episode, Json, Reflection

SLOTS = ("task", "attempt", "feedback", "reflections", "examples")


class Verbal:
    """window: how many past reflections the reflector is shown (None: all). tokens: what the attempt may take.

    max_tokens bounds the reflection; an empty one is asked for once more. `prompt` and `examples` are names of
    prompt files, so that a domain can bring its own. Alone, `ask` and `take` need no model of ours.
    """

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        prompt: str = "verbal.reflect",
        examples: str | None = "verbal.examples",
        window: int | None = 3,
        temperature: float | None = 0.2,
        max_tokens: int = 256,
        tokens: int = TOKENS,
    ) -> None:
        self._model = model
        self._prompt = prompts.get(prompt).check(*SLOTS)
        self._examples = prompts.text(examples) if examples else ""
        self._window = window
        self._sampling = Sampling(temperature, max_tokens)
        self._tokens = tokens

    async def reflect(self, episode: Episode) -> Reflection | None:
        return await think(self, self._model, [episode], self._sampling)

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        trial = episode.trials[-1]
        past = newest(episode.reflections, self._window)
        return Question(
            self._prompt.render(
                task=episode.task.prompt.strip(),
                attempt=attempt_text(trial.attempt, tokens=self._tokens),
                feedback=feedback_text(trial.feedback, tokens=self._tokens),
                reflections=reflections_text(reflection.text for reflection in past),
                examples=self._examples,
            )
        )

    def take(self, episodes: Sequence[Episode], answer: Json) -> Reflection:
        if not isinstance(answer, str) or not answer.strip():
            raise BadAnswer("A reflection is a few sentences of text, and this is empty.")
        return Reflection(answer.strip())
