"""An attempt that comes with its thoughts is judged by its answer, whoever brought it."""

from typing import Any

import pytest

from mulligan.core.records import Attempt, Episode, Task, Trial
from mulligan.evaluators.command import Command
from mulligan.evaluators.contains import Contains
from mulligan.evaluators.exact_match import ExactMatch
from mulligan.evaluators.regex import Regex
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.formatting import attempt_text, result_text

TESTS = "assert double(2) == 4\nassert double(5) == 10\n"


@pytest.mark.parametrize(
    ("evaluator", "output", "passed"),
    [
        (ExactMatch(answer="Oslo"), "Bergen? No.\n</think>\n\nOslo", True),
        (ExactMatch(answer="Oslo"), "<thinking>Bergen?</thinking>Oslo<|im_end|>", True),
        (ExactMatch(answer="Oslo"), "<think>Oslo", False),
        (Contains(text="Oslo"), "[THINK]Oslo?[/THINK]Bergen", False),
        (Contains(text="Oslo"), "<think>Oslo? Or", False),
        (Contains(text="</think>"), "Write `</think>` behind it.", True),
        (Regex(pattern="Oslo", sandbox=LocalSandbox()), "Oslo?</think>Bergen", False),
        (UnitTests(tests=TESTS, sandbox=LocalSandbox()), "n + n?\n</think>\ndef double(n):\n    return 2 * n", True),
        (UnitTests(tests=TESTS, sandbox=LocalSandbox()), "# up to </think>\ndef double(n):\n    return 2 * n", True),
        (Command(check="grep -q Oslo", expects="text", sandbox=LocalSandbox()), "<think>Oslo?</think>Bergen", False),
    ],
)
async def test_the_answer_is_judged(evaluator: Any, output: str, passed: bool) -> None:
    verdict = await evaluator.evaluate(Episode("e", Task("t"), trials=(Trial(1, Attempt(output)),)))
    assert verdict.passed is passed, verdict.text


def test_the_next_trial_is_shown_the_answer() -> None:
    attempt = Attempt("Bergen?</think>Oslo")
    assert "Bergen" not in attempt_text(attempt)
    assert result_text(attempt) == "Oslo"
