"""What every kind of store keeps, in what order, and what it refuses: through the protocol alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from lesson_kit import ADDRESSES, KINDS

from mulligan.core.benchmarks import BenchRun, BenchStore, CaseResult
from mulligan.core.episode import Acted, Evaluated, Resumed, Stopped
from mulligan.core.errors import InvalidInput, LeaseLost, NotFound, StoreError
from mulligan.core.lesson_store import LessonStore
from mulligan.core.protocols import Lease, Store
from mulligan.core.records import Attempt, Episode, Feedback, Stop, Task
from mulligan.core.work_queue import Queue
from mulligan.store import open_store

Open = Callable[[], Store]


@pytest.fixture(params=KINDS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens a store of this kind, the same one each time."""
    address = ADDRESSES[request.param](tmp_path)
    return lambda: open_store(address)


@pytest.fixture
async def store(opened: Open) -> AsyncIterator[Store]:
    async with opened() as store:
        yield store


async def started(store: Store, id: str, run: str = "") -> Lease:
    await store.create(Episode(id, Task(f"task of {id}"), run=run))
    return await store.acquire(id, "me", 60)


async def test_it_is_a_store_with_all_its_parts(store: Store) -> None:
    assert isinstance(store, Store)
    assert isinstance(store.memory.lessons, LessonStore)
    assert isinstance(store.memory.queue, Queue)
    assert isinstance(store.benches, BenchStore)


async def test_two_handles_are_on_one_store_until_the_last_is_closed(opened: Open) -> None:
    first, second = opened(), opened()
    await first.create(Episode("e", Task("p")))
    await first.close()
    assert (await second.load("e")).id == "e"
    with pytest.raises(StoreError, match="was closed"):
        await first.load("e")
    await second.close()


async def test_closing_the_memory_closes_the_store(opened: Open) -> None:
    store = opened()
    await store.memory.close()
    with pytest.raises(StoreError, match="was closed"):
        await store.list()


async def test_a_benchmark_run_with_its_results_and_its_lease(store: Store) -> None:
    benches = store.benches
    run = BenchRun("b1", "humaneval", 1.0, {"trials": 2}, ("x", "y"), {"data": "sha"})
    await benches.begin(run)
    with pytest.raises(StoreError, match="Run 'b1' already exists"):
        await benches.begin(run)
    await benches.begin(replace(run, id="b2"))
    assert [one.id for one in await benches.runs()] == ["b2", "b1"]
    assert await benches.run("b1") == run
    with pytest.raises(NotFound, match="matches several benchmark runs: b1, b2"):
        await benches.run("b")
    for unknown in ("", "c"):
        with pytest.raises(NotFound, match="No benchmark run begins with"):
            await benches.run(unknown)
    later, earlier = CaseResult(2, "y", "failed"), CaseResult(1, "x", "error")
    for result in (later, earlier, replace(earlier, status="solved")):
        await benches.settle("b1", result)
    assert await benches.results("b1") == (replace(earlier, status="solved"), later)
    with pytest.raises(NotFound):
        await benches.settle("none", later)
    mine = await benches.acquire("b1", "me", 60)
    with pytest.raises(LeaseLost, match="Benchmark run b1 is in use by me"):
        await benches.acquire("b1", "you", 60)
    await benches.renew(mine, 60)
    await benches.release(mine)
    assert (await benches.acquire("b1", "you", 60)).fence == mine.fence + 1


async def test_the_oldest_answer_to_a_request_is_found_again(store: Store) -> None:
    for id, said in (("e", "first"), ("f", "second")):
        lease = await started(store, id)
        for key in ("trial.1/act/model.actor#1", "trial.1/act/tool.search#1"):
            await store.begin_step(lease, key, "q", f"hash {key[12:]}")
            await store.finish_step(lease, key, said)
    assert await store.benches.answered("model.actor", "hash model.actor#1") == ("first",)
    assert await store.benches.answered("tool.search", "hash tool.search#1") == ()
    assert await store.benches.answered("model.actor", "another") == ()


async def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    store = open_store(tmp_path / "deep" / "er" / "m.db")
    assert not (tmp_path / "deep").exists()
    assert await store.list() == ()
    assert (tmp_path / "deep" / "er" / "m.db").is_file()
    await store.close()


