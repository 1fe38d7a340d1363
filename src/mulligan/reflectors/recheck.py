"""Asks the model to check its work again, whatever the verdict was (sequential scaling in the ReasoningBank paper).

The first note re-examines everything. Each later one checks the refined work again.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Episode, Json, Reflection
from mulligan.text.formatting import TOKENS, attempt_text, reflections_text, task_text
from mulligan.text.images import IMAGES, checked_count, with_images

SLOTS = ("task", "attempt", "reflections")


class Recheck:
    """Writes a note for the next attempt. The evaluator's feedback is not shown: the model finds its mistakes itself.

    Args:
        temperature: of the sampling.
        max_tokens: of a note.
        tokens: what the attempt may take of the prompt.
        images: how many it is sent at most, of the task and of the trial.
    """

    in_words = "what the model finds when it checks its work again"

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        temperature: float | None = 0.2,
        max_tokens: int = 400,
        tokens: int = 2 * TOKENS,
        images: int = IMAGES,
    ) -> None:
        self._model = model
        self._first = prompts.get("recheck.first").check(*SLOTS)
        self._again = prompts.get("recheck.again").check(*SLOTS)
        self._temperature, self._max_tokens = temperature, max_tokens
        self._tokens, self._images = tokens, checked_count(images)

    async def reflect(self, episode: Episode) -> Reflection | None:
        sampling = Sampling(self._temperature, self._max_tokens, episode.head.seed + len(episode.trials))
        return await think(self, self._model, [episode], sampling)

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        prompt = self._first if len(episode.trials) == 1 else self._again
        messages = prompt.render(
            task=task_text(episode.task),
            attempt=attempt_text(episode.trials[-1].attempt, tokens=self._tokens),
            reflections=reflections_text(note.text for note in episode.reflections),
        )
        return Question(with_images(messages, episode, self._images))

    def take(self, episodes: Sequence[Episode], answer: Json) -> Reflection:
        text = answer.strip() if isinstance(answer, str) else ""
        if not text:
            raise BadAnswer("A note is a few plain sentences, and there are none.")
        return Reflection(text)
