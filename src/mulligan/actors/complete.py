"""Asks a model for one completion, which is the attempt. If the evaluator wants code, the code is taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.actors._turns import checked_temperatures, temperature_of
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Attempt, Episode, Past
from mulligan.text.formatting import TOKENS, past_text, task_text
from mulligan.text.programs import NAMES, Language, program
from mulligan.text.python_tests import reference_code

SLOTS = ("task", "recall", "past")


class Complete:
    """Asks the model once for each trial.

    A completion that is only the body of a function whose head the task gives is completed with that head.

    Args:
        output: "text" keeps the completion; "code" takes the program out of it.
        temperatures: one for each trial, the last for all later ones. By default retries are warm, because at 0 a
            weak model repeats itself.
        max_tokens: of one completion.
        tokens: what a shown attempt may take of the prompt.
        examples: a file of worked examples to show with the past instead of the ones that ship; "" shows none.
        language: of the code: "py" or "rs".
        reading: how code is taken out; "reference" takes the first fence word for word, for published logs.
    """

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        output: Literal["text", "code"] = "text",
        temperatures: Sequence[float] = (0.0, 0.8),
        max_tokens: int = 1024,
        tokens: int = TOKENS,
        examples: str | None = None,
        language: Language = "py",
        reading: Literal["ours", "reference"] = "ours",
    ) -> None:
        self._model = model
        self._code = output == "code"
        self._language: Language = language
        self._verbatim = reading == "reference"
        kind = "rust" if self._code and language == "rs" else output
        shown = f"complete.{kind}.examples" if examples is None else examples
        self._first = prompts.get(f"complete.{kind}").check(*SLOTS)
        self._again = self._first.with_examples(prompts.get(shown) if shown else None)
        self._temperatures = checked_temperatures(temperatures)
        self._max_tokens = max_tokens
        self._tokens = tokens

    async def act(self, episode: Episode, past: Past) -> Attempt:
        number = len(episode.trials) + 1
        question = Question(self._messages(episode, past))
        temperature = temperature_of(self._temperatures, past, number)
        sampling = Sampling(temperature, self._max_tokens, episode.head.seed + number)
        answer = await self._model.ask(question, sampling)
        said = str(answer.content)
        if self._code and self._verbatim:
            return Attempt(reference_code(said))
        return Attempt(program(said, episode.task.prompt, self._language) if self._code else said.strip())

    def _messages(self, episode: Episode, past: Past) -> tuple[Message, ...]:
        shown = past_text(past, tokens=self._tokens, language=NAMES[self._language] if self._code else "")
        # Evidence stands without a worked example, whose values a weak model takes for the task's.
        messages = (self._again if shown and not past.evidence else self._first).render(
            task=task_text(episode.task),
            recall=past.recall.formatted_prompt if past.recall else "",
            past=shown,
        )
        last = messages[-1]
        return (*messages[:-1], Message(last.role, last.text, episode.task.images))