async def test_an_episode_is_the_fold_of_its_events(store: Store) -> None:
    lease = await started(store, "e")
    await store.append(lease, 0, Acted(1, Attempt("x"), seconds=1.5))
    await store.append(lease, 1, Stopped(Stop("interrupted")))
    assert (await store.load("e")).stop == Stop("interrupted")
    await store.append(lease, 2, Resumed())
    await store.append(lease, 3, Evaluated(1, Feedback(True)))
    await store.append(lease, 4, Stopped(Stop("solved"), seconds=0.5))
    episode = await store.load("e")
    assert (episode.solved, episode.seconds, len(episode.trials)) == (True, 2.0, 1)
    assert [type(event).__name__ for event in await store.events("e")] == [
        "Acted",
        "Stopped",
        "Resumed",
        "Evaluated",
        "Stopped",
    ]


async def test_an_event_number_is_given_once_and_without_gaps(store: Store) -> None:
    lease = await started(store, "e")
    await store.append(lease, 0, Acted(1, Attempt("x")))
    with pytest.raises(StoreError, match="Event 0 of episode e is taken: the next number is 1"):
        await store.append(lease, 0, Acted(1, Attempt("y")))
    with pytest.raises(StoreError, match="Event 2 of episode e would leave a gap: the next number is 1"):
        await store.append(lease, 2, Evaluated(1, Feedback(True)))
    assert await store.events("e") == (Acted(1, Attempt("x")),)


async def test_an_id_is_given_once(store: Store) -> None:
    await started(store, "e")
    with pytest.raises(StoreError, match="Episode 'e' already exists"):
        await store.create(Episode("e", Task("another")), {"f": "text"})
    assert (await store.load("e")).task.prompt == "task of e"
    assert await store.files("e") == {}


async def test_an_episode_is_created_as_it_begins(store: Store) -> None:
    with pytest.raises(StoreError, match="created as it begins"):
        await store.create(Episode("e", Task("p"), stop=Stop("solved")))


async def test_what_cannot_be_kept_is_reported_and_changes_nothing(store: Store) -> None:
    lease = await started(store, "e")
    with pytest.raises(StoreError, match=r"Event 0 of episode e cannot be stored: Acted\.seconds: nan"):
        await store.append(lease, 0, Acted(1, Attempt("x"), seconds=float("nan")))
    with pytest.raises(InvalidInput, match="a set is not JSON"):
        await store.begin_step(lease, "model#1", {1}, "hash")
    await store.begin_step(lease, "model#1", 1, "hash")
    with pytest.raises(StoreError, match="The result of the step model#1 cannot be stored"):
        await store.finish_step(lease, "model#1", float("inf"))
    assert [row.done for row in await store.steps("e")] == [False]
    assert await store.events("e") == ()


async def test_files_are_kept_with_their_episode_and_stored_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "m.db")
    text = "assert f(1) == 2  # é \udcff\r\n" * 20_000
    for id in ("a", "b", "c"):
        await store.create(Episode(id, Task("p")), {"tests.py": text, f"{id}.md": id})
    assert await store.files("b") == {"b.md": "b", "tests.py": text}
    await store.close()
    assert (tmp_path / "m.db").stat().st_size < 2 * len(text)


async def test_listing_is_newest_first_and_by_run(store: Store) -> None:
    for id, run in (("a", "r1"), ("b", "r2"), ("c", "r1")):
        await started(store, id, run)
    await store.append(await store.acquire("a", "me", 60), 0, Acted(1, Attempt("x")))
    assert [episode.id for episode in await store.list()] == ["c", "b", "a"]
    assert [episode.id for episode in await store.list(limit=2)] == ["c", "b"]
    assert [(episode.id, len(episode.trials)) for episode in await store.list(run="r1")] == [("c", 0), ("a", 1)]
    assert await store.list(run="r") == ()


async def test_a_beginning_of_an_id_or_a_run_is_enough(store: Store) -> None:
    for id, run in (("e1", "abc"), ("e2", "abc"), ("f1", "abd"), ("g1", ""), ("g12", "")):
        await started(store, id, run)
    assert await store.resolve("abc") == ("e1", "e2")
    assert await store.resolve("e") == ("e1", "e2")
    assert await store.resolve("e2") == ("e2",)
    assert await store.resolve("abd") == ("f1",)
    assert await store.resolve("g1") == ("g1",)
    with pytest.raises(NotFound, match="'ab' matches several runs: abc, abd"):
        await store.resolve("ab")
    with pytest.raises(NotFound, match="No run or episode begins with 'x%'"):
        await store.resolve("x%")
    with pytest.raises(StoreError):
        await store.resolve("\udcff")


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    for asked in (store.load, store.events, store.files, store.steps):
        with pytest.raises(NotFound, match="no episode 'x'"):
            await asked("x")
    with pytest.raises(NotFound):
        await store.acquire("x", "me", 60)


