"""What a retried function keeps: tries that outlive the process, and what tells calls apart."""

import functools
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import Notes, Reflection
from mulligan.store import open_store
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@dataclass(frozen=True)
class Bill:
    lines: list[int]
    currency: str | None


def test_a_call_that_was_cut_off_goes_on_with_its_tries_and_reads_results_back() -> None:
    class Power:  # what a function holds is part of its key; a class counts by its name
        cut, calls = True, list[int]()

    def judge(answer: Bill) -> tuple[bool, str]:
        return answer.currency == "EUR", f"no currency for {answer.lines}"

    @mulligan.retry(judge=judge)
    def bill(lines: list[int], notes: Notes) -> Bill:
        Power.calls.append(notes.trial)
        if notes.trial == 2 and Power.cut:
            raise KeyboardInterrupt
        return Bill(lines, "EUR" if notes else None)

    with pytest.raises(KeyboardInterrupt):
        bill([5, 7])
    Power.cut = False
    result = bill.run([5, 7])
    assert Power.calls == [1, 2, 2]
    assert result.value == Bill([5, 7], "EUR")
    assert [trial.number for trial in result.episode.trials] == [1, 2]
    assert bill([5, 7]) == Bill([5, 7], "EUR")  # a finished call runs anew
    assert Power.calls == [1, 2, 2, 1, 2]
    Power.cut = True
    with pytest.raises(KeyboardInterrupt):
        bill([5, 7])
    Power.cut = False
    assert bill([1]) == Bill([1], "EUR")  # other arguments: another call
    assert Power.calls[-2:] == [1, 2]


class Held:
    """Whether the second try is cut off, and what was tried."""

    cut, tried = True, list[tuple[str, int]]()


def cut_off(function: Callable[[], Any]) -> None:
    Held.cut = True
    with pytest.raises(KeyboardInterrupt):
        function()
    Held.cut = False
    Held.tried.clear()


def bill_in(currency: Any) -> Callable[..., Any]:
    @mulligan.retry(judge=lambda answer: answer.endswith("right"))
    def bill(task: str, notes: Notes) -> str:
        Held.tried.append((str(currency), notes.trial))
        if notes.trial == 2 and Held.cut:
            raise KeyboardInterrupt
        return f"12 {currency}{' right' if notes else ''}"

    return bill


def judged_in(currency: Any) -> Callable[..., Any]:
    @mulligan.retry(judge=lambda answer: (f"{currency} right" in answer, "no"))
    def bill(task: str, notes: Notes) -> str:
        Held.tried.append(("", notes.trial))
        if notes.trial == 2 and Held.cut:
            raise KeyboardInterrupt
        return "EUR right, GBP right" if notes else "12"

    return bill


@pytest.mark.parametrize("made", [bill_in, judged_in])
def test_what_function_and_judge_hold_tells_calls_apart(made: Callable[[Any], Callable[..., Any]]) -> None:
    cut_off(lambda: made("EUR")("The total"))
    made("GBP")("The total")
    assert [trial for _, trial in Held.tried][:2] == [1, 2]
    cut_off(lambda: made("EUR")("The total"))
    made("EUR")("The total")
    assert [trial for _, trial in Held.tried] == [2]
    cut_off(lambda: made(threading.Lock())("The total"))  # nothing says what it is
    made(threading.Lock())("The total")
    assert Held.tried[0][1] == 1


