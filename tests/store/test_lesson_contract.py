"""What every store of lessons keeps to, through the protocol alone. A new store is one more line of `STORES`."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lesson_kit import E1, E2, STORES, Memory, entry, vectors

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.lessons import Entry, Kept, LessonStore, Link, Receipt, Selection
from mulligan.core.queued import Claim, Queue
from mulligan.core.records import Lesson, Origin

ALL = Selection(states=("active", "retired", "superseded", "quarantined"), limit=None)


@pytest.fixture(params=STORES)
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    opened = STORES[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def store(memory: Memory) -> LessonStore:
    assert isinstance(memory.lessons, LessonStore)
    return memory.lessons


async def ids(store: LessonStore, agent: str | None = "a", **which: Any) -> list[str]:
    return [lesson.id for lesson in await store.list(agent, Selection(**which))]


async def test_every_field_comes_back(store: LessonStore) -> None:
    lesson = Lesson(
        "l1",
        "标题 with a lone \ud83d surrogate",
        "content\0\n",
        "failure",
        "description",
        agent_id="someone else",
        score=0.5,
        query="query",
        experience="x1",
        origin=Origin("extracted", "e1", 2, (1, 3), (), "model", "reason"),
        confidence=0.75,
        created=1000.5,
        last_used=2000.5,
        uses=7,
        support=3,
        tags=("t", "标签"),
        kind="kind",
        context={"deep": [1, {"a": None}]},
        embedder=E1,
        state="quarantined",
        flags=("instructs",),
    )
    assert await store.add("a", [Entry(lesson, "f", b"terms", vectors("l1"))]) == (Kept("l1"),)
    assert await store.get("a", ["l1"]) == (replace(lesson, agent_id="a", score=None),)


async def test_a_lesson_that_cannot_be_json_is_refused_and_nothing_of_its_batch_is_kept(store: LessonStore) -> None:
    with pytest.raises(StoreError, match=r"Lesson bad cannot be kept: Lesson.context.when"):
        await store.add("a", [entry("good"), entry("bad", context={"when": {1, 2}})])
    await store.add("a", [entry("first")])
    with pytest.raises(StoreError, match="'first' already"):
        await store.add("a", [entry("good"), entry("first", "other words")])
    assert await ids(store) == ["first"]


async def test_duplicates_fold_within_a_batch_and_against_all_states(store: LessonStore) -> None:
    kept = await store.add("a", [entry("1"), entry("2", "1", support=2), entry("3")])
    assert kept == (Kept("1"), Kept("1", folded=True), Kept("3"))
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, state="retired"), "retired")
    assert await store.add("a", [entry("4", "1")]) == (Kept("1", folded=True),)
    (one,) = await store.get("a", ["1"])
    assert (one.support, one.state) == (4, "retired")
    told = (await store.history("a", "1"))[-1]
    assert (told.change, told.lesson, told.detail["id"], told.detail["query"]) == ("folded", one, "4", "task of 4")


async def test_without_folding_duplicates_stay_and_a_later_one_folds_into_the_oldest(store: LessonStore) -> None:
    assert await store.add("a", [entry("1"), entry("2", "1")], fold=False) == (Kept("1"), Kept("2"))
    assert await store.add("a", [entry("3", "1")]) == (Kept("1", folded=True),)


async def test_a_duplicate_folds_into_the_active_one(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.merge("a", entry("m", "1"), ["1", "2"])
    assert await store.add("a", [entry("3", "1")]) == (Kept("m", folded=True),)


async def test_a_change_keeps_what_the_store_counts(store: LessonStore) -> None:
    await store.add("a", [entry("1", created=5.0), entry("2", "1")])
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.5}))
    (before,) = await store.get("a", ["1"])
    changed = replace(before, title="New", uses=99, support=99, created=9.0, last_used=None, embedder="x", agent_id="b")
    await store.change("a", changed, "edited")
    (after,) = await store.get("a", ["1"])
    assert after == replace(before, title="New")
    assert (after.uses, after.support, after.embedder) == (1, 2, E1)


async def test_a_change_of_text_takes_its_own_terms_and_vectors(store: LessonStore) -> None:
    await store.add("a", [entry("1")])
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, content="new"), "edited", entry=entry("1", "new", embedder=None))
    (row,) = (await store.delta("a", E1)).rows
    assert (row.terms, row.vector) == (b"terms new", None)
    assert [lesson.id for lesson in await store.unembedded("a", E1, 10)] == ["1"]
    await store.change("a", replace(one, content="newer"), "edited", entry=entry("1", "newer", embedder=E2))
    (row,) = (await store.delta("a", E2)).rows
    assert (row.terms, row.vector) == (b"terms newer", vectors("1")["lesson"])
    assert await store.add("a", [entry("2", "newer")]) == (Kept("1", folded=True),)
    assert await store.add("a", [entry("3", "1")]) == (Kept("3"),)


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
    with pytest.raises(StoreError, match=f"Lesson 1 is {state} by now"):
        await store.merge("a", entry("m"), ["2", "1"])
    with pytest.raises(NotFound, match="no lesson 'nobody'"):
        await store.merge("a", entry("m"), ["2", "nobody"])
    with pytest.raises(StoreError, match="only be merged from others"):
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
    with pytest.raises(StoreError, match="taken apart already"):
        await store.unmerge("a", "m")


async def test_a_tower_of_merges_is_taken_down_from_the_top(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    await store.merge("a", entry("m1"), ["1", "2"])
    await store.merge("a", entry("m2"), ["m1", "3"])
    with pytest.raises(StoreError, match="merged into m2 in turn"):
        await store.unmerge("a", "m1")
    assert await store.unmerge("a", "m2") == ("3", "m1")
    assert await store.unmerge("a", "m1") == ("1", "2")
    assert sorted(await ids(store)) == ["1", "2", "3"]


async def test_what_is_superseded_changes_only_by_unmerge(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.merge("a", entry("m"), ["1"])
    one, two = await store.get("a", ["1", "2"])
    with pytest.raises(StoreError, match="superseded into m: unmerge that one first"):
        await store.change("a", replace(one, state="active"), "restored")
    with pytest.raises(StoreError, match="Only a merge supersedes"):
        await store.change("a", replace(two, state="superseded"), "edited")


async def test_delta_tells_each_change_once(store: LessonStore) -> None:
    assert (await store.delta("a", E1)).rows == []
    await store.add("a", [entry("1"), entry("2", embedder=None)])
    first = await store.delta("a", E1, queries=True)
    assert [(row.id, row.agent_id, row.experience, row.success) for row in first.rows] == [
        ("1", "a", "x1", True),
        ("2", "a", "x2", True),
    ]
    assert [(row.vector, row.query_vector) for row in first.rows] == [(*vectors("1").values(),), (None, None)]
    assert (await store.delta("a", E1, first.tip)).rows == []
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.5}))
    await store.set_vectors("a", E1, {"2": vectors("2")})
    second = await store.delta("a", E1, first.tip)
    assert [(row.n, row.id, row.uses, row.vector) for row in second.rows] == [
        (first.rows[0].n, "1", 1, vectors("1")["lesson"]),
        (first.rows[1].n, "2", 0, vectors("2")["lesson"]),
    ]
    assert second.rows[0].query_vector is None
    await store.add("b", [entry("3")])
    third = await store.delta("a", E1, second.tip)
    assert (third.rows, third.tip > second.tip, third.generation) == ([], True, first.generation)
    everyone = await store.delta(None, E1, second.tip)
    assert [(row.id, row.agent_id) for row in everyone.rows] == [("3", "b")]


async def test_vectors_of_two_embedders_never_meet(store: LessonStore) -> None:
    await store.add("a", [entry("1", embedder=E1), entry("2", embedder=E2)])
    assert [row.id for row in (await store.delta("a", E1)).rows if row.vector] == ["1"]
    assert [row.id for row in (await store.delta("a", E2)).rows if row.vector] == ["2"]
    assert [row.id for row in (await store.delta("a", None)).rows if row.vector] == []
    assert [lesson.id for lesson in await store.unembedded("a", E2, 10)] == ["1"]
    await store.set_vectors("a", E2, {"1": {"lesson": vectors("1")["lesson"]}})
    row = (await store.delta("a", E2, queries=True)).rows[0]
    assert (row.vector, row.query_vector) == (vectors("1")["lesson"], None)
    with pytest.raises(StoreError, match=r"4 bytes, said to be of embedder-2: its vectors here have 16"):
        await store.set_vectors("a", E2, {"1": {"lesson": b"1234"}})
    with pytest.raises(StoreError, match="name their embedder"):
        await store.add("a", [replace(entry("3"), lesson=entry("3", embedder=None).lesson)])


async def test_unembedded_are_the_oldest_active_ones(store: LessonStore) -> None:
    made = [entry(str(n), embedder=[None, E2][n % 2]) for n in range(6)]
    await store.add("a", made)
    await store.add("b", [entry("b", embedder=None)])
    (zero,) = await store.get("a", ["0"])
    await store.change("a", replace(zero, state="retired"), "retired")
    assert [lesson.id for lesson in await store.unembedded("a", E1, 3)] == ["1", "2", "3"]
    assert [lesson.id for lesson in await store.unembedded(None, E2, 10)] == ["2", "4", "b"]


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


async def test_links_are_seen_from_both_ends_nearest_first(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2"), entry("3")])
    await store.link("a", [Link("2", "1", 0.8, E1), Link("1", "3", 0.9, E1)])
    await store.link("a", [Link("1", "2", 0.95, E1)])
    assert await store.links("a", "1") == (Link("1", "2", 0.95, E1), Link("1", "3", 0.9, E1))
    assert await store.links("a", "2") == (Link("2", "1", 0.95, E1),)
    assert [v.detail["with"] for v in await store.history("a", "3") if v.change == "linked"] == ["1"]
    with pytest.raises(StoreError, match="with itself"):
        await store.link("a", [Link("1", "1", 1.0, E1)])


async def test_what_is_listed(store: LessonStore) -> None:
    await store.add("a", [entry(str(n), tags=("even",) if n % 2 == 0 else ()) for n in range(6)])
    five = replace((await store.get("a", ["5"]))[0], outcome="failure", content="Über 50 % 失败")
    await store.change("a", five, "edited")
    assert await ids(store) == ["5", "4", "3", "2", "1", "0"]
    assert await ids(store, limit=2, offset=1) == ["4", "3"]
    assert await ids(store, outcome="failure") == ["5"]
    assert await ids(store, tag="even", limit=2) == ["4", "2"]
    assert await ids(store, tag="even", limit=2, offset=1) == ["2", "0"]
    assert await ids(store, text="über 50 %") == await ids(store, text="失败") == ["5"]
    assert await ids(store, text="TASK OF 3") == ["3"]
    await store.change("a", replace(five, state="retired"), "retired", detail={"why": "wrong"})
    assert (await store.history("a", "5"))[-1].detail == {"why": "wrong"}
    assert await ids(store, states=("retired",)) == ["5"]
    assert await ids(store, states=("active", "retired"), limit=2) == ["5", "4"]
    assert await ids(store, states=()) == []
    assert len(await ids(store, limit=None)) == 5


async def test_ids_by_their_beginning(store: LessonStore) -> None:
    await store.add("a", [entry("abc"), entry("abd"), entry("ab")])
    assert await store.resolve("a", "abc") == "abc"
    assert await store.resolve("a", "ab") == "ab"
    await store.add("b", [entry("xyz")])
    assert await store.resolve(None, "x") == "xyz"
    with pytest.raises(NotFound, match="'a' begins several lessons: ab, abc, abd"):
        await store.resolve("a", "a")
    with pytest.raises(NotFound, match="no lesson 'x'"):
        await store.resolve("a", "x")


async def test_history_and_as_of_follow_a_lesson_through_everything(store: LessonStore) -> None:
    moments: list[tuple[float, Any]] = []

    async def now() -> None:
        moments.append((time.time(), await store.list("a", Selection(limit=None))))

    await now()
    await store.add("a", [entry("1", uses=3, last_used=5.0), entry("2")])
    await now()
    await store.recalled(Receipt("r", "a", 1.0, "q", {"1": 0.5}))
    await store.set_vectors("a", E2, {"1": vectors("1")})
    await now()
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, title="Edited"), "edited")
    await now()
    await store.merge("a", entry("m"), ["1", "2"])
    await now()
    await store.unmerge("a", "m")
    await now()
    await store.change("a", replace((await store.get("a", ["1"]))[0], state="retired"), "retired")
    await now()
    for at, then in moments:
        assert await store.as_of("a", at) == then
    assert await store.as_of(None, moments[2][0]) == moments[2][1]
    changes = [version.change for version in await store.history("a", "1")]
    assert changes == ["added", "used", "embedded", "edited", "merged", "unmerged", "retired"]
    assert [len(then) for _, then in moments] == [0, 2, 2, 2, 1, 2, 1]


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
    await store.add("a", [entry("1")])
    assert (await store.delta("a", E1, after.tip)).rows[0].n > before.rows[-1].n
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
        with pytest.raises(LeaseLost, match="is done by now"):
            await write(claim)
    claim = await claimed(queue)
    with pytest.raises(LeaseLost, match="another agent's"):
        await store.add("b", [entry("4")], claim=claim)
    with pytest.raises(StoreError, match=r"result of work .* cannot be kept"):
        await store.add("a", [entry("4")], claim=claim, result={1, 2})
    assert (await queue.look("a", claim.id)).status == "running"
    assert await ids(store, None) == ["m", "3"]