async def test_steps_keep_requests_whole_and_the_order_of_their_beginning(store: Store) -> None:
    lease = await started(store, "e")
    request = {"z": [1, {"ü": None}], "a": "\udcff"}
    await store.begin_step(lease, "b#1", request, "h1")
    await store.begin_step(lease, "a#1", 2, "h2")
    await store.finish_step(lease, "b#1", ["done"])
    with pytest.raises(StoreError, match="b#1 of episode e is not in progress"):
        await store.finish_step(lease, "b#1", ["twice"])
    with pytest.raises(StoreError, match="c#1"):
        await store.finish_step(lease, "c#1", None)
    await store.begin_step(lease, "b#1", request, "h1")
    first, second = await store.steps("e")
    assert (first.key, first.done) == ("a#1", False)
    assert (second.key, second.done, second.request, second.request_hash) == ("b#1", False, request, "h1")


async def test_a_step_begun_with_another_request_drops_what_rests_on_it(store: Store) -> None:
    lease, other = await started(store, "e"), await started(store, "other")
    for key in ("a#1", "b#1", "c#1"):
        await store.begin_step(lease, key, key, key)
        await store.finish_step(lease, key, key)
    await store.begin_step(other, "a#1", "x", "x")
    await store.finish_step(other, "a#1", "x")
    await store.begin_step(lease, "b#1", "new", "new")
    assert [(row.key, row.done, row.request) for row in await store.steps("e")] == [
        ("a#1", True, "a#1"),
        ("b#1", False, "new"),
    ]
    assert [row.done for row in await store.steps("other")] == [True]


async def test_a_write_is_finished_even_when_its_caller_is_cancelled(store: Store) -> None:
    lease = await started(store, "e")
    for seq in range(20):
        task = asyncio.create_task(store.append(lease, seq, Acted(seq + 1, Attempt("x"))))
        await asyncio.sleep(0)  # it has handed its work to the writer
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(await store.events("e")) == seq + 1


async def test_many_at_once_lose_nothing(store: Store) -> None:
    async def one(id: str) -> None:
        lease = await started(store, id)
        for seq in range(10):
            await store.append(lease, seq, Acted(seq + 1, Attempt(id)))
            await store.renew(lease, 60)

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(f"e{n}") for n in range(20)))
    for n in range(20):
        assert len(await store.events(f"e{n}")) == 10


async def test_a_closed_store_says_so(opened: Open) -> None:
    store = opened()
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="was closed"):
        await store.list()


def test_one_store_serves_one_event_loop_after_another(opened: Open) -> None:
    store = opened()
    asyncio.run(store.create(Episode("e", Task("p"))))
    assert asyncio.run(store.load("e")).id == "e"
    asyncio.run(store.close())


# --- leases -----------------------------------------------------------------------------------------------------


async def test_a_fresh_lease_keeps_others_out(store: Store) -> None:
    await started(store, "e")
    with pytest.raises(LeaseLost, match=r"in use by me\. Let it finish"):
        await store.acquire("e", "you", 60)


async def test_a_lease_that_ran_out_can_be_taken_and_its_holder_changes_nothing_more(store: Store) -> None:
    mine = await started(store, "e")
    await store.begin_step(mine, "model#1", 1, "h")
    await store.renew(mine, 0)
    await store.append(mine, 0, Acted(1, Attempt("still mine while nobody takes it")))
    yours = await store.acquire("e", "you", 0)
    assert yours.fence == mine.fence + 1
    for write in (
        store.append(mine, 1, Evaluated(1, Feedback(True))),
        store.begin_step(mine, "model#2", 1, "h"),
        store.finish_step(mine, "model#1", 1),
        store.renew(mine, 60),
        store.release(mine),
    ):
        with pytest.raises(LeaseLost, match="now driven by you: me can no longer write"):
            await write
    assert len(await store.events("e")) == 1
    assert [(row.key, row.done) for row in await store.steps("e")] == [("model#1", False)]
    await store.append(yours, 1, Evaluated(1, Feedback(True)))


async def test_a_renewed_lease_stays_fresh_and_a_released_one_is_free(store: Store) -> None:
    mine = await started(store, "e")
    await store.renew(mine, 0)
    await store.renew(mine, 60)
    with pytest.raises(LeaseLost):
        await store.acquire("e", "you", 60)
    await store.release(mine)
    with pytest.raises(LeaseLost, match="was released"):
        await store.append(mine, 0, Acted(1, Attempt("x")))
    assert (await store.acquire("e", "you", 60)).fence == mine.fence + 1
