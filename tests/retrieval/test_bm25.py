"""BM25 in memory against BM25 written down plainly, through additions, changes and removals."""

import math
from collections import Counter

import numpy as np
import pytest
from bank_rows import index_of, row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bank.recall import candidates
from mulligan.bank.recall.candidates import BM25, FEW, YOUNG
from mulligan.bank.recall.index import Index
from mulligan.bank.recall.terms import commonness, terms
from mulligan.core.lesson_history import Delta

LETTERS = st.lists(st.sampled_from(("ab", "bc", "cd", "the", "of", "gh", "hj", "jk")), max_size=12).map(" ".join)


def plain(query: str, texts: list[str], by: BM25) -> list[float]:
    """The formula, with Lucene's idf, where `YOUNG` texts from anywhere stand beside the bank's own."""
    docs = [Counter(terms(text)) for text in texts]
    n, mean = len(docs), (sum(doc.total() for doc in docs) / max(len(docs), 1)) or 1.0
    df = {term: sum(term in doc for doc in docs) for term in terms(query)}
    held = {term: count + YOUNG * commonness(term) for term, count in df.items()}
    weights = {
        term: times * math.log(1 + (n + YOUNG - held[term] + 0.5) / (held[term] + 0.5))
        for term, times in Counter(terms(query)).items()
    }
    heavy = sorted(weights, key=lambda term: -weights[term])[: by.most]
    rare = [term for term in heavy if df[term] <= max(by.common * n, FEW)]
    wanted = rare if any(df[term] for term in rare) else heavy
    scores: list[float] = []
    for doc in docs:
        length = by.k1 * (1 - by.b + by.b * doc.total() / mean)
        scores.append(
            sum(weights[term] * doc[term] * (by.k1 + 1) / (doc[term] + length) for term in wanted if doc[term])
        )
    return scores


@given(
    LETTERS, st.lists(LETTERS, min_size=1, max_size=40), st.sampled_from([BM25(), BM25(1.2, 0.9, 0.25), BM25(most=3)])
)
def test_scores_are_those_of_the_formula(query: str, texts: list[str], by: BM25) -> None:
    index = Index(bm25=by)
    index.apply(Delta(1, 1, [row(n, text) for n, text in enumerate(texts, 1)]))
    assert index.candidates(query).lexical() == pytest.approx(plain(query, texts, by), rel=1e-5, abs=1e-9)


@given(st.data(), st.sampled_from([1, 7, 1 << 15]))
def test_scores_follow_every_change(data: st.DataObject, tail: int) -> None:
    """Whatever was added, edited, retired, restored and purged: the scores are those of what is active now."""
    usual, candidates.MAX_TAIL = candidates.MAX_TAIL, tail
    try:
        index, shelf = Index(), dict[int, str]()
        changes = data.draw(st.lists(st.tuples(st.integers(1, 12), st.one_of(st.none(), LETTERS)), max_size=60))
        for at, (n, text) in enumerate(changes, 1):
            if text is None and n % 2:
                index.apply(Delta(at, 1, [], [n]), at - 1)
            else:
                state = "retired" if text is None else "active"
                index.apply(Delta(at, 1, [row(n, text or "", state=state)]), at - 1)
            shelf.pop(n, None)
            if text is not None:
                shelf[n] = text
        query, now = data.draw(LETTERS), index.candidates("")
        assert list(now.ids) == [f"l{n}" for n in sorted(shelf)]
        texts = [shelf[n] for n in sorted(shelf)]
        assert index.candidates(query).lexical() == pytest.approx(plain(query, texts, BM25()), rel=1e-5, abs=1e-9)
    finally:
        candidates.MAX_TAIL = usual


def test_common_words_are_skipped_unless_there_are_no_others() -> None:
    index = index_of(*(row(n, "the order" if n < 15 else "the parcel") for n in range(1, 21)))
    assert index.candidates("the").lexical().min() > 0
    assert np.flatnonzero(index.candidates("the parcel").lexical()).tolist() == [14, 15, 16, 17, 18, 19]


def test_many_dead_slots_are_cleared_and_nothing_else_changes() -> None:
    much = [" ".join(f"x{n}y{i}" for i in range(60)) for n in range(401)]
    rows = [row(n, f"word{n} order {much[n]}", [1, n, 0, 0]) for n in range(1, 401)]
    index = index_of(*rows)
    before, held = index.bytes, index.candidates("word400")
    index.apply(Delta(500, 1, [], list(range(1, 301))), index.tip)
    assert index.bytes < before * 0.5
    assert held.n == 400
    assert held.ids[int(held.lexical().argmax())] == "l400"
    assert index.candidates("word350").lexical().argmax() == 49
    fresh = index_of(*rows[300:])
    for query in ("word333 order", "order"):
        one, other = (some.candidates(query, [0, 1, 0, 0]) for some in (index, fresh))
        assert one.lexical() == pytest.approx(other.lexical())
        assert one.semantic() == pytest.approx(other.semantic())
        assert list(one.ids) == list(other.ids)
