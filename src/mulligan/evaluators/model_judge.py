"""Asks a model to judge by a rubric. It is weaker than any test: it can be wrong, and an attempt can persuade it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Answer, Question, Sampling, object_schema, think
from mulligan.core.records import Episode, Feedback, Json
from mulligan.text.formatting import TOKENS, attempt_text, task_text
from mulligan.text.images import IMAGES, checked_count, with_images
from mulligan.text.secrets import mask_attempt
from mulligan.text.thoughts import output_of, spoken

BEST = 10
_PASSED = re.compile(r"passed\\*[\"']?\s*:\s*[\"']?(true|false)")
SCHEMA: Json = object_schema(
    reasoning={"type": "string"},
    passed={"type": "boolean"},
    score={"type": "integer", "enum": list(range(BEST + 1))},
    wrong={"type": "string"},
)
"""The reasoning comes first, so that the verdict follows from it."""


class ModelJudge:
    """Asks for a verdict with a score. `ask` and `take` can be used alone, without a model.

    `score` is 0 to 1, higher is better; the model gives it as 0 to 10. An attempt that was halted without an output
    fails without a question. If the judge fails (no usable verdict in two answers, or the provider is down), `passed`
    is None with the reason.

    Args:
        rubric: what must hold, in words, instead of a built-in rubric.
        criteria: the built-in rubric, by its file model_judge.CRITERIA.md: "rubric" is the general one, "answer" is for
            short answers to questions.
        threshold: the score (0 to 1) from which an attempt passes, whatever the model says. None leaves it to the
            model.
        temperature: of the sampling.
        max_tokens: of one verdict.
        tokens: how much of the prompt the attempt may take.
        images: how many images of the task and of the trial are sent at most.

    Raises:
        OverBudget: the next question would pass a limit.
        InvalidInput: a setting cannot work.
    """

    expects: Literal["text", "code", "workspace"] = "text"
    replayable = True

    def __init__(
        self,
        *,
        rubric: str | None = None,
        criteria: str = "rubric",
        threshold: float | None = None,
        model: Model,
        prompts: Prompts,
        temperature: float | None = 0.0,
        max_tokens: int = 1024,
        tokens: int = 4 * TOKENS,
        images: int = IMAGES,
    ) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise InvalidInput(f"model_judge: threshold must be from 0 to 1, not {threshold}.")
        if rubric is not None and not rubric.strip():
            raise InvalidInput("model_judge: the rubric is empty. Omit it to use the general rubric.")
        self._model = model
        self._prompt = prompts.get("model_judge.judge").check("task", "rubric", "attempt")
        self._rubric = rubric or prompts.text(f"model_judge.{criteria}")
        self._threshold = threshold
        self._sampling = Sampling(temperature, max_tokens)
        self._tokens = tokens
        self._images = checked_count(images)

    async def evaluate(self, episode: Episode) -> Feedback:
        attempt = episode.trials[-1].attempt
        halted = attempt.outcome.halted if attempt.outcome else None
        if halted and not output_of(attempt).strip() and not attempt.artifacts:
            return Feedback(False, f"There is no result: {halted}.", source="model_judge")
        try:
            return await think(self, _OneVerdict(self._model), [episode], self._sampling)
        except (BadAnswer, ModelError) as error:
            return Feedback(None, f"The judge failed: {error}", source="model_judge")

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        task = episode.task
        messages = self._prompt.render(
            task=task_text(task),
            rubric=self._rubric.strip(),
            attempt=mask_attempt(attempt_text(episode.trials[-1].attempt, tokens=self._tokens), task_text(task)),
        )
        return Question(with_images(messages, episode, self._images), SCHEMA)

    def take(self, episodes: Sequence[Episode], answer: Json) -> Feedback:
        fields = cast(dict[str, Json], answer) if isinstance(answer, dict) else {}
        reasoning, passed, score, wrong = (fields.get(key) for key in SCHEMA["required"])
        if not isinstance(reasoning, str) or not isinstance(wrong, str):
            raise BadAnswer('A verdict must be an object with "reasoning", "wrong", "passed" and "score".')
        if not isinstance(passed, bool):
            raise BadAnswer(f'"passed" must be true or false, not {passed!r}.')
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= BEST:
            raise BadAnswer(f'"score" must be an integer from 0 to {BEST}, not {score!r}.')
        share = score / BEST
        if self._threshold is not None:
            passed = share >= self._threshold
        text = reasoning if passed else wrong.strip() or reasoning
        if not passed and not text.strip():
            raise BadAnswer('An attempt that did not pass needs "wrong": what is wrong with it, and where.')
        return Feedback(passed, text.strip(), share, "model_judge")


class _OneVerdict:
    """A model whose answer is refused if it has two verdicts that differ: one may be quoted from the attempt."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        answer = await self._model.ask(question, sampling)
        if len(set(_PASSED.findall(spoken(answer.raw).answer.lower()))) > 1:
            raise BadAnswer("it has two different verdicts, one of which may be quoted from the attempt.")
        return answer
