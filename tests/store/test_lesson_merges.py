"""What every store of lessons keeps to where lessons take over from others, go, or settle work."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from lesson_kit import ALL, E1, entry, ids, vectors

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.lesson_history import Link, Receipt
from mulligan.core.lesson_store import LessonStore, Memory
from mulligan.core.records import Origin
from mulligan.core.work_queue import Claim, Queue


async def test_a_change_keeps_what_the_store_counts(store: LessonStore) -> None:
    await store.add("a", [entry("1", created=5.0), entry("2", "1")])
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.5}))
    (before,) = await store.get("a", ["1"])
    changed = replace(before, title="New", uses=99, support=99, created=9.0, last_used=None, embedder="x", agent_id="b")
    await store.change("a", changed, "edited")
    (after,) = await store.get("a", ["1"])
    assert after == replace(before, title="New")
    assert (after.uses, after.support, after.embedder) == (1, 2, E1)


async def test_merged_parents_are_superseded_and_lose_their_vectors(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    await store.merge("a", entry("m", origin=Origin("merged", parents=("1", "2"))), ["1", "2"])
    assert await ids(store) == ["m", "3"]
    parents = await store.get("a", ["1", "2"])
    assert [(p.state, p.superseded_by, p.embedder) for p in parents] == [("superseded", "m", None)] * 2
    rows = {row.id: row for row in (await store.delta("a", E1, queries=True)).rows}
    assert [(rows[id].vector, rows[id].query_vector) for id in "12"] == [(None, None)] * 2
    assert rows["m"].vector
    assert rows["m"].query_vector
    assert await store.unembedded("a", E1, 10) == ()
    await store.set_vectors("a", E1, {"1": vectors("1"), "gone": vectors("gone")})
    assert (await store.get("a", ["1"]))[0].embedder is None


@pytest.mark.parametrize("state", ["retired", "quarantined", "superseded"])
async def test_a_merge_of_what_is_not_active_changes_nothing(store: LessonStore, state: Any) -> None:
    await store.add("a", [entry("1"), entry("2")])
    (one,) = await store.get("a", ["1"])
    if state == "superseded":
        await store.merge("a", entry("m1"), ["1"])
    else:
        await store.change("a", replace(one, state=state), "retired")
    before = await store.list("a", ALL)
    with pytest.raises(StoreError, match=f"Lesson 1 is {state} now"):
        await store.merge("a", entry("m"), ["2", "1"])
    with pytest.raises(NotFound, match="no lesson 'nobody'"):
        await store.merge("a", entry("m"), ["2", "nobody"])
    with pytest.raises(StoreError, match="must be merged from other lessons"):
        await store.merge("a", entry("m"), [])
    assert await store.list("a", ALL) == before


async def test_unmerge_gives_back_the_parents_and_what_happened_to_them_since(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.5}))
    before = await store.get("a", ["1", "2"])
    await store.merge("a", entry("m"), ["1", "2"])
    await store.add("a", [entry("3", "2")])  # learned again meanwhile
    assert await store.unmerge("a", "m") == ("1", "2")
    after = await store.get("a", ["1", "2"])
    assert after == (replace(before[0], embedder=None), replace(before[1], embedder=None, support=2))
    assert (await store.get("a", ["m"]))[0].state == "retired"
    with pytest.raises(StoreError, match="its merge was already undone"):
        await store.unmerge("a", "m")


async def test_a_tower_of_merges_is_taken_down_from_the_top(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    await store.merge("a", entry("m1"), ["1", "2"])
    await store.merge("a", entry("m2"), ["m1", "3"])
    with pytest.raises(StoreError, match="then merged into m2"):
        await store.unmerge("a", "m1")
    assert await store.unmerge("a", "m2") == ("3", "m1")
    assert await store.unmerge("a", "m1") == ("1", "2")
    assert sorted(await ids(store)) == ["1", "2", "3"]


async def test_what_is_superseded_changes_only_by_unmerge(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.merge("a", entry("m"), ["1"])
    one, two = await store.get("a", ["1", "2"])
    with pytest.raises(StoreError, match="1 is superseded by m: unmerge that one first"):
        await store.change("a", replace(one, state="active"), "restored")
    with pytest.raises(StoreError, match="2 can be superseded only by a merge, or by a fact that replaces it"):
        await store.change("a", replace(two, state="superseded"), "edited")
    for id, parents in (("old", ()), ("new", ("old",))):
        await store.add("a", [entry(id, nature="fact", origin=Origin("written", parents=parents))])
    with pytest.raises(StoreError, match="old is superseded by new: unmerge that one first"):
        await store.change("a", (await store.get("a", ["old"]))[0], "edited")


async def test_a_receipt_counts_its_lessons_once(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    receipt = Receipt("r1", "a", 123.0, "a query with a lone \ud83d", {"1": 0.9, "2": 0.8}, 4)
    await store.recalled(receipt)
    await store.recalled(receipt)
    assert await store.receipt("a", "r1") == receipt
    assert await store.receipt(None, "r1") == receipt
    used = await store.get("a", ["1", "2"])
    assert [lesson.uses for lesson in used] == [1, 1]
    assert used[0].last_used == pytest.approx(time.time(), abs=60)
    told = (await store.history("a", "2"))[-1]
    assert (told.change, told.lesson, told.detail) == ("used", None, {"receipt": "r1", "score": 0.8})


async def test_purged_lessons_leave_only_their_number(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    await store.link("a", [Link("1", "2", 0.9, E1), Link("3", "2", 0.9, E1)])
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.9, "2": 0.8}))
    await store.recalled(Receipt("all", None, 1.0, "q", {"1": 0.9, "2": 0.8}))
    before = await store.delta("a", E1)
    assert await store.purge("a", ["1"]) == 1
    for ask in (store.history, store.links, store.resolve):
        with pytest.raises(NotFound):
            await ask("a", "1")
    assert await store.links("a", "2") == (Link("2", "3", 0.9, E1),)
    assert (await store.receipt("a", "r")).lessons == (await store.receipt(None, "all")).lessons == {"2": 0.8}
    assert [v.detail["with"] for v in await store.history("a", "2") if v.change == "linked"] == ["3"]
    after = await store.delta("a", E1, before.tip)
    assert (list(after.purged), after.rows, after.generation) == ([before.rows[0].n], [], before.generation)
    assert [lesson.id for lesson in await store.as_of("a", time.time())] == ["3", "2"]
    assert list((await store.delta("b", E1, before.tip)).purged) == []
    await store.add("a", [entry("1")])
    newest = (await store.delta("a", E1, after.tip)).rows[0].n
    assert newest > before.rows[-1].n
    await store.purge("a", ["1"])
    await store.add("a", [entry("1")])
    assert (await store.delta("a", E1, after.tip)).rows[0].n > newest
    with pytest.raises(NotFound):
        await store.purge("a", ["2", "gone"])
    assert await ids(store) == ["1", "3", "2"]


async def test_what_was_merged_into_a_purged_lesson_is_retired(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.merge("a", entry("m"), ["1", "2"])
    await store.purge("a", ["m", "2"])
    (one,) = await store.list("a", ALL)
    assert (one.id, one.state, one.superseded_by) == ("1", "retired", None)
    assert (await store.history("a", "1"))[-1].detail == {"why": "the lesson that it was merged into was purged"}


async def test_purging_an_agent_leaves_nothing_of_it_and_all_of_others(memory: Memory) -> None:
    store, queue = memory.lessons, memory.queue
    for agent in ("a", "b"):
        await store.add(agent, [entry("1"), entry("2")])
        await store.link(agent, [Link("1", "2", 0.9, E1)])
        await store.recalled(Receipt("r", agent, 1.0, "q", {"1": 0.9}))
    work = await queue.enqueue("k", "a", {"secret": 1})
    claimed = await queue.claim("me", 60, ["k"])
    assert claimed is not None
    mine, other = await store.delta("a", E1), await store.delta("b", E1)
    assert await store.purge("a", None) == 2
    assert (await store.list("a", ALL), await store.purge("a", None)) == ((), 0)
    for gone in (store.receipt("a", "r"), queue.look("a", work)):
        with pytest.raises(NotFound):
            await gone
    with pytest.raises(LeaseLost, match="purged"):
        await store.add("a", [entry("3")], claim=claimed[1])
    empty = await store.delta("a", E1, mine.tip)
    assert (empty.rows, empty.generation != mine.generation) == ([], True)
    await store.add("a", [entry("1")])
    again = await store.delta("a", E1)
    assert ([row.id for row in again.rows], again.generation) == (["1"], empty.generation)
    assert again.rows[0].n > max(row.n for row in (*mine.rows, *other.rows))
    assert (await store.delta("b", E1, other.tip)).generation == other.generation
    assert (await store.receipt("b", "r")).lessons == {"1": 0.9}
    assert len(await store.links("b", "1")) == 1


async def test_counts(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3", embedder=None)])
    await store.merge("a", entry("m"), ["1"])
    await store.link("a", [Link("2", "3", 0.9, E1)])
    await store.recalled(Receipt("r", "a", 1.0, "q", {"2": 0.9}))
    await store.add("b", [entry("b")])
    counted = await store.counts(None)
    assert list(counted) == ["a", "b"]
    a = counted["a"]
    assert (a["lessons"], a["links"], a["recalls"]) == ({"active": 3, "superseded": 1}, 1, 1)
    assert (a["bytes"]["vectors"], a["bytes"]["terms"]) == (64, 28)
    assert 0 < a["bytes"]["text"] < a["bytes"]["history"]
    assert await store.counts("b") == {"b": counted["b"]}
    assert (await store.counts("nobody"))["nobody"]["lessons"] == {}
    assert await store.verify() == []


async def test_a_write_settles_its_work_or_is_not_made(memory: Memory) -> None:
    store, queue = memory.lessons, memory.queue
    await store.add("a", [entry("1"), entry("2")])

    async def claimed(queue: Queue) -> Claim:
        await queue.enqueue("k", "a", {})
        found = await queue.claim("me", 60, ["k"])
        assert found is not None
        return found[1]

    writes: list[Callable[[Claim], Awaitable[object]]] = [
        lambda claim: store.add("a", [entry("3")], claim=claim, result={"n": 1}),
        lambda claim: store.link("a", [], claim=claim, result={"n": 1}),
        lambda claim: store.set_vectors("a", E1, {}, claim=claim, result={"n": 1}),
        lambda claim: store.merge("a", entry("m"), ["1", "2"], claim=claim, result={"n": 1}),
    ]
    for write in writes:
        claim = await claimed(queue)
        await write(claim)
        done = await queue.look("a", claim.id)
        assert (done.status, done.result) == ("done", {"n": 1})
        with pytest.raises(LeaseLost, match="is now done"):
            await write(claim)
    claim = await claimed(queue)
    with pytest.raises(LeaseLost, match=r"another agent|no longer exists"):
        await store.add("b", [entry("4")], claim=claim)
    with pytest.raises(StoreError, match=r"result of work .* cannot be stored"):
        await store.add("a", [entry("4")], claim=claim, result={1, 2})
    assert (await queue.look("a", claim.id)).status == "running"
    assert await ids(store, None) == ["m", "3"]


async def test_the_parents_of_a_merged_lesson_that_is_held_back_stay_active(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    child = entry("m", state="quarantined", origin=Origin("merged", parents=("1", "2", "3")))
    await store.merge("a", child, ["1", "2", "3"])
    assert sorted(await ids(store)) == ["1", "2", "3"]
    with pytest.raises(StoreError, match="Lesson m is quarantined, so the lessons that it was merged from are active"):
        await store.unmerge("a", "m")
    await store.purge("a", ["3"])
    (held,) = await store.get("a", ["m"])
    await store.change("a", replace(held, state="active"), "released")
    assert await ids(store) == ["m"]
    assert [(p.state, p.superseded_by, p.embedder) for p in await store.get("a", ["1", "2"])] == [
        ("superseded", "m", None)
    ] * 2
    (released,) = await store.get("a", ["m"])
    await store.change("a", replace(released, state="quarantined"), "edited")
    assert sorted(await ids(store)) == ["1", "2"]
    await store.purge("a", ["m"])
    assert sorted(await ids(store)) == ["1", "2"]


async def test_what_is_harmless_does_not_fold_into_what_is_held_back(store: LessonStore) -> None:
    await store.add("a", [entry("1", state="quarantined")])
    (kept,) = await store.add("a", [entry("2", "1")])
    assert (kept.id, kept.folded) == ("2", False)
    (again,) = await store.add("a", [entry("3", "1", state="quarantined")])
    assert (again.id, again.folded) == ("2", True)
    assert await ids(store) == ["2"]
