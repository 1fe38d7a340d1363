"""Lists of episodes to choose from: whose they are, page by page, by the beginning of an id."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from lesson_kit import ADDRESSES, KINDS

from mulligan.core.benchmarks import BenchRun
from mulligan.core.episode import Acted, Evaluated, Forked, Rated, Resumed, Stopped
from mulligan.core.errors import NotFound
from mulligan.core.protocols import Brief, Store
from mulligan.core.records import Attempt, Episode, Feedback, Rating, Stop, StopReason, Task
from mulligan.store import open_store


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Episodes a1 b1 a2 b2 ... of the agents a and b, and one of nobody's."""
    store = open_store(ADDRESSES[request.param](tmp_path))
    for n in range(1, 6):
        for agent in "ab":
            await store.create(Episode(f"{agent}{n}", Task(f"task {n}"), run=f"r{n}", agent=agent, started=float(n)))
    await store.create(Episode("nobody", Task("p")))
    yield store
    await store.close()


async def test_a_brief_says_what_an_episode_was_about_and_how_it_went(store: Store) -> None:
    await store.create(Episode("long", Task("x" * 1000), run="r", agent="a", started=7.5))
    lease = await store.acquire("long", "me", 60)
    await store.append(lease, 0, Acted(1, Attempt("y")))
    assert (await store.briefs(limit=1))[0] == Brief("long", "r", "a", 7.5, "x" * 200, 1)
    await store.append(lease, 1, Stopped(Stop("interrupted")))
    assert (await store.briefs(limit=1))[0].stop == "interrupted"
    await store.append(lease, 2, Resumed())
    assert (await store.briefs(limit=1))[0].stop is None
    assert not (await store.briefs(limit=1))[0].judged
    await store.append(lease, 3, Evaluated(1, Feedback(False)))
    await store.append(lease, 4, Acted(2, Attempt('{"event":"acted","event":"stopped"}')))
    await store.append(lease, 5, Evaluated(2, Feedback(True)))
    await store.append(lease, 6, Stopped(Stop("solved", "well")))
    (brief,) = await store.briefs(limit=1)
    assert (brief.trials, brief.stop, brief.judged) == (2, "solved", True)


async def test_an_agent_s_episodes_are_listed_alone(store: Store) -> None:
    assert [brief.id for brief in await store.briefs(agent="a")] == ["a5", "a4", "a3", "a2", "a1"]
    assert [episode.id for episode in await store.list(agent="b", limit=2)] == ["b5", "b4"]
    assert [episode.id for episode in await store.list(run="r3", agent="b")] == ["b3"]
    assert [brief.id for brief in await store.briefs(agent="")] == ["nobody"]
    assert await store.briefs(agent="c") == ()


async def test_pages_follow_each_other_though_episodes_begin_meanwhile(store: Store) -> None:
    first = await store.briefs(agent="a", limit=2)
    await store.create(Episode("a6", Task("p"), agent="a"))
    second = await store.briefs(agent="a", before=first[-1].id, limit=2)
    third = await store.briefs(agent="a", before=second[-1].id, limit=2)
    assert [brief.id for page in (first, second, third) for brief in page] == ["a5", "a4", "a3", "a2", "a1"]
    assert await store.briefs(agent="a", before="a1") == ()


async def test_a_list_is_searched_and_filtered_by_the_store(store: Store) -> None:
    async def found(**wanted: Any) -> list[str]:
        return [brief.id for brief in await store.briefs(**wanted)]

    for n, reason in (("1", "solved"), ("2", "error"), ("3", "exhausted")):
        lease = await store.acquire(f"a{n}", "me", 60)
        await store.append(lease, 0, Acted(1, Attempt("y")))
        await store.append(lease, 1, Evaluated(1, Feedback(reason == "solved")))
        await store.append(lease, 2, Stopped(Stop(cast(StopReason, reason))))
        await store.append(lease, 3, Rated(Rating(1.0)))
    assert await found(stops=["solved"]) == ["a1"]
    assert await found(stops=["error", "exhausted"], agent="a") == ["a3", "a2"]
    assert await found(stops=[""], agent="a") == ["a5", "a4"]
    assert await found(text="TASK 3") == ["b3", "a3"]
    assert await found(text="a3") == ["a3"]
    assert await found(text="%") == await found(text="_") == []
    assert await found(text="task", stops=["solved", "error"], before="a2") == ["a1"]
    await store.benches.begin(BenchRun("r5", "own", 1.0, {}, (), {}))
    assert await found(text="task 5") == ["b5", "a5"]
    assert await found(text="task 5", benches=False) == []


