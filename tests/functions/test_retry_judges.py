"""`retry`: a judge that cannot run, and errors that are the program's own."""

import contextlib
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan import Notes, NotSolved
from mulligan.core.errors import InvalidInput


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


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
