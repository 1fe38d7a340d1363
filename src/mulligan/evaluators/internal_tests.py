"""Asks a model once for unit tests of the task, and judges every attempt of the episode by them.

Source: Shinn et al. 2023, section 4.3, and its code. Tests that a model has written can be wrong, so an attempt that
passes them may be wrong, and one that fails them may be right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.protocols import Model, Prompts, Sandbox
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.records import Episode, Feedback, Json
from mulligan.evaluators import given_tests
from mulligan.oracle.python.feedback import reference_text
from mulligan.text.formatting import task_text
from mulligan.text.python_code import asked_for
from mulligan.text.python_tests import python_tests, reference_tests
from mulligan.text.rust import rust_tests

SOURCE = "internal_tests"
_DEFINES = re.compile(r"\b(?:def|class)\s+(\w+)")
PROMPTS = {"py": "python", "rs": "rust"}


class InternalTests:
    """Writes the tests in the first trial, and judges each trial by them.

    `score` is the share of tests that passed, 0 to 1. `evidence` holds `tests` and `passed`; later trials take the
    tests from the first trial's evidence and ask no model. A model whose answer holds no valid test is asked once
    more; after that `passed` is None in every trial. With `reading="reference"` there is no second question, and the
    attempt passes (design/016). Raises `ModelError`, `OverBudget`, `InvalidInput`, `SandboxError`.

    Args:
        tests: how many tests are kept at most: the first that are valid and distinct.
        language: of the prompt, the tests and the code: "py" or "rs".
        layout: of the feedback: see `given_tests`.
        reading: "ours" keeps asserts that test the asked function; "reference" keeps each line with `assert` that
            parses, as Reflexion's code does.
        seconds: for each test.
        temperature: of the sampling.
        max_tokens: of one answer.
        name: of the function. None takes the one that the task names.
    """

    expects: Literal["text", "code", "workspace"] = "code"
    replayable = True

    def __init__(
        self,
        *,
        model: Model,
        sandbox: Sandbox,
        prompts: Prompts,
        tests: int = 6,
        language: Literal["py", "rs"] = "py",
        layout: Literal["ours", "reference"] = "ours",
        reading: Literal["ours", "reference"] = "ours",
        seconds: float = 5.0,
        temperature: float | None = 0.2,
        max_tokens: int = 1024,
        name: str | None = None,
    ) -> None:
        given_tests.check(language, layout, seconds)
        if tests < 1:
            raise InvalidInput(f"tests must be at least 1, not {tests}.")
        if reading not in ("ours", "reference"):
            raise InvalidInput(f"reading must be ours or reference, not {reading!r}.")
        self._model, self._sandbox = model, sandbox
        prompt = prompts.get(f"internal_tests.{PROMPTS[language]}").check("task", "function", "most")
        self._prompt = prompt.with_examples(prompts.get(f"internal_tests.{PROMPTS[language]}.examples"))
        self._most, self._seconds, self._name = tests, seconds, name
        self._language: Literal["py", "rs"] = language
        self._layout: Literal["ours", "reference"] = layout
        self._reading = reading
        self._sampling = Sampling(temperature, max_tokens)

    async def evaluate(self, episode: Episode) -> Feedback:
        earlier = made(episode)
        tests, reason = (earlier, "") if earlier is not None else await self._written(episode)
        if not tests and self._reading == "reference":
            return Feedback(True, reference_text(()), 1.0, SOURCE, evidence=given_tests.evidence((), ()))
        if not tests:
            reason = reason or "the model wrote no valid test of the task"
            text = f"Nothing could be judged: {reason}"
            return Feedback(None, text, source=SOURCE, evidence=given_tests.evidence((), ()))
        feedback = await given_tests.judged(
            tests,
            episode,
            sandbox=self._sandbox,
            language=self._language,
            layout=self._layout,
            seconds=self._seconds,
        )
        return replace(feedback, source=SOURCE)

    async def _written(self, episode: Episode) -> tuple[Sequence[str], str]:
        """The tests; if there are none, also the reason."""
        sampling = replace(self._sampling, seed=episode.head.seed)
        try:
            return await think(self, self._model, [episode], sampling), ""
        except BadAnswer as error:
            return (), f"the model wrote no valid test of the task, twice. {error}"

    def ask(self, episodes: Sequence[Episode]) -> Question:
        (episode,) = episodes
        task = episode.task
        name = self._asked(episode) or ""
        *before, last = self._prompt.render(task=task_text(task), function=name, most=str(self._most))
        return Question((*before, replace(last, images=task.images)))

    def take(self, episodes: Sequence[Episode], answer: Json) -> tuple[str, ...]:
        """The tests in the answer. Raises `BadAnswer` if there are none, except with the reference's reading."""
        (episode,) = episodes
        text, name = answer if isinstance(answer, str) else "", self._asked(episode)
        if self._reading == "reference":
            return reference_tests(text)[: self._most]
        if self._language == "rs":
            valid = tuple(filter(given_tests.usable_rust, rust_tests(text, name)))
        else:
            names = None if name is None else {*_DEFINES.findall(episode.task.prompt), name}
            valid = tuple(test for test in python_tests(text, name) if given_tests.usable(test, names))
        if not valid:
            example = f"assert_eq!({name or 'f'}(…), …);" if self._language == "rs" else f"assert {name or 'f'}(…) == …"
            raise BadAnswer(f"It contains no valid test: write lines such as `{example}`, with real values.")
        return valid[: self._most]

    def _asked(self, episode: Episode) -> str | None:
        return self._name or asked_for(episode.task.prompt)


def made(episode: Episode) -> tuple[str, ...] | None:
    """The tests that the feedback on the first trial has, in order; None without such feedback."""
    first = episode.trials[0].feedback
    evidence: object = first.evidence if first else None
    if not isinstance(evidence, dict):
        return None
    tests = cast(dict[str, Any], evidence).get("tests")
    return tuple(str(test) for test in cast(list[Any], tests)) if isinstance(tests, list) else None
