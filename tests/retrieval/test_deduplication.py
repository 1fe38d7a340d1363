"""Which lessons nearly say the same, and the two ways to look for them."""

from typing import Any

import pytest
from bank_rows import Given

from mulligan.app.plugins import build, names
from mulligan.bank.upkeep.deduplication.none import NoDuplicates
from mulligan.bank.upkeep.deduplication.semantic import Semantic
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson, Spec

NEW = Lesson("l0", "Prices", "Look at the currency.", "success")


def near(strategy: Any, similarities: list[float], success: list[bool] | None = None) -> list[int]:
    among: Any = Given(meaning=similarities, success=success)
    return list(strategy.near(NEW, among, among.semantic()))


def test_the_nearest_above_the_threshold_itself_left_out() -> None:
    assert near(Semantic(), [1.0, 0.91, 0.89, 0.95, float("nan")]) == [3, 1]
    assert near(Semantic(threshold=0.8), [1.0, 0.91, 0.89, 0.95]) == [3, 1, 2]
    assert near(Semantic(top_k_check=1), [1.0, 0.91, 0.89, 0.95]) == [3]
    assert near(Semantic(), [1.0]) == []


def test_a_failure_is_no_duplicate_of_a_success() -> None:
    assert near(Semantic(), [1.0, 0.99, 0.98], [True, False, True]) == [2]


def test_none_finds_none() -> None:
    assert near(NoDuplicates(), [1.0, 1.0]) == []
    assert names("deduplication") == ["none", "semantic"]
    assert isinstance(build("deduplication", Spec("none"), {}), NoDuplicates)


def test_settings_that_can_never_work_are_refused() -> None:
    with pytest.raises(InvalidInput):
        Semantic(threshold=1.5)
    with pytest.raises(InvalidInput):
        Semantic(top_k_check=0)
