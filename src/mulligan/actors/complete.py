"""Asks a model for one completion, which is the attempt. If the evaluator wants code, the code is taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from mulligan.actors._turns import checked_temperatures, temperature_of
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Attempt, Episode, Past
from mulligan.text.formatting import TOKENS, past_text, task_text
from mulligan.text.programs import NAMES, Language, program
from mulligan.text.python_code import same_code
from mulligan.text.python_tests import reference_code

SLOTS = ("task", "recall", "past")
WARMER = (0.2, 0.4)
"""How much the temperature is raised for each new draw of code that has failed before in this episode."""
RECENT = 20
"""How many attempts, the newest, code is compared with, so that the cost does not grow with their number."""
SEED_STEP = 1000
"""The difference between the seeds of two draws for one attempt, so that no seed is that of another trial."""


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
        redraw: ask again, warmer, where the code is equal to code that failed in an earlier trial.
    """

    replayable = True

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
        redraw: bool = True,
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
        self._redraw = redraw and self._code and not self._verbatim

    async def act(self, episode: Episode, past: Past) -> Attempt:
        number = len(episode.trials) + 1
        question = Question(self._messages(episode, past))
        temperature = temperature_of(self._temperatures, past, number)
        seed = episode.head.seed + number
        sampling = Sampling(temperature, self._max_tokens, seed)
        output = await self._output(question, sampling, episode)
        for more in WARMER if self._redraw else ():
            if not _failed_before(output, episode):
                break
            seed += SEED_STEP
            sampling = replace(sampling, temperature=min(temperature + more, 2.0), seed=seed)
            output = await self._output(question, sampling, episode)
        return Attempt(output)

    async def _output(self, question: Question, sampling: Sampling, episode: Episode) -> str:
        text = str((await self._model.ask(question, sampling)).content)
        if self._code and self._verbatim:
            return reference_code(text)
        return program(text, episode.task.prompt, self._language) if self._code else text.strip()

    def _messages(self, episode: Episode, past: Past) -> tuple[Message, ...]:
        shown = past_text(past, tokens=self._tokens, language=NAMES[self._language] if self._code else "")
        # Next to evidence no worked example is shown: a weak model takes its values for those of the task.
        messages = (self._again if shown and not past.evidence else self._first).render(
            task=task_text(episode.task),
            recall=past.recall.formatted_prompt if past.recall else "",
            past=shown,
        )
        last = messages[-1]
        return (*messages[:-1], Message(last.role, last.text, episode.task.images))


def _failed_before(code: str, episode: Episode) -> bool:
    """Whether one of the newest attempts was this code, and failed."""
    failed = [one.attempt.output for one in episode.trials[-RECENT:] if one.feedback and one.feedback.passed is False]
    return code in failed or same_code(code) in map(same_code, failed)
