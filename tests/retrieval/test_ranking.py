"""The strategies on scores that are written down: formulas by hand, threshold before top_k, failures found, ties."""

import math

import numpy as np
import pytest
from bank_rows import Given, index_of

from mulligan.app.plugins import build, find, names, settings_of
from mulligan.bank.recall.retrieval.cosine import Cosine
from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.bank.recall.retrieval.hybrid import DAY, Hybrid
from mulligan.core.errors import InvalidInput
from mulligan.core.ranking import Retrieval
from mulligan.core.records import Spec

STRATEGIES = [Cosine, Fused, Hybrid]
NAN = float("nan")


def test_three_strategies_ship() -> None:
    assert names("retrieval") == ["cosine", "fused", "hybrid"]
    for name in names("retrieval"):
        assert isinstance(build("retrieval", Spec(name), {}), Retrieval)
        assert "threshold" in settings_of(find("retrieval", name))


def test_hybrid_is_the_weighted_sum_of_the_seed() -> None:
    among = Given(
        meaning=[0.8, 0.8, 0.6, 0.9],
        uses=[0, 10, 0, 0],
        success=[True, True, True, False],
        created=[30 * DAY, 30 * DAY, 60 * DAY, 60 * DAY],
        confidence=[0.5, 0.5, 1.0, 0.5],
        now=60 * DAY,
    )
    scores = [
        0.6 * 0.8 + 0.2 * 0.5 + 0.15 + 0.05 * 0.5,  # half of the recency after a halflife
        0.6 * 0.8 + 0.2 * (0.5 + 0.5 * math.tanh(1)) + 0.15 + 0.05 * 0.5,
        0.6 * 0.6 + 0.2 * 1.0 + 0.15 + 0.05,
        0.6 * 0.9 + 0.2 * 0.5 - 0.075 + 0.05,
    ]
    assert scores == pytest.approx([0.755, 0.831159, 0.76, 0.615], abs=1e-6)
    ranked = Hybrid(0).rank(among, 4)
    assert list(ranked.rows) == [1, 2, 0, 3]
    assert list(ranked.scores) == [0.8, 0.6, 0.8, 0.9]  # relevance, not the sum
    assert list(Hybrid(0, success=0, confidence=0, recency=0).rank(among, 2).rows) == [3, 0]
    among.worth = np.array([np.nan, 0.1, 0.9, np.nan])  # what was measured takes the place of confidence and uses
    assert list(Hybrid(0, semantic=0, success=0, recency=0).rank(among, 4).rows) == [2, 0, 3, 1]
    among.worth = np.full(4, np.nan)
    assert Hybrid(0, failure=1).rank(among, 1).rows == [3]
    assert Hybrid(0, halflife=1e9, success=0, semantic=0).rank(among, 1).rows == [2]


def test_a_failure_lesson_can_be_found_by_every_strategy() -> None:
    """The server of the seed can never return one: its ceiling of .725 lies below its own threshold."""
    among = Given(meaning=[0.98, 0.3], asked=[0.98, 0.3], words=[0.98, 0.3], success=[False, True])
    for strategy in STRATEGIES:
        ranked = strategy().rank(among, 1, 0.97)
        assert (list(ranked.rows), ranked.filtered, ranked.nearest) == ([0], 1, 1)


