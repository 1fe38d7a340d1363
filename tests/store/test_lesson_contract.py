"""What every store of lessons keeps to, through the protocol alone. A new store is one more line of `ADDRESSES`."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from lesson_kit import E1, E2, entry, ids, vectors

from mulligan.core.errors import NotFound, StoreError
from mulligan.core.lesson_history import Added, Addition, Link, Receipt
from mulligan.core.lesson_store import LessonStore
from mulligan.core.lessons import Selection
from mulligan.core.records import Json, Lesson, Origin


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
        nature="fact",
        project="project",
        subject="subject",
        confirmed=False,
    )
    assert await store.add("a", [Addition(lesson, "f", b"terms", vectors("l1"))]) == (Added("l1"),)
    assert await store.get("a", ["l1"]) == (replace(lesson, agent_id="a", score=None),)


async def test_a_lesson_that_cannot_be_json_is_refused_and_nothing_of_its_batch_is_kept(store: LessonStore) -> None:
    with pytest.raises(StoreError, match=r"Lesson bad cannot be stored: Lesson.context.when"):
        await store.add("a", [entry("good"), entry("bad", context={"when": {1, 2}})])
    await store.add("a", [entry("first")])
    with pytest.raises(StoreError, match="'first' already exists"):
        await store.add("a", [entry("good"), entry("first", "other words")])
    assert await ids(store) == ["first"]


async def test_duplicates_fold_within_a_batch_and_against_all_states(store: LessonStore) -> None:
    kept = await store.add("a", [entry("1"), entry("2", "1", support=2), entry("3")])
    assert kept == (Added("1"), Added("1", folded=True), Added("3"))
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, state="retired"), "retired")
    assert await store.add("a", [entry("4", "1")]) == (Added("1", folded=True),)
    (one,) = await store.get("a", ["1"])
    assert (one.support, one.state) == (4, "retired")
    told = (await store.history("a", "1"))[-1]
    assert (told.change, told.lesson, told.detail["id"], told.detail["query"]) == ("folded", one, "4", "task of 4")


async def test_without_folding_duplicates_stay_and_a_later_one_folds_into_the_oldest(store: LessonStore) -> None:
    assert await store.add("a", [entry("1"), entry("2", "1")], fold=False) == (Added("1"), Added("2"))
    assert await store.add("a", [entry("3", "1")]) == (Added("1", folded=True),)


async def test_a_duplicate_folds_into_the_active_one(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    await store.merge("a", entry("m", "1"), ["1", "2"])
    assert await store.add("a", [entry("3", "1")]) == (Added("m", folded=True),)


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
    assert await store.add("a", [entry("2", "newer")]) == (Added("1", folded=True),)
    assert await store.add("a", [entry("3", "1")]) == (Added("3"),)


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
    assert (third.rows, third.tip >= second.tip, third.generation) == ([], True, first.generation)
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
    with pytest.raises(StoreError, match=r"4 bytes do not match the embedder embedder-2: its vectors here have 16"):
        await store.set_vectors("a", E2, {"1": {"lesson": b"1234"}})
    with pytest.raises(StoreError, match="specify their embedder"):
        await store.add("a", [replace(entry("3"), lesson=entry("3", embedder=None).lesson)])


async def test_unembedded_are_the_oldest_active_ones(store: LessonStore) -> None:
    made = [entry(str(n), embedder=[None, E2][n % 2]) for n in range(6)]
    await store.add("a", made)
    await store.add("b", [entry("b", embedder=None)])
    (zero,) = await store.get("a", ["0"])
    await store.change("a", replace(zero, state="retired"), "retired")
    assert [lesson.id for lesson in await store.unembedded("a", E1, 3)] == ["1", "2", "3"]
    assert [lesson.id for lesson in await store.unembedded(None, E2, 10)] == ["2", "4", "b"]


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
    with pytest.raises(NotFound, match="'a' matches several lessons: ab, abc, abd"):
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


# --- facts --------------------------------------------------------------------------------------------------------


def fact(id: str, says: str = "", *, parents: tuple[str, ...] = (), **fields: Any) -> Addition:
    origin = Origin("extracted", "e", 1, parents=parents)
    named: dict[str, Any] = {"project": "p", "subject": "s", "origin": origin, **fields}
    return entry(id, says, nature="fact", **named)


def keyed(addition: Addition, *keys: str) -> Addition:
    return replace(addition, keys=keys)


async def test_facts_are_listed_by_project_and_key(store: LessonStore) -> None:
    of_q = keyed(fact("3", project="q"), "k")
    await store.add("a", [entry("1"), keyed(fact("2"), "k", "m"), of_q, keyed(fact("4"), "m"), fact("5")])
    await store.add("b", [keyed(fact("6"), "k")])
    assert await ids(store, nature="strategy") == ["1"]
    assert await ids(store, nature="fact") == ["5", "4", "3", "2"]
    assert await ids(store, nature="fact", project="p") == ["5", "4", "2"]
    assert await ids(store, project="p", keys=["k"]) == ["2"]
    assert await ids(store, keys=["k", "m", "none"]) == ["4", "3", "2"]
    assert await ids(store, keys=[]) == []
    rows = {row.id: (row.fact, row.project) for row in (await store.delta("a", None)).rows if row.id < "5"}
    assert rows == {"1": (False, ""), "2": (True, "p"), "3": (True, "q"), "4": (True, "p")}


async def test_a_change_of_text_takes_its_own_keys_and_a_purge_removes_them(store: LessonStore) -> None:
    await store.add("a", [keyed(fact("1"), "old"), keyed(fact("2"), "old")])
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, to_check="why"), "doubted")
    assert await ids(store, keys=["old"]) == ["2", "1"]
    await store.change("a", replace(one, content="new"), "edited", entry=keyed(fact("1", "new"), "new"))
    assert (await ids(store, keys=["old"]), await ids(store, keys=["new"])) == (["2"], ["1"])
    await store.purge("a", ["1"])
    await store.purge("a", None)
    await store.add("a", [keyed(fact("3"), "other")])
    assert await ids(store, keys=["old", "new"]) == []
    assert await store.verify() == []


async def test_a_context_can_be_changed_in_the_whole_history(store: LessonStore) -> None:
    secret: dict[str, Any] = {"seen": "secret", "kept": 1}
    await store.add("a", [fact("1", context=secret)])
    (one,) = await store.get("a", ["1"])
    await store.change("a", replace(one, to_check="why"), "doubted")
    before = await store.history("a", "1")

    def without(context: Mapping[str, Json]) -> Mapping[str, Json]:
        return {name: value for name, value in context.items() if name != "seen"}

    assert await store.redact("a", "1", without)
    assert not await store.redact("a", "1", without)
    after = await store.history("a", "1")
    assert [one.change for one in after] == [one.change for one in before]
    assert [one.lesson and one.lesson.context for one in after] == [{"kept": 1}, {"kept": 1}]
    assert "secret" not in str(await store.archive(None))
    (left,) = await store.get("a", ["1"])
    assert left == replace(one, to_check="why", context={"kept": 1})
    with pytest.raises(NotFound):
        await store.redact("b", "1", without)
    assert await store.verify() == []


async def test_a_fact_supersedes_those_that_it_names_and_unmerge_brings_them_back(store: LessonStore) -> None:
    await store.add("a", [fact("1"), fact("2")])
    await store.add("a", [fact("3", parents=("1",))])
    assert await ids(store) == ["3", "2"]
    (old,) = await store.get("a", ["1"])
    assert (old.state, old.superseded_by, old.embedder) == ("superseded", "3", None)
    told = (await store.history("a", "1"))[-1]
    assert (told.change, told.detail) == ("superseded", {"into": "3"})
    assert await store.verify() == []
    assert await store.unmerge("a", "3") == ("1",)
    assert await ids(store) == ["2", "1"]


async def test_a_fact_that_is_held_back_supersedes_when_it_is_released(store: LessonStore) -> None:
    await store.add("a", [fact("1"), fact("2", parents=("1",), state="quarantined")])
    assert await ids(store) == ["1"]
    (held,) = await store.get("a", ["2"])
    await store.change("a", replace(held, state="active"), "released")
    assert await ids(store) == ["2"]


async def test_a_fact_does_not_fold_into_one_that_was_superseded(store: LessonStore) -> None:
    await store.add("a", [fact("1", "old"), fact("2", "new", parents=("1",))])
    assert await store.add("a", [fact("3", "old", parents=("2",))]) == (Added("3"),)
    assert await ids(store) == ["3"]


async def test_folding_confirms_a_fact_and_never_the_other_way(store: LessonStore) -> None:
    await store.add("a", [fact("1", confirmed=False, outcome="failure")])
    await store.add("a", [fact("2", "1")])
    await store.add("a", [fact("3", "1", confirmed=False)])
    (one,) = await store.get("a", ["1"])
    assert (one.confirmed, one.outcome, one.support) == (True, "success", 3)
