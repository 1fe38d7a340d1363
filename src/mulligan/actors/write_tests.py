"""Writes unit tests of the task's function: the tests are the attempt, and the prompt is that of `internal_tests`.

Source: the strategy "test-acc" of Reflexion's code.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Attempt, Episode, Json, Past
from mulligan.text.formatting import task_text
from mulligan.text.python_code import asked_for
from mulligan.text.python_tests import python_tests

SLOTS = ("task", "function", "most")


class WriteTests:
    """Asks a model for unit tests of the function that the task names. The output holds one test on each line.

    A model whose answer holds no valid test is asked once more; after that the output is empty.

    Args:
        tests: how many tests are kept at most: the first that are valid and distinct.
        temperature: of the sampling.
        max_tokens: of one answer.
    """

    makes = "tests"

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        tests: int = 6,
        temperature: float | None = 0.2,
        max_tokens: int = 1024,
    ) -> None:
        if tests < 1:
            raise InvalidInput(f"tests must be at least 1, not {tests}.")
        self._model, self._most = model, tests
        prompt = prompts.get("internal_tests.python").check(*SLOTS)
        self._prompt = prompt.with_examples(prompts.get("internal_tests.python.examples"))
        self._sampling = Sampling(temperature, max_tokens)

    async def act(self, episode: Episode, past: Past) -> Attempt:
        temperature = self._sampling.temperature if past.temperature is None else past.temperature
        sampling = Sampling(temperature, self._sampling.max_tokens, episode.head.seed)
        try:
            return Attempt("\n".join(await think(self, self._model, [episode], sampling)))
        except BadAnswer:
            return Attempt("")

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        told = {"task": task_text(episode.task), "function": asked_for(episode.task.prompt) or ""}
        return Question(self._prompt.render(**told, most=str(self._most)))

    def take(self, episodes: Sequence[Episode], answer: Json) -> tuple[str, ...]:
        """Raises `BadAnswer` for no test."""
        (episode,) = episodes
        name = asked_for(episode.task.prompt)
        found = python_tests(answer, name) if isinstance(answer, str) else ()
        if not found:
            raise BadAnswer(f"It contains no valid test: write lines such as `assert {name or 'f'}(…) == …`.")
        return found[: self._most]