def test_the_threshold_comes_before_top_k_and_acts_on_relevance() -> None:
    """The best two of the sum are irrelevant; taking them first would leave nothing."""
    among = Given(meaning=[0.5, 0.5, 0.9], uses=[100, 100, 0], success=[True, True, False])
    assert list(Hybrid(0).rank(among, 2).rows) == [0, 1]
    ranked = Hybrid(0.8).rank(among, 2)
    assert (list(ranked.rows), ranked.filtered, ranked.threshold) == ([2], 2, 0.8)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_below_the_threshold_nothing_is_given_and_all_of_it_is_counted(strategy: type[Retrieval]) -> None:
    among = Given(meaning=[0.2, 0.4, NAN], asked=[0.2, 0.4, NAN], words=[0.1, 0.4, 0.2])
    ranked = strategy().rank(among, 3, 0.5)
    assert (list(ranked.rows), list(ranked.scores), ranked.filtered, ranked.threshold) == ([], [], 3, 0.5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_ties_go_to_the_older_lesson_every_time(strategy: type[Retrieval]) -> None:
    among = Given(meaning=[0.9] * 50, asked=[0.9] * 50, words=[0.9] * 50)
    assert list(strategy().rank(among, 3, 0.5).rows) == [0, 1, 2]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_empty_bank_gives_nothing(strategy: type[Retrieval]) -> None:
    ranked = strategy().rank(index_of().candidates("order", [1, 0, 0, 0]), 3)
    assert (list(ranked.rows), ranked.filtered) == ([], 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_vectors_words_alone_decide(strategy: type[Retrieval]) -> None:
    ranked = strategy().rank(Given(words=[0.2, 0.98, 0.99]), 5, 0.5)
    assert (list(ranked.rows), list(ranked.scores), ranked.filtered, ranked.nearest) == ([2, 1], [0.99, 0.98], 1, 0)


def test_cosine_counts_experiences_and_compares_past_tasks() -> None:
    """x: four lessons of one task, of which three are given; y: one; the third has no task of its own."""
    among = Given(
        meaning=[0.1, 0.1, 0.1, 0.1, 0.99, 0.7],
        asked=[0.9, 0.9, 0.9, 0.9, 0.5, NAN],
        experience=["x", "x", "x", "x", "y", ""],
    )
    assert list(Cosine().rank(among, 1).rows) == [0, 1, 2]
    two = Cosine().rank(among, 2)
    assert (list(two.rows), list(two.scores)) == ([0, 1, 2, 5], [0.9, 0.9, 0.9, 0.7])
    assert (list(Cosine().rank(among, 9).rows), two.threshold) == ([0, 1, 2, 5, 4], None)
    assert list(Cosine(most=1).rank(among, 9).rows) == [0, 5, 4]
    assert list(Cosine(threshold=0.8).rank(among, 9).rows) == [0, 1, 2]


def test_lessons_without_an_experience_are_one_each() -> None:
    assert list(Cosine().rank(Given(asked=[0.9, 0.9, 0.8], meaning=[0, 0, 0]), 2).rows) == [0, 1]


def test_fused_adds_to_the_cosine_the_more_the_more_words_are_shared() -> None:
    """By hand: .5, .4 + 10 · .1² = .5 (younger), .3 + 10 · .2² = .7, .2."""
    among = Given(meaning=[0.5, 0.4, 0.3, 0.2], shares=[0.0, 0.1, 0.2, 0.0], words=[0, 1, 2, 0])
    ranked = Fused(0, diversity=0).rank(among, 4)
    assert list(ranked.rows) == [2, 0, 1, 3]
    assert list(ranked.scores) == pytest.approx([0.7, 0.5, 0.5, 0.2])
    assert Fused(0, words=0, diversity=0).rank(among, 1).rows == [0]
    assert Fused(0, words=40, diversity=0).rank(among, 2).rows == [2, 1]


def test_a_lesson_without_a_vector_is_as_near_as_the_others_and_as_relevant_as_its_words() -> None:
    among = Given(meaning=[0.9, NAN, 0.1], words=[0.0, 0.95, 0.0], shares=[0.0, 0.3, 0.0])
    ranked = Fused(0.9, diversity=0).rank(among, 3)
    assert dict(zip(ranked.rows, ranked.scores, strict=True)) == {1: 0.95, 0: 0.9}
    assert (ranked.filtered, ranked.nearest) == (1, 2)


def test_a_second_lesson_is_given_where_it_is_about_as_near() -> None:
    """Doubts of .001, .008, .02 and .09: the first is given with what has at most ten times its doubt."""
    among = Given(words=[0.98, 0.992, 0.999, 0.91])
    ranked = Fused().rank(among, 4)
    assert (list(ranked.rows), ranked.filtered, ranked.nearest) == ([2, 1], 2, 0)
    assert list(Fused(gap=100).rank(among, 4).rows) == [2, 1, 0, 3]
    assert list(Fused().rank(among, 4, 0.995).rows) == [2]
    everything = Fused().rank(among, 4, 0.0)
    assert (list(everything.rows), everything.filtered, everything.nearest) == ([2, 1, 0, 3], 0, None)


def test_many_rows_are_cut_to_the_best_with_ties_by_age() -> None:
    words = np.random.default_rng(1).integers(1, 40, 500) / 40
    by_hand = sorted(range(500), key=lambda row: (-words[row], row))
    assert list(Fused(0, diversity=0).rank(Given(words=words), 60).rows) == by_hand[:60]


def test_diversity_puts_another_lesson_before_a_twin() -> None:
    alike = [[1, 1, 0.1], [1, 1, 0.1], [0.1, 0.1, 1]]
    among = Given(meaning=[0.99, 0.98, 0.97], words=[0.99, 0.98, 0.97], likeness=alike)
    assert list(Fused(0, diversity=0).rank(among, 2).rows) == [0, 1]
    assert list(Fused(0, diversity=0.3).rank(among, 2).rows) == [0, 2]
    assert sorted(Fused(0, diversity=1).rank(among, 3).rows) == [0, 1, 2]


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [(Fused, {"diversity": 2}), (Fused, {"words": -1}), (Fused, {"gap": 0.5}), (Hybrid, {"halflife": 0})],
)
def test_settings_that_can_never_work_are_refused(strategy: type[Retrieval], settings: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        strategy(**settings)
