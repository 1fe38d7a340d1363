"""Relevance: the share of unrelated pairs that score less, by the bank's own lessons and the shipped distribution."""

import numpy as np
import pytest
from bank_rows import cosines, index_of, row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bank.calibration import PRESETS, Null, shipped
from mulligan.bank.index import Index
from mulligan.bank.nulls import LEVELS
from mulligan.core.lessons import Delta
from mulligan.retrieval.fused import Fused
from mulligan.retrieval.hybrid import Hybrid

LOCAL = "local:minilm-l6-v2@sha256:1234"


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.sampled_from(["lesson", "query", "lexical"]))
def test_relevance_rises_with_the_score_and_lies_between_0_and_1(scores: list[float], part: str) -> None:
    for embedder in (LOCAL, "hash:384", "somebody:elses", None):
        relevance = shipped(part, embedder).relevance(np.sort(scores))
        assert ((relevance > 0) & (relevance < 1)).all()
        assert (np.diff(relevance) >= 0).all()


def test_the_shipped_levels_are_what_they_say() -> None:
    for part in ("lesson", "query", "lexical"):
        null = shipped(part, LOCAL)
        scores = null.mean + null.sd * np.asarray(null.shape)
        assert null.relevance(scores) == pytest.approx(LEVELS)


def test_the_tail_is_smooth_and_tells_the_best_apart() -> None:
    relevance = shipped("lesson", LOCAL).relevance(np.linspace(0.6, 1.0, 41))
    assert (np.diff(relevance) > 0).all()
    assert relevance[-1] < 1
    steps = np.diff(np.log(1 - relevance))
    assert steps[5:] == pytest.approx([steps[-1]] * len(steps[5:]), rel=0.2)


def test_a_young_bank_leans_on_the_shipped_distribution_and_an_old_one_on_its_own() -> None:
    scores = np.asarray([0.4, 0.5, 0.6])
    start = Null(0.2, 0.1, tuple(np.linspace(-2, 4, len(LEVELS))))
    assert start.fitted(scores, 1).mean == pytest.approx(0.2 + 0.3 / 21)
    assert start.fitted(scores, 20).mean == pytest.approx(0.35)
    assert start.fitted(scores, 10_000).mean == pytest.approx(0.35)  # bounded: 1.5 deviations up
    assert start.fitted(np.zeros(0), 0) == start
    assert Null(0.2, 0.1, start.shape, bounds=None).fitted(scores, 10_000).mean == pytest.approx(0.5, abs=0.01)


def test_unrelated_lessons_of_one_trade_are_held_apart_from_those_that_help() -> None:
    """All lessons of this bank are a little alike (cosine .5); what is relevant stands out of that, not of nothing."""
    chance = np.random.default_rng(3)
    common, own = chance.standard_normal(64), chance.standard_normal((201, 64))
    vectors = common / np.linalg.norm(common) + own / np.linalg.norm(own, axis=1, keepdims=True)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    index = Index(LOCAL)
    index.apply(Delta(1, 1, [row(n + 1, f"w{n}", vectors[n]) for n in range(200)]))
    among = index.candidates("", vectors[200])
    alike = cosines(index, vectors[200])
    assert alike.mean() > 0.45
    assert shipped("lesson", LOCAL).relevance(alike).mean() > 0.9
    assert among.relevance(alike, "lesson").mean() < 0.85
    near = vectors[0] + 0.05 * vectors[200]
    assert among.relevance([float(vectors[0] @ near / np.linalg.norm(near))], "lesson")[0] > 0.99


def test_lessons_of_one_experience_say_nothing_about_unrelated_ones() -> None:
    same = index_of(*(row(n, "order price", [1, 0, 0, n / 1000], experience="x") for n in range(1, 9)))
    assert len(same.own_pairs("lesson")) == 0
    assert len(same.own_pairs("lexical")) == 0
    other = index_of(*(row(n, "order price", [1, 0, 0, n / 1000], experience=f"x{n % 2}") for n in range(1, 9)))
    assert len(other.own_pairs("lesson")) == 2 * 16


def test_a_bank_that_was_read_at_once_is_calibrated_like_one_that_grew() -> None:
    chance = np.random.default_rng(5)
    rows = [row(n, f"w{n % 7} w{n % 11} order", chance.standard_normal(8)) for n in range(1, 301)]
    grown = Index("e")
    for at, one in enumerate(rows, 1):
        grown.apply(Delta(at, 1, [one]), at - 1)
        grown.candidates("w1")
    at_once = Index("e")
    at_once.apply(Delta(300, 1, rows))
    scores = np.linspace(-1, 1, 9)
    for part in ("lesson", "lexical"):
        one, other = (index.candidates("w3").relevance(scores, part) for index in (grown, at_once))
        assert one.tolist() == other.tolist()


def test_long_and_short_queries_are_measured_alike() -> None:
    """Much of a short query in a lesson, and as much of a long one: both are relevant, though BM25 differs by far."""
    texts = [" ".join(f"w{(n * 7 + i) % 97}" for i in range(12)) for n in range(60)]
    index = index_of(*(row(n, text) for n, text in enumerate(texts, 1)))
    short, long = index.candidates(texts[5]), index.candidates(f"{texts[5]} {texts[5]} {texts[5]}")
    assert long.lexical().max() > 2 * short.lexical().max()
    for among in (short, long):
        relevance = among.relevance(among.lexical(), "lexical")
        assert relevance[5] == relevance.max() > 0.99


def test_presets() -> None:
    assert PRESETS["lenient"] < PRESETS["standard"] < PRESETS["strict"] < 1
    among = index_of(row(1, "order")).candidates("order")
    assert [among.threshold(wanted) for wanted in ("strict", 0.5, None)] == [PRESETS["strict"], 0.5, None]
    for strategy in (Fused, Hybrid):
        assert strategy.__init__.__defaults__
        assert strategy.__init__.__defaults__[0] == PRESETS["standard"]
