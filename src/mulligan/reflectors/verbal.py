"""Asks a model why the trial failed and what to do differently, in a few sentences (Shinn et al. 2023, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mulligan.core.errors import BadAnswer
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Episode, Json, Reflection
from mulligan.reflectors._check import LEAST, better_of_two, checked, judged, least_quality
from mulligan.text.formatting import TOKENS, attempt_text, feedback_text, fenced, newest, reflections_text, task_text
from mulligan.text.images import IMAGES, checked_count, with_images

FENCE = "```"
EMPTY = "A reflection is a few plain sentences, before any code, and there are none."
SLOTS = ("task", "attempt", "feedback", "reflections")


class Verbal:
    """Asks a model for the reflection. `ask` and `take` can be used alone, without a model.

    The reflection ends before any code: a weak model would write its next wrong attempt into it.

    Args:
        output: what the attempts are: "text", "code", or actions in an "environment". Each has its own prompt and
            worked examples.
        examples: a file of worked examples to show instead of the ones that ship; "" shows none.
        window: how many earlier reflections the model is shown. None shows all.
        temperature: of the sampling.
        max_tokens: of the reflection.
        tokens: what the attempt may take of the prompt.
        images: how many it is sent at most, of the task and of the trial.
        earlier: reflections on trials of the task before this episode, oldest first.
        check: whether `reflectors._check` checks the reflection. A rejected or empty one is asked for once more, with
            the reason; if the second is rejected too, it is withheld from later trials. Without the check only an
            empty one is asked for once more, and a second empty one is an error.
        quality: the score, 0 to 1, below which a reflection is asked for once more, with what is missing. One that
            stays below it is shown all the same, and the record says so.
        judge: whether the model also rates what it wrote, as half of the score: one more question each.
    """

    unchecked: Mapping[str, Json] = {"check": False}

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        output: Literal["text", "code", "environment"] = "text",
        examples: str | None = None,
        window: int | None = 3,
        temperature: float | None = 0.2,
        max_tokens: int = 200,
        tokens: int = TOKENS,
        images: int = IMAGES,
        earlier: Sequence[str] = (),
        check: bool = True,
        quality: float = LEAST,
        judge: bool = False,
    ) -> None:
        self._model = model
        self._check = check
        self._least = least_quality(quality)
        self._earlier = tuple(map(Reflection, earlier))
        shown = f"verbal.{output}.examples" if examples is None else examples
        prompt = prompts.get(f"verbal.{output}").check(*SLOTS)
        self._prompt = prompt.with_examples(prompts.get(shown) if shown else None)
        self._examples = tuple(text for _, text in self._prompt.examples)
        newest((), window)  # refuses a window below 1 before anything is tried
        self._window = window
        self._sampling = Sampling(temperature, max_tokens, stop=(FENCE,))  # design/004: no code in a lesson
        self._tokens = tokens
        self._rating = prompts.get("verbal.judge").check("task", "attempt", "feedback", "lesson") if judge else None
        self._images = checked_count(images)

    async def reflect(self, episode: Episode) -> Reflection | None:
        sampling = replace(self._sampling, seed=episode.head.seed + len(episode.trials))
        if not self._check:
            return await think(self, self._model, [episode], sampling)

        def read(answer: Json, reason: str) -> Reflection:
            return self._drawn(episode, answer, reason)

        async def rate(reflection: Reflection) -> Reflection:
            return await judged(reflection, self._model, self._rated(episode, reflection), episode.head.seed)

        judge = rate if self._rating else None
        return await better_of_two(self._model, self.ask([episode]), sampling, read, self._least, judge)

    def _rated(self, episode: Episode, reflection: Reflection) -> Question:
        """The question that asks the model to rate a reflection."""
        trial = episode.trials[-1]
        assert self._rating is not None
        return Question(
            self._rating.render(
                task=task_text(episode.task),
                attempt=attempt_text(trial.attempt, tokens=self._tokens),
                feedback=feedback_text(trial.feedback, tokens=self._tokens),
                lesson=fenced(reflection.text),
            )
        )

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        messages = self._prompt.render(**seen(episode, self._earlier, self._window, self._tokens))
        return Question(with_images(messages, episode, self._images))

    def take(self, episodes: Sequence[Episode], answer: Json) -> Reflection:
        """The reflection in an answer. A faulty one is marked as withheld. Raises `BadAnswer` if it is empty."""
        (episode,) = episodes
        lesson = self._drawn(episode, answer)
        if not lesson.text:
            raise BadAnswer(EMPTY)
        return lesson

    def _drawn(self, episode: Episode, answer: Json, reason: str = "") -> Reflection:
        """The reflection in an answer, maybe empty. reason: why a second one was asked for, which it may not copy."""
        text = answer.partition(FENCE)[0].strip() if isinstance(answer, str) else ""
        if not text or not self._check:
            return Reflection(text, withheld="" if text else EMPTY)
        earlier = [each.text for each in self._earlier]
        return checked(Reflection(text), episode, examples=(*self._examples, reason), earlier=earlier)


def seen(episode: Episode, earlier: Sequence[Reflection], window: int | None, tokens: int) -> dict[str, str]:
    """The values of `SLOTS` in a reflector's prompt: the newest trial, and earlier reflections.

    Args:
        earlier: Reflections from before this episode.
        window: How many earlier reflections are shown. None shows all.
        tokens: Maximum tokens of the attempt.
    """
    trial = episode.trials[-1]
    past = newest((*earlier, *episode.newest_reflections(window)), window)
    return {
        "task": task_text(episode.task),
        "attempt": attempt_text(trial.attempt, tokens=tokens),
        "feedback": feedback_text(trial.feedback, tokens=tokens),
        "reflections": reflections_text(reflection.text for reflection in past),
    }
