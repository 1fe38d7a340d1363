"""How far people's scores and computed ones agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.agreement import MIN_PAIRS, agreement, latest, of_lessons, of_results
from mulligan.core.records import Attempt, Episode, Feedback, Quality, Rating, Reflection, Task, Trial

scores = st.floats(0, 1)
pairs = st.lists(st.tuples(scores, scores), min_size=MIN_PAIRS, max_size=30)


def test_nothing_is_said_of_few() -> None:
    assert agreement([(n / 10, n / 10) for n in range(MIN_PAIRS - 1)]) is None


def test_known_cases() -> None:
    rising = [(n / 20, n / 20) for n in range(20)]
    same, turned = agreement(rising), agreement([(a, 1 - b) for a, b in rising])
    assert same
    assert turned
    assert (same.n, same.correlation, same.share) == (20, pytest.approx(1.0), 1.0)
    assert (turned.correlation, turned.share) == (pytest.approx(-1.0), 0.0)
    flat = agreement([(0.5, b) for _, b in rising])
    assert flat
    assert (flat.correlation, flat.share) == (None, None)


@given(pairs)
def test_it_lies_within_bounds_and_depends_on_ranks_alone(given: list[tuple[float, float]]) -> None:
    found, scaled = agreement(given), agreement([(a, b * 2 + 3) if b > 0.001 else (a, 0.0) for a, b in given])
    assert found
    assert found.correlation is None or -1.0001 <= found.correlation <= 1.0001
    assert found.share is None or 0 <= found.share <= 1
    assert scaled


def episode(quality: float | None, score: float | None, *ratings: Rating) -> Episode:
    reflection = Reflection("r", quality=None if quality is None else Quality(quality))
    trial = Trial(1, Attempt("a"), Feedback(False, score=score), reflection)
    return Episode("e.1", Task("t"), trials=(trial,), ratings=ratings)


def test_each_person_s_newest_rating_of_each_thing_counts() -> None:
    given = (Rating(0.1, "Ann", trial=1), Rating(0.9, "Ann", trial=1), Rating(0.4, "Bob", trial=1), Rating(0.2, "Ann"))
    assert [one.score for one in latest(given)] == [0.9, 0.4, 0.2]
    assert of_lessons([episode(0.7, 0.3, *given)]) == [(0.9, 0.7), (0.4, 0.7)]
    assert of_results([episode(0.7, 0.3, *given), episode(None, None, Rating(1.0))]) == [(0.2, 0.3), (1.0, 0.0)]
    assert of_lessons([episode(None, None, *given)]) == []
