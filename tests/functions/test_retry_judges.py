"""`retry`: what may judge, what a judge may say, a judge that cannot run, and errors that are the program's own."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from each_row import each_row

import mulligan
from mulligan import Feedback, Notes, NotSolved
from mulligan.core.errors import InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


JUDGES: list[tuple[str, Callable[[Any], Any], bool]] = [
    ("True", lambda answer: True, True),
    ("False", lambda answer: False, False),
    ("None: no objection", lambda answer: None, True),
    ("a score at the threshold", lambda answer: 0.8, True),
    ("a score below it", lambda answer: 0.79, False),
    ("a score and why", lambda answer: (0.5, "half of it"), False),
    ("a bool and why", lambda answer: (True, "fine"), True),
    ("feedback", lambda answer: Feedback(False, "as data"), False),
]


@each_row(("judge", "passes"), [case[1:] for case in JUDGES])
def test_what_a_judge_may_return(judge: Callable[[Any], Any], passes: bool) -> None:
    @mulligan.retry(judge=judge, threshold=0.8, tries=1)
    def act(notes: Notes) -> str:
        return "x"

    assert act.run().episode.solved is passes


def test_an_answer_that_is_only_white_space_is_shown_in_quotation_marks() -> None:
    for answer in ("", " \n"):
        made = mulligan.retry(judge=lambda answer: False, tries=1, notes=None)(lambda text: text)  # pyright: ignore
        assert made.run(answer).episode.trials[0].feedback.text.endswith(f"said no to: {answer!r}")  # pyright: ignore


def test_a_judge_may_return_scalars_of_numpy_and_decimals() -> None:
    def act(task: str) -> str:
        return task

    for verdict, passes in [
        (np.bool_(True), True),
        (np.bool_(False), False),
        (np.float32(1), True),
        (Decimal("0.5"), False),
    ]:
        made = mulligan.retry(judge=lambda answer, verdict=verdict: verdict, tries=1, notes=None)(act)  # pyright: ignore
        assert made.run("x").episode.solved is passes  # pyright: ignore
    with pytest.raises(InvalidInput, match="returned nan"):
        mulligan.retry(judge=lambda answer: float("nan"), notes=None)(act)("x")


def test_a_judge_may_take_its_arguments_by_name_alone() -> None:
    seen = list[Any]()

    def judge(*, task: str, answer: str) -> None:
        seen.append((task, answer))

    def after(answer: str, *, currency: str) -> None:
        seen.append((answer, currency))

    def bill(task: str, currency: str) -> str:
        return "12"

    for one in (judge, after):
        mulligan.retry(judge=one, notes=None)(bill)("The total", "EUR")  # pyright: ignore
    assert seen == [("The total", "12"), ("12", "EUR")]
    with pytest.raises(InvalidInput, match="needs price"):
        mulligan.retry(judge=lambda answer, *, price: True, notes=None)(bill)  # pyright: ignore


def test_why_reaches_the_next_try_and_a_bare_no_shows_the_answer() -> None:
    read = list[str]()

    @mulligan.retry(judge=lambda answer: (0.25, "only the first line") if answer == 1 else False, tries=3)
    def act(notes: Notes) -> int:
        read.append(str(notes))
        return len(read)

    assert act() == 1  # the best one
    assert "only the first line" in read[1]
    assert "said no to: 2" in read[2]


@pytest.mark.parametrize("returned", ["yes", (1, 2), [True], object()])
def test_what_is_no_verdict_ends_the_call(returned: object) -> None:
    calls = list[int]()

    @mulligan.retry(judge=lambda answer: returned)  # pyright: ignore[reportArgumentType]
    def act(notes: Notes) -> str:
        calls.append(1)
        return "x"

    with pytest.raises(InvalidInput, match=r"returned .*Return a bool, a score"):
        act()
    assert len(calls) == 1


def test_a_judge_with_a_bug_ends_the_call_with_its_own_error() -> None:
    @mulligan.retry(judge=lambda answer: undefined_name)  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore
    def act(notes: Notes) -> str:
        return "x"

    with pytest.raises(NameError, match="undefined_name"):
        act()


async def test_an_asynchronous_judge_for_functions_of_both_kinds() -> None:
    async def judge(answer: int) -> tuple[bool, str]:
        await asyncio.sleep(0)
        return answer > 1, "too small"

    @mulligan.retry(judge=judge)
    def act(notes: Notes) -> int:
        return notes.trial

    @mulligan.retry(judge=judge)
    async def act_async(notes: Notes) -> int:
        return notes.trial

    assert await asyncio.to_thread(act) == 2
    assert await act_async() == 2


def test_evaluators_by_name_and_as_objects() -> None:
    @mulligan.retry(judge="exact_match:12 EUR")
    def named(notes: Notes) -> str:
        return "12 EUR" if notes else "12"

    class Own:
        expects = "text"

        async def evaluate(self, episode: mulligan.Episode) -> Feedback:
            output = episode.trials[-1].attempt.output
            return Feedback(output == "12 EUR", f"{output} it is not")

    @mulligan.retry(judge=Own())  # pyright: ignore[reportArgumentType]
    def given(notes: Notes) -> str:
        return "12 EUR" if "12 it is not" in notes else "12"

    assert named() == given() == "12 EUR"


@pytest.mark.slow
def test_a_file_of_tests_and_a_command_judge(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("assert add(1, 2) == 3\n")

    def write(task: str, notes: Notes) -> str:
        Path("total.txt").write_text("12 EUR" if notes else "12")
        return "def add(a, b):\n    return a + b" if notes else "def add(a, b):\n    return a - b"

    for judge, said in [
        (tmp_path / "checks.py", "add(1, 2) returned -1"),
        ("command:grep EUR total.txt", "status 1"),
        ("command:grep + {attempt}", "status 1"),
    ]:
        result = mulligan.retry(judge=judge, tries=2)(write).run("Write add.")
        first, second = result.episode.trials
        assert said in (first.feedback.text if first.feedback else "")
        assert second.feedback is not None
        assert second.feedback.passed
    with pytest.raises(InvalidInput, match=r"test file .*none.py does not exist"):
        mulligan.retry(judge=tmp_path / "none.py")(write)
    with pytest.raises(InvalidInput, match=r"judge=Path\('checks.py'\)"):
        mulligan.retry(judge="unit_tests:checks.py")(write)("Write add.")


def tried(judge: Any, answer: Callable[[int], str] = lambda number: f"answer {number}", **options: Any) -> list[Notes]:
    """What each of at most four tries is shown."""
    shown = list[Notes]()

    @mulligan.retry(judge=judge, tries=4, record=False, **options)
    def function(task: str, notes: Notes) -> str:
        shown.append(notes)
        return answer(len(shown))

    with contextlib.suppress(NotSolved):
        function("the task")
    return shown


def test_a_command_that_is_not_there_is_an_error_before_the_first_try() -> None:
    with pytest.raises(InvalidInput, match="'pytets' was not found"):
        tried("command:pytets -q", lambda number: pytest.fail("it was called"))


@pytest.mark.parametrize(
    "judge",
    [
        "command:sh -c pytets",
        "command:{python} -m pytets -q",
        "command:{python} no_such.py {{attempt}}",
        "command:make no-such-target {{attempt}}",
        "command:./check",
        "command:./no-such-check",
    ],
)
def test_a_judge_that_cannot_run_ends_the_call_at_the_first_try_with_the_result(tmp_path: Path, judge: str) -> None:
    (tmp_path / "check").write_text("#!/bin/sh\nexit 0\n")  # not executable
    calls = list[int]()
    judge = judge.format(python=sys.executable)

    @mulligan.retry(judge=judge, tries=4)
    def function(task: str, notes: Notes) -> dict[str, int]:
        calls.append(1)
        return {"total": 12}

    with pytest.raises(NotSolved, match=r"could not run, so no attempt can be judged: .*Correct the command") as caught:
        function("the task")
    assert len(calls) == 1
    assert caught.value.value == {"total": 12}
    assert caught.value.episode.trials[0].feedback is None


def test_no_try_was_right_and_the_error_has_the_best_result() -> None:
    @mulligan.retry(judge=lambda answer: float(answer), tries=2, unsolved="raise", record=False)
    def function(task: str, notes: Notes) -> float:
        return 0.25 if notes else 0.5

    with pytest.raises(NotSolved) as caught:
        function("the task")
    assert caught.value.value == 0.5


def agrees(answer: str) -> bool:
    return True


def of_attribute(answer: str) -> bool:
    return answer.total > 3  # pyright: ignore


def of_key(answer: str) -> bool:
    return {"a": 1}[answer[:0]] > 0


def of_library(answer: str) -> bool:
    return sum(None) > 3  # pyright: ignore


def endless(answer: str) -> bool:
    return endless(answer)


def unwritten(answer: str) -> bool:
    raise NotImplementedError


def of_a_dict(answer: str) -> bool:
    table = {"a": 1}
    for key in table:
        table[key + "b"] = 1
    return True


@pytest.mark.parametrize("judge", [of_attribute, of_key, of_library, endless, unwritten, of_a_dict])
def test_the_same_error_of_a_judge_in_two_tries_is_a_probable_bug_and_no_check(
    judge: Callable[[str], bool], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "mulligan"):
        shown = tried(judge)
    assert [bool(notes) for notes in shown] == [False, True, False, False]
    assert caplog.text.count(f"Probably a bug in the judge {judge.__name__}") >= 1
    assert Path(__file__).name in caplog.text


def test_the_same_error_of_the_function_is_named_as_well() -> None:
    def answer(number: int) -> str:
        return {"a": "b"}["missing"]

    shown = tried(agrees, answer)
    assert [bool(notes) for notes in shown] == [False, True, False, False]


def raises(answer: str) -> bool:
    raise TypeError("a number is wanted")


def asserts(answer: str) -> None:
    assert len(answer) > 100, "too short"


def reads_a_number(answer: str) -> bool:
    return float(answer) > 3


@pytest.mark.parametrize("judge", [raises, asserts, reads_a_number])
def test_what_a_judge_says_of_the_answer_is_shown_each_time(judge: Callable[[str], bool]) -> None:
    assert [bool(notes) for notes in tried(judge)] == [False, True, True, True]


def test_two_errors_that_differ_are_shown() -> None:
    shown = tried(agrees, lambda number: {"a": "b"}[f"missing {number}"])
    assert [bool(notes) for notes in shown] == [False, True, True, True]
