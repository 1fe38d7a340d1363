"""Condenses the lessons of an episode into one when they no longer fit into the budget of the next trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Model, Prompts, Reflector
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Condensed, Episode, Json, Reflection
from mulligan.text.formatting import fenced, lessons_text, task_text
from mulligan.text.lessons import MIN_TOKENS, LessonBudget, condensed_of, size

FENCE = "```"
MAX_WORDS = 120
"""Words of a condensed lesson, unless the budget of tokens requires fewer."""
TOKENS_PER_WORD = 1.5


class Condensing:
    """A reflector that wraps another. If the lessons exceed the strategy's budget, a model condenses the older ones.

    The newest lesson is kept unchanged if there is room for it. The record contains all lessons. If a condensed lesson
    is empty or too long, the model is asked once more. If that also fails, the strategy omits the least useful lessons,
    and the record contains a note.

    Args:
        inner: The reflector that writes the lessons.
        budget: The strategy's budget for the lessons that a trial sees.
    """

    def __init__(
        self,
        inner: Reflector,
        *,
        model: Model,
        prompts: Prompts,
        budget: LessonBudget,
        temperature: float | None = 0.2,
    ) -> None:
        self._inner, self._model, self._budget = inner, model, budget
        self._prompt = prompts.get("condense.lessons").check("task", "lessons", "words")
        self._temperature = temperature

    async def reflect(self, episode: Episode) -> Reflection | None:
        """Returns the inner reflector's reflection, with a condensed lesson if the budget is exceeded."""
        drawn = await self._inner.reflect(episode)
        if drawn is None or not drawn.text or drawn.withheld:
            return drawn
        trials = (*episode.trials[:-1], replace(episode.trials[-1], reflection=drawn))
        episode = replace(episode, trials=trials)
        if not self._budget.is_exceeded(self._budget.candidates(episode)):
            return drawn
        most = self._limit(episode) + self._limit(episode) // 5 + 20  # an estimate: the answer is measured
        sampling = Sampling(self._temperature, most, episode.head.seed + len(trials), (FENCE,))
        try:
            return replace(drawn, condensed=await think(self, self._model, [episode], sampling))
        except BadAnswer as error:
            return replace(drawn, notes=(*drawn.notes, f"the lessons were not condensed: {error}"))

    def ask(self, episodes: Sequence[Episode]) -> Question:
        """Returns the question that asks for a condensed lesson."""
        (episode,) = episodes
        condensed, _ = self._parts(episode)
        return Question(
            self._prompt.render(
                task=task_text(episode.task),
                lessons=fenced(lessons_text(condensed)),
                words=str(max(int(self._limit(episode) / TOKENS_PER_WORD), 10)),
            )
        )

    def take(self, episodes: Sequence[Episode], answer: Json) -> Condensed:
        """Returns the condensed lesson.

        Raises:
            BadAnswer: the lesson is empty or too long.
        """
        (episode,) = episodes
        text = " ".join(answer.partition(FENCE)[0].split()) if isinstance(answer, str) else ""
        if not text:
            raise BadAnswer("A condensed lesson is a few plain sentences, and there are none.")
        limit, taken = self._limit(episode), size([Reflection(text)])
        if taken > limit:
            raise BadAnswer(f"It takes about {taken} tokens, and there is room for {limit}.")
        return Condensed(text, self._trials(episode), self._model.id)

    def _parts(self, episode: Episode) -> tuple[tuple[Reflection, ...], tuple[Reflection, ...]]:
        """The lessons to condense, oldest first, and the lessons that stay: the newest one, or none."""
        lessons, budget = self._budget.candidates(episode), self._budget
        no_room = budget.window == 1 or (budget.tokens is not None and 2 * size(lessons[-1:]) > budget.tokens)
        return (lessons, ()) if no_room or len(lessons) < 3 else (lessons[:-1], lessons[-1:])

    def _limit(self, episode: Episode) -> int:
        """The maximum tokens of the condensed lesson: what the budget leaves, and at most what it replaces."""
        condensed, kept = self._parts(episode)
        tokens = self._budget.tokens
        most = int(MAX_WORDS * TOKENS_PER_WORD) if tokens is None else tokens - size(kept)
        return min(most, max(size(condensed), MIN_TOKENS))

    def _trials(self, episode: Episode) -> tuple[int, ...]:
        """The trials whose lessons are condensed, including those of an earlier condensed lesson."""
        before = condensed_of(episode)
        kept = self._parts(episode)[1]
        trials = episode.trials[:-1] if kept else episode.trials
        earlier = (0,) if self._budget.earlier else ()
        own = (trial.number for trial in trials if trial.lesson)
        return tuple(sorted({*earlier, *own, *(before.trials if before else ())}))
