"""The index of an agent: what the store says is what it ranks, read once, taken in change by change."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from bank_rows import E, Shelf, cosines, index_of, packed, row

from mulligan.bank.recall.index import Index, Indexes
from mulligan.core.lesson_history import Delta
from mulligan.core.records import Lesson

X, Y, Z = [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]


def first(index: Index, query: str) -> str:
    among = index.candidates(query)
    return among.ids[int(among.lexical().argmax())]


async def test_after_the_first_time_only_changes_are_read() -> None:
    shelf = Shelf()
    shelf.put(*(row(n, f"word{n}", X) for n in range(1, 51)))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    await indexes.of("a")
    shelf.put(row(51, "parcel", Y))
    index = await indexes.of("a")
    assert first(index, "parcel") == "l51"
    assert [read for _, _, read in shelf.asked] == [50, 1]


async def test_edited_retired_restored_and_purged_lessons_are_as_they_are_now() -> None:
    shelf = Shelf()
    shelf.put(row(1, "price of the order", X), row(2, "weather report", Y), row(3, "train tickets", Z))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    assert first(await indexes.of("a"), "price") == "l1"
    shelf.put(row(1, "length of the road", Y, uses=4))
    among = (await indexes.of("a")).candidates("price", X)
    assert among.lexical().tolist() == [0, 0, 0]
    assert among.semantic() == pytest.approx([0, 0, 0])
    assert among.uses.tolist() == [4, 0, 0]
    assert list(among.ids) == ["l1", "l2", "l3"]
    shelf.put(row(2, "weather report", Y, state="retired"), row(3, "train tickets", Z, state="superseded"))
    assert list((await indexes.of("a")).candidates("").ids) == ["l1"]
    shelf.put(row(2, "weather report", Y))
    shelf.purge(1)
    assert list((await indexes.of("a")).candidates("").ids) == ["l2"]


async def test_what_stands_beside_the_words_is_written_in_place() -> None:
    shelf = Shelf()
    shelf.put(row(1, "order", None), row(2, "order", X))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    assert np.isnan(cosines(await indexes.of("a"), X)).tolist() == [True, False]
    shelf.put(replace(row(1, "order", X), uses=3, confidence=0.9, success=False))
    index = await indexes.of("a")
    among = index.candidates("order", X)
    assert cosines(index, X).tolist() == [1, 1]
    assert (among.uses[0], among.success[0]) == (3, False)
    assert among.confidence[0] == pytest.approx(0.9)
    assert index.n == 2


async def test_statistics_are_the_agents_own() -> None:
    """In a bank shared with others the order of two lessons would turn: what is rare for one is common for all."""
    shelf = Shelf()
    shelf.put(row(1, "refund parcel"), row(2, "refund order order"), row(3, "order"), row(4, "refund invoice"))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    before = (await indexes.of("a")).candidates("refund order").lexical().tolist()
    shelf.put(*(row(n, "order order refund" * (n % 3), agent_id="b") for n in range(10, 60)))
    mine = (await indexes.of("a")).candidates("refund order")
    assert mine.lexical().tolist() == before
    assert all(id in ("l1", "l2", "l3", "l4") for id in mine.ids)
    everybodys = (await indexes.of(None)).candidates("refund order")
    assert everybodys.n == 54


async def test_a_new_generation_is_read_from_the_beginning() -> None:
    shelf = Shelf()
    shelf.put(row(1, "order"), row(2, "parcel"))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    await indexes.of("a")
    shelf.rows, shelf.generation, shelf.tip = {}, 2, 0
    shelf.put(row(1, "weather"))
    assert list((await indexes.of("a")).candidates("").ids) == ["l1"]


async def test_many_recalls_at_once_read_the_bank_once() -> None:
    shelf = Shelf()
    shelf.put(*(row(n, f"word{n}", X) for n in range(1, 3001)))
    indexes = Indexes(shelf, E)  # type: ignore[arg-type]
    found = await asyncio.gather(*(indexes.of("a") for _ in range(8)))
    assert {index.n for index in found} == {3000}
    assert sum(read for _, _, read in shelf.asked) == 3000


def test_a_delta_that_is_older_than_what_is_known_is_not_taken() -> None:
    index = index_of(row(1, "order", uses=0))
    assert index.apply(Delta(5, 1, [row(1, "order", uses=2)]), 1)
    assert not index.apply(Delta(3, 1, [row(1, "order", uses=1)]), 1)
    assert index.candidates("").uses.tolist() == [2]


async def test_the_agents_asked_for_last_stay_in_memory() -> None:
    shelf = Shelf()
    for agent in ("a", "b", "c"):
        shelf.put(*(row(ord(agent) * 1000 + n, f"word{n}", X, agent_id=agent) for n in range(500)))
    one = index_of(*(row(n, f"word{n}", X) for n in range(500))).bytes
    indexes = Indexes(shelf, E, most_bytes=int(2.5 * one))  # type: ignore[arg-type]
    for agent in ("a", "b", "a", "c", "a", "b"):
        assert (await indexes.of(agent)).n == 500
    assert [agent for agent, _, read in shelf.asked if read] == ["a", "b", "c", "b"]


@pytest.mark.parametrize("text", ["查询用户的最早订单", "用numpy库处理订单 in Shanghai"])
def test_chinese_and_mixed_text_is_found_by_any_part(text: str) -> None:
    index = index_of(row(1, "天气预报"), row(2, text), row(3, "weather in Beijing"))
    for query in ("订单", "单", "的订单在哪里"):
        assert first(index, query) == "l2"


def test_equal_lessons_score_alike_wherever_they_stand() -> None:
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((203, 384)).astype(np.float32)
    rows = [row(n, "same words", vectors[0] if n % 7 == 0 else vectors[n]) for n in range(1, 203)]
    index = index_of(*rows)
    alike = cosines(index, vectors[0] / np.linalg.norm(vectors[0]))
    assert len({float(alike[n - 1]) for n in range(7, 203, 7)}) == 1
    assert len(set(index.candidates("same words").lexical().tolist())) == 1


def test_the_nearest_of_a_lesson() -> None:
    index = index_of(row(1, "", X), row(2, "", [1, 1, 0, 0]), row(3, "", Y), row(4, ""), row(5, "", [9, 1, 0, 0]))
    found = index.nearest("l1", 2)
    assert found is not None
    assert list(found[0].ids) == ["l5", "l2"]
    assert found[1] == pytest.approx([0.993884, 0.707107])
    assert found[0].alike([0, 1]) == pytest.approx(np.asarray([[1, 0.780869], [0.780869, 1]]))
    assert index.nearest("l4", 2) is None
    assert index.nearest("gone", 2) is None


def test_vectors_of_another_length_are_no_vectors() -> None:
    index = index_of(row(1, "", X), replace(row(2, ""), vector=packed([1, 0])), replace(row(3, ""), vector=b"x"))
    assert np.isnan(cosines(index, X)).tolist() == [False, True, True]
    assert index.candidates("", [1, 0]).semantic() is None
    assert not index_of(row(1, "order")).embedded
    assert index.embedded


async def test_lessons_of_the_past_are_found_by_their_words() -> None:
    past = [Lesson("p1", "Prices", "look at the currency", "success"), Lesson("p2", "Weather", "rain", "failure")]
    index = Indexes(Shelf(), E).once(past)  # type: ignore[arg-type]
    assert first(index, "which currency") == "p1"
    assert index.candidates("", X).semantic() is None
