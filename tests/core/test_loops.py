"""Loop detection: identical actions in a row, and cycles of two or three."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import InvalidInput
from mulligan.core.loops import LoopDetector


def noticed(actions: list[str], detector: LoopDetector | None = None) -> list[str | None]:
    detector = detector or LoopDetector()
    return [detector.add(action) for action in actions]


def test_three_identical_in_a_row() -> None:
    said = noticed(["look", "go to  shelf 1", "go to shelf 1\n", "go to shelf 1"])
    assert said == [None, None, None, "The same action was taken 3 times in a row: `go to shelf 1`."]


@pytest.mark.parametrize(
    ("cycle", "why"),
    [
        (["a", "b"], "The same 2 actions were taken in turn, 3 times over: `a`, then `b`."),
        (["a", "b", "c"], "The same 3 actions were taken in turn, 3 times over: `a`, then `b`, then `c`."),
        (["a", "a", "b"], "The same 3 actions were taken in turn, 3 times over: `a`, then `a`, then `b`."),
    ],
)
def test_cycles(cycle: list[str], why: str) -> None:
    said = noticed(cycle * 3)
    assert said[:-1] == [None] * (len(said) - 1)
    assert said[-1] == why


def test_a_loop_is_reported_for_as_long_as_it_goes_on_and_no_longer() -> None:
    said = noticed(["a", "a", "a", "a", "b", "a"])
    assert [bool(why) for why in said] == [False, False, True, True, False, False]


def test_reset_forgets() -> None:
    detector = LoopDetector(repeats=2)
    assert detector.add("a") is None
    detector.reset()
    assert detector.add("a") is None
    assert detector.add("a") is not None


def test_settings() -> None:
    assert noticed(["a", "b"] * 4, LoopDetector(periods=())) == [None] * 8
    assert noticed(["a", "b", "c", "d"] * 2, LoopDetector(repeats=2, periods=(4,)))[-1] is not None
    for wrong in ({"repeats": 1}, {"periods": (1,)}):
        with pytest.raises(InvalidInput, match="2 or more"):
            LoopDetector(**wrong)  # pyright: ignore[reportArgumentType]


def test_a_long_action_is_quoted_in_part() -> None:
    why = noticed(["x" * 5000] * 3)[-1]
    assert why
    assert len(why) < 200
    assert "…" in why


def is_loop(actions: list[str], repeats: int) -> bool:
    """The rule, written down plainly: some block of 1, 2 or 3 actions makes up the end, `repeats` times over."""
    return any(len(actions) >= p * repeats and actions[-p * repeats :] == actions[-p:] * repeats for p in (1, 2, 3))


@given(st.lists(st.sampled_from("ab"), max_size=40) | st.lists(st.sampled_from("abc")), st.integers(2, 4))
def test_it_agrees_with_the_rule(actions: list[str], repeats: int) -> None:
    said = noticed(actions, LoopDetector(repeats))
    assert [bool(why) for why in said] == [is_loop(actions[: n + 1], repeats) for n in range(len(actions))]