def test_the_object_of_a_method_and_the_arguments_of_a_partial_tell_calls_apart() -> None:
    class Desk:
        def __init__(self, currency: str) -> None:
            self.currency = currency

        @mulligan.retry(judge=lambda answer: answer.endswith("right"))
        def bill(self, task: str, notes: Notes) -> str:
            Held.tried.append((self.currency, notes.trial))
            if notes.trial == 2 and Held.cut:
                raise KeyboardInterrupt
            return f"12 {self.currency}{' right' if notes else ''}"

    cut_off(lambda: Desk("EUR").bill("The total"))
    assert Desk("GBP").bill("The total") == "12 GBP right"
    assert Desk("EUR").bill("The total") == "12 EUR right"
    assert Held.tried == [("GBP", 1), ("GBP", 2), ("EUR", 2)]

    def bill(currency: str, task: str, notes: Notes) -> str:
        return Desk.bill._function(Desk(currency), task, notes=notes)  # pyright: ignore

    def partial_of(currency: str) -> Callable[..., Any]:
        return mulligan.retry(judge=lambda answer: answer.endswith("right"))(functools.partial(bill, currency))

    cut_off(lambda: partial_of("EUR")("The sum"))
    assert partial_of("GBP")("The sum") == "12 GBP right"
    assert partial_of("EUR")("The sum") == "12 EUR right"
    assert Held.tried == [("GBP", 1), ("GBP", 2), ("EUR", 2)]


@pytest.mark.slow
def test_the_key_is_the_same_in_a_process_with_another_hash_seed() -> None:
    code = textwrap.dedent("""
        import sys
        from mulligan.functions.identity import identity
        def function(word, other={"x": {"one", "two", "three"}}):
            return word in {"alpha", "beta", "gamma", "delta"} or (word, frozenset({"a", "b"}))
        sys.stdout.write(repr(identity(function)))
    """)
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert said[0]
    assert len(set(said)) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_the_best_result_of_a_call_that_went_on_is_its_own_type() -> None:
    cut = [True]

    @mulligan.retry(judge=lambda answer: 0.5, tries=2, key="one")
    def bill(notes: Notes) -> Bill:
        if notes.trial == 2 and cut[0]:
            raise KeyboardInterrupt
        if notes.trial == 2:
            raise ValueError("nothing")
        return Bill([1], None)

    with pytest.raises(KeyboardInterrupt):
        bill()
    cut[0] = False
    assert bill() == Bill([1], None)


async def test_what_is_kept_of_arguments_is_masked() -> None:
    @mulligan.retry(judge=in_euros)
    async def bill(task: str, password: str, notes: Notes) -> str:
        assert password == "correct-horse-battery-staple"
        return "12 EUR"

    await bill("Use sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 for it", "correct-horse-battery-staple")
    episode = bill.episode
    assert episode is not None
    async with open_store(mulligan_store()) as store:
        kept = await store.load(episode.id)
    assert "sk-ant" not in kept.task.prompt
    assert "correct-horse" not in str(kept.task.inputs)


def mulligan_store() -> Path:
    from mulligan.app.config import load

    return Path(str(load().store).removeprefix("sqlite:///"))


def test_nothing_is_kept_if_nothing_is_to_be(tmp_path: Path) -> None:
    @mulligan.retry(judge=in_euros, record=False)
    def bill(task: str, notes: Notes) -> str:
        return "12 EUR"

    assert bill("x") == "12 EUR"
    assert not list(tmp_path.rglob("*.db"))


@given(VALUES)
def test_results_come_back_as_they_were(value: object) -> None:
    from mulligan.core.codec import from_json, to_json
    from mulligan.core.records import Attempt
    from mulligan.functions.results import attempt_of, value_of

    kept = from_json(Attempt, to_json(attempt_of(value)))
    back = value_of(kept)
    assert (back, type(back)) == (value, type(value))


@given(st.lists(st.integers()), st.none() | st.text())
def test_results_of_a_class_come_back_as_they_were(lines: list[int], currency: str | None) -> None:
    from mulligan.functions.results import attempt_of, value_of

    bill = Bill(lines, currency)
    assert value_of(attempt_of(bill)) == bill
    assert value_of(attempt_of([bill], list[Bill]), list[Bill]) == [bill]


def test_what_has_no_json_form_is_said_to_be_unreadable() -> None:
    from mulligan.functions.results import UNREADABLE, attempt_of, value_of

    for value in (object(), {1, 2}, float("nan"), (1, 2), b"x", Reflection):
        assert value_of(attempt_of(value)) is UNREADABLE
