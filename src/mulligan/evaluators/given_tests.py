"""Judges code by a list of tests that the agent may see, such as LeetcodeHard's visible ones. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Sandbox
from mulligan.core.records import Episode, Feedback
from mulligan.evaluators import _asserts as asserts
from mulligan.text.python_code import parsed


class GivenTests:
    """tests: one assert each. Score: the share that passed, 0 to 1; `evidence` holds `tests`, and `passed` for each.

    language: of the tests and the code, "py" or "rs". seconds: for each test. layout: of the feedback, our
    own ("ours") or word for word as the reference prints it. Raises `InvalidInput` for no test, or one that cannot be
    read; the reference passes an attempt that nothing has tested.
    """

    expects: Literal["text", "code", "workspace"] = "code"

    def __init__(
        self,
        tests: Sequence[str],
        *,
        sandbox: Sandbox,
        language: Literal["py", "rs"] = "py",
        layout: Literal["ours", "reference"] = "ours",
        seconds: float = 5.0,
    ) -> None:
        asserts.check(language, layout, seconds)
        if isinstance(tests, str) or not tests:
            raise InvalidInput("given_tests takes a list of tests, and none are given.")
        for number, test in enumerate(tests, 1):
            if not test.strip() or (language == "py" and parsed(test) is None):
                raise InvalidInput(f"given_tests, test {number} cannot be read: {test[:80]!r}.")
        self._tests = tuple(tests)
        self._sandbox, self._seconds = sandbox, seconds
        self._language: Literal["py", "rs"] = language
        self._layout: Literal["ours", "reference"] = layout

    async def evaluate(self, episode: Episode) -> Feedback:
        return await asserts.judged(
            self._tests,
            episode,
            sandbox=self._sandbox,
            language=self._language,
            layout=self._layout,
            seconds=self._seconds,
        )
