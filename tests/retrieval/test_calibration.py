"""Relevance: the share of banks of this size, none of whose lessons fits, whose best scores less."""

import itertools
import math

import numpy as np
import pytest
from bank_rows import index_of, row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bank.recall.candidates import PRESETS, SHIPPED, NullDistribution, estimated, shipped
from mulligan.bank.recall.index import Index
from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.bank.recall.retrieval.hybrid import Hybrid
from mulligan.core.lesson_history import Delta

LOCAL = "local:minilm-l6-v2@sha256:1234"
NULLS = [*SHIPPED.values(), estimated(np.zeros(0), 0)]


@given(st.lists(st.floats(-1, 12), min_size=2, max_size=30), st.integers(0, 10**6))
def test_relevance_rises_with_the_score_and_falls_with_the_size_of_the_bank(scores: list[float], size: int) -> None:
    for null in NULLS:
        relevance = null.relevance(np.sort(scores), size)
        assert ((relevance >= 0) & (relevance <= 1)).all()
        assert (np.diff(relevance) >= 0).all()
        assert (null.relevance(np.sort(scores), 2 * size + 1) <= relevance).all()


def test_relevance_is_that_of_the_best_of_so_many_unrelated_lessons() -> None:
    """Drawn as the null says, nine of ten banks stay below the score of relevance .9."""
    null, chance = NullDistribution(0.1, 0.05, 0.05), np.random.default_rng(1)
    for size in (1, 20):
        best = chance.gumbel(null.place, null.width, (4000, size)).max(axis=1)
        assert (null.relevance(best, size) < 0.9).mean() == pytest.approx(0.9, abs=0.02)


def test_the_first_lesson_of_a_known_embedder_needs_no_bank_to_be_judged() -> None:
    """A cosine of .1 says nothing, one of .3 does, whether the bank has one lesson or twenty."""
    assert shipped(LOCAL) is SHIPPED["local:minilm-l6-v2"]
    assert shipped("somebody:elses") is shipped(None) is None
    near = [1, 0.3, 0, 0]
    for others in (0, 19):
        rows = [row(n, "", [0, 0, 1, n / 9], experience=f"x{n}") for n in range(2, 2 + others)]
        index = Index(LOCAL)
        index.apply(Delta(1, 1, [row(1, "", [0, 1, 0, 0]), *rows]))
        among = index.candidates("", np.asarray(near, np.float32) / np.linalg.norm(near))
        assert list(Fused().rank(among, 3).rows) == [0]
        assert Fused().rank(index.candidates("", np.asarray([0.995, 0.1, 0, 0], np.float32)), 3).rows == []


def test_an_unknown_embedder_is_measured_on_the_banks_own_lessons() -> None:
    """One whose unrelated texts have cosines of about .7: at first all is given, then what stands out."""
    chance = np.random.default_rng(3)
    common = np.ones(64) / 8
    own = chance.standard_normal((121, 64))
    vectors = common * 1.5 + own / np.linalg.norm(own, axis=1, keepdims=True)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    near = vectors[0] + 0.6 * vectors[120]
    near /= np.linalg.norm(near)
    for size, least, most in ((1, 20, 20), (100, 0, 12)):
        index = Index("somebody:elses")
        index.apply(Delta(1, 1, [row(n + 1, "", vectors[n], experience=f"x{n}") for n in range(size)]))
        given = [Fused().rank(index.candidates("", vector), 1).rows for vector in vectors[100:120]]
        assert least <= sum(map(len, given)) <= most
        assert Fused().rank(index.candidates("", near), 3).rows[0] == 0


def test_lessons_of_one_experience_say_nothing_about_unrelated_ones() -> None:
    """Eight lessons of one task, all alike, are judged as if nothing were known; of eight tasks, as common ground."""
    near = np.asarray([1, 0, 0, 0.02], np.float32)
    rows = [row(n, "", [1, 0, 0, n / 1000]) for n in range(1, 9)]
    relevance: list[float] = []
    for names in ("x", "xyzuvwst"):
        index = Index("somebody:elses")
        named = [row(n, "", [1, 0, 0, n / 1000], experience=names[n % len(names)]) for n in range(1, len(rows) + 1)]
        index.apply(Delta(1, 1, named))
        relevance.append(float(index.candidates("", near).relevance(0.9, "lesson")))
    assert relevance[0] > 0.99 > relevance[1]


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


def test_a_lesson_that_shares_no_word_has_no_relevance_by_words() -> None:
    among = index_of(row(1, "order"), row(2, "parcel")).candidates("order")
    assert among.relevance(among.lexical(), "lexical")[1] == 0.0


def test_presets() -> None:
    assert PRESETS["lenient"] < PRESETS["standard"] < PRESETS["strict"] < 1
    among = index_of(row(1, "order")).candidates("order")
    assert [among.threshold(wanted) for wanted in ("strict", 0.5, None)] == [PRESETS["strict"], 0.5, None]
    for strategy in (Fused, Hybrid):
        assert strategy.__init__.__defaults__
        assert strategy.__init__.__defaults__[0] == PRESETS["standard"]


def test_meaning_counts_between_texts_of_one_language_where_the_embedder_knows_english_alone() -> None:
    """A cosine of .5 says much between two English texts, less between two Turkish ones, and nothing across them."""
    english, turkish = "the cache of the build is full", "derleme için ayrılan yer doldu"
    near = np.asarray([0.5, math.sqrt(0.75), 0, 0], np.float32)
    for embedder, expected in ((LOCAL, [True, False, False, False]), ("somebody:elses", [True] * 4)):
        given: list[bool] = []
        for lesson, query in itertools.product(
            (english, turkish), ("where are files kept", "dosyalar nerede bulunur mu")
        ):
            index = Index(embedder)
            index.apply(Delta(1, 1, [row(1, lesson, [1, 0, 0, 0])]))
            given.append(bool(Fused().rank(index.candidates(query, near), 3).rows))
        assert given == expected
    alike = np.asarray([0.8, 0.6, 0, 0], np.float32)
    index = Index(LOCAL)
    index.apply(Delta(1, 1, [row(1, turkish, [1, 0, 0, 0]), row(2, english, [0.9, 0.1, 0, 0])]))
    assert Fused().rank(index.candidates("dosyalar nerede bulunur mu", alike), 3).rows == [0]