async def test_a_revision_says_whether_anything_was_recorded(store: Store) -> None:
    seen = [await store.revision()]
    own = [await store.revision("a1")]
    other = await store.revision("b1")

    async def changes() -> bool:
        seen.append(await store.revision())
        own.append(await store.revision("a1"))
        return len(set(seen)) == len(seen) and len(set(own)) == len(own)

    lease = await store.acquire("a1", "me", 60)
    assert await changes()
    await store.begin_step(lease, "trial.1/act/model.actor#1", {}, "hash")
    assert await changes()
    await store.finish_step(lease, "trial.1/act/model.actor#1", {})
    assert await changes()
    await store.append(lease, 0, Acted(1, Attempt("y")))
    assert await changes()
    assert await store.revision() == seen[-1]
    assert await store.revision("b1") == other
    with pytest.raises(NotFound):
        await store.revision("none")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_broken_record_hides_no_other_and_ends_no_page(store: Store, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db", timeout=10)) as db, db:
        db.execute("UPDATE episodes SET record = '{' WHERE id IN ('a4', 'a1')")
    first = await store.briefs(agent="a", limit=2)
    assert [brief.id for brief in first] == ["a5", "a3"]
    assert [brief.id for brief in await store.briefs(agent="a", before="a3", limit=2)] == ["a2"]
    assert [brief.id for brief in await store.briefs(agent="a", before="a4")] == ["a3", "a2"]
    assert [brief.id for brief in await store.briefs(agent="a", text="task")] == ["a5", "a3", "a2"]


async def test_another_agent_s_episode_is_as_unknown_as_none(store: Store) -> None:
    assert (await store.load("a1", agent="a")).id == "a1"
    said: list[str] = []
    for id in ("b1", "none"):
        with pytest.raises(NotFound) as load:
            await store.load(id, agent="a")
        with pytest.raises(NotFound) as page:
            await store.briefs(agent="a", before=id)
        said += [str(error.value).replace(id, "ID") for error in (load, page)]
    assert len(set(said)) == 1
    assert [brief.id for brief in await store.briefs(before="b2")] == ["a2", "b1", "a1"]


async def test_ids_are_found_by_how_they_begin(store: Store) -> None:
    assert await store.ids("a") == ("a5", "a4", "a3", "a2", "a1")
    assert await store.ids("", limit=2) == ("nobody", "b5")
    assert await store.ids("", agent="b", limit=2) == ("b5", "b4")
    assert await store.ids("a", agent="b") == ()
    assert await store.ids("a%") == await store.ids("A") == ()


async def test_agents_are_found_by_how_they_begin(store: Store) -> None:
    for agent in ("ab", "abc", "名"):
        await store.create(Episode(f"of {agent}", Task("p"), agent=agent))
    assert await store.agents() == ("a", "ab", "abc", "b", "名")
    assert await store.agents("ab") == ("ab", "abc")
    assert await store.agents(limit=2) == ("a", "ab")
    assert await store.agents("z") == ()


async def test_a_fork_stays_with_its_agent(store: Store) -> None:
    forked = await store.load("a1")
    await store.copy("a1", "f", "r9", forked.head, {}, Forked(forked.plan))
    assert (await store.ids("f", agent="a"), await store.ids("f", agent="b")) == (("f",), ())


async def test_an_agent_whose_name_is_no_text_that_a_database_takes_is_kept(store: Store) -> None:
    await store.create(Episode("odd", Task("p"), agent="\ud83d"))
    assert (await store.load("odd")).agent == "\ud83d"
    assert (await store.briefs(limit=1))[0].agent == "\ud83d"
