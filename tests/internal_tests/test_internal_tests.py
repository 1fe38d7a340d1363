"""Tests that a model writes once and that judge every attempt of the episode."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mulligan import ScriptedModel, resume, solve
from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.given_tests import GivenTests
from mulligan.evaluators.internal_tests import InternalTests, made
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore

TASK = Task('def add(a: int, b: int) -> int:\n    """Add a and b."""\n')
RIGHT, WRONG = "def add(a, b):\n    return a + b", "def add(a, b):\n    return a - b"
TESTS = "```python\nassert add(1, 2) == 3\nassert add(4, 0) == 4\n# assert add(9, 9) == 1\n```"


def episode(*codes: str, first: Feedback | None = None) -> Episode:
    trials = [Trial(n, Attempt(code)) for n, code in enumerate(codes, 1)]
    trials[0] = replace(trials[0], feedback=first)
    return Episode("e", TASK, trials=tuple(trials))


def evaluator(model: ScriptedModel, **settings: Any) -> InternalTests:
    return InternalTests(model=model, sandbox=LocalSandbox(), prompts=FilePrompts(), **settings)


async def test_tests_are_written_at_the_first_verdict_and_kept_for_the_others() -> None:
    model = ScriptedModel([TESTS])
    judge = evaluator(model)
    first = await judge.evaluate(episode(WRONG))
    assert (first.passed, first.score, first.source) == (False, 0.5, "internal_tests")
    own = {"tests": ["assert add(1, 2) == 3", "assert add(4, 0) == 4"], "passed": [False, True]}
    assert {**first.evidence, **own} == first.evidence
    assert "add(1, 2) returned -1" in first.text
    again = await evaluator(ScriptedModel([])).evaluate(episode(WRONG, RIGHT, first=first))
    assert (again.passed, again.evidence["passed"]) == (True, [True, True])
    assert len(model.questions) == 1
    asked = model.questions[0].messages[-1].text
    assert "Add a and b." in asked
    assert "up to 6 different tests" in asked


async def test_the_first_distinct_ones_are_kept() -> None:
    said = "\n".join(f"assert add({n // 2}, 1) == {n // 2 + 1}" for n in range(20))
    first = await evaluator(ScriptedModel([said]), tests=3).evaluate(episode(RIGHT))
    assert first.evidence["tests"] == [f"assert add({n}, 1) == {n + 1}" for n in range(3)]


async def test_tests_that_our_oracle_cannot_judge_by_are_left_out() -> None:
    said = "assert add(x, 1) == 2\nassert add(np.int64(1), 1) == 2\nassert math.isclose(add(1, 1), 2)\nassert add(1, 2) == 3"
    first = await evaluator(ScriptedModel([said])).evaluate(episode(RIGHT))
    assert first.evidence["tests"] == ["assert math.isclose(add(1, 1), 2)", "assert add(1, 2) == 3"]
    assert first.passed is True


async def test_without_a_valid_test_nothing_is_judged_and_it_is_asked_for_twice_only() -> None:
    model = ScriptedModel(["# assert add(1, 2) == 3", "no"])
    first = await evaluator(model).evaluate(episode(RIGHT))
    assert first.passed is None
    assert "no valid test" in first.text
    assert len(model.questions) == 2
    assert made(episode(RIGHT, first=first)) == ()
    second = await evaluator(model).evaluate(episode(RIGHT, RIGHT, first=first))
    assert second.passed is None
    assert len(model.questions) == 2


async def test_what_nothing_has_tested_passes_only_as_the_reference_reads() -> None:
    model = ScriptedModel(["no"])
    first = await evaluator(model, reading="reference", layout="reference").evaluate(episode(WRONG))
    assert (first.passed, first.text) == (True, "Tested passed:\n\nTests failed:")
    assert made(episode(WRONG, first=first)) == ()


async def test_a_second_answer_may_hold_them() -> None:
    first = await evaluator(ScriptedModel(["Sorry?", TESTS])).evaluate(episode(RIGHT))
    assert first.passed is True


async def test_the_loop_runs_by_them_and_a_resume_asks_nobody_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db")
    model = ScriptedModel([WRONG, TESTS], "m")
    cut = await solve(TASK, evaluator="internal_tests", strategy="evidence", model=model, trials=3, store=store)
    assert cut.stop is not None
    assert cut.stop.reason == "error"  # the script is at its end
    model = ScriptedModel([RIGHT], "m")
    done = await resume(cut.id, model=model, store=store)
    await store.close()
    assert done.solved
    assert [trial.feedback and trial.feedback.score for trial in done.trials] == [0.5, 1.0]
    assert len(model.questions) == 1


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"tests": 0}, "at least 1"),
        ({"language": "js"}, "py or rs"),
        ({"layout": "theirs"}, "ours or reference"),
        ({"seconds": 0.0}, "greater than 0"),
        ({"reading": "x"}, "ours or reference"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        evaluator(ScriptedModel([]), **settings)


async def test_given_tests_need_no_model() -> None:
    judge = GivenTests(["assert add(1, 2) == 3", "assert add(4, 0) == 4"], sandbox=LocalSandbox())
    said = await judge.evaluate(episode(WRONG))
    assert (said.passed, said.evidence["passed"]) == (False, [False, True])


@pytest.mark.parametrize("tests", [[], [" "], ["assert f("], "assert f(1)"])
def test_given_tests_that_cannot_be_read_are_refused(tests: list[str]) -> None:
    with pytest.raises(InvalidInput, match="given_tests"):
        GivenTests(tests, sandbox=LocalSandbox())


async def test_names_of_typing_need_no_import_and_lines_stay_where_they_are() -> None:
    judge = GivenTests(["assert add(1, 2) == 3"], sandbox=LocalSandbox())
    assert (await judge.evaluate(episode("def add(a: Optional[int], b) -> List[int]:\n    return a + b"))).passed
    said = await judge.evaluate(episode("def add(a, b):\n    raise ValueError(a)"))
    assert "(line 2: `raise ValueError(a)`)" in said.text
