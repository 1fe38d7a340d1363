"""The ledger over the real store: one driver at a time, written before it counts, resumed, forked, branched."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.episode import Acted, Evaluated, Event, Forked, Resumed, Stopped
from mulligan.core.errors import LeaseLost, NotFound, OutOfOrder, StoreError
from mulligan.core.protocols import Lease
from mulligan.core.records import Attempt, Episode, Feedback, Head, Json, Plan, Stop, Task
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Ledger
from mulligan.store.sqlite import SqliteStore

BEGUN = Episode("r.1", Task("Name a prime."), run="r")
WRONG = (Acted(1, Attempt("9")), Evaluated(1, Feedback(False, "3 divides it.")))
PAUSE = Stopped(Stop("interrupted", "cut short"))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "m.db") as store:
        await Ledger(store).begin(BEGUN, {"tests.py": "assert True"})
        yield store


async def record(store: SqliteStore, *events: Event, observers: Any = ()) -> None:
    async with Ledger(store, observers=observers).hold("r.1") as entry:
        for event in events:
            await entry.append(event)


async def test_an_id_is_begun_once(store: SqliteStore) -> None:
    with pytest.raises(StoreError):
        await Ledger(store).begin(BEGUN)
    assert await store.files("r.1") == {"tests.py": "assert True"}


async def test_one_drives_at_a_time(store: SqliteStore) -> None:
    ledger = Ledger(store)
    async with ledger.hold("r.1") as entry:
        for other in (ledger, Ledger(store)):
            with pytest.raises(LeaseLost):
                async with other.hold("r.1"):
                    raise AssertionError("two drivers at once")
        await entry.append(WRONG[0])
    async with Ledger(store).hold("r.1") as entry:
        assert entry.events == [WRONG[0]]
    with pytest.raises(NotFound):
        async with ledger.hold("nobody.1"):
            raise AssertionError("there is no such episode")


async def test_what_is_recorded_is_kept_before_it_counts(store: SqliteStore) -> None:
    kept = list[int]()

    def saw(episode: Episode, event: Event) -> None:
        kept.append(len(episode.trials))
        raise RuntimeError("an observer that fails changes nothing")

    async with Ledger(store, observers=(saw,)).hold("r.1") as entry:
        after = await entry.append(WRONG[0])
        assert after == entry.episode == await store.load("r.1")
        with pytest.raises(OutOfOrder):
            await entry.append(WRONG[0])
        assert (entry.episode, len(await store.events("r.1"))) == (after, 1)
    assert kept == [1]


async def test_a_write_that_fails_does_not_count(store: SqliteStore) -> None:
    async with Ledger(store).hold("r.1") as entry:
        taken_over = await store.acquire("r.1", entry.lease.owner, 60)
        with pytest.raises(LeaseLost):
            await entry.append(WRONG[0])
        assert (entry.events, entry.episode.trials) == ([], ())
        await store.release(taken_over)
    assert await store.events("r.1") == ()


class OneByOne:
    """A store of somebody's own, which writes only one event at a time."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "append_all":
            raise AttributeError(name)
        return getattr(self._inner, name)


@pytest.mark.parametrize("together", [True, False])
async def test_an_event_that_may_wait_is_written_with_what_comes_next(store: SqliteStore, together: bool) -> None:
    seen = list[Event]()
    inner: Any = store if together else OneByOne(store)
    ledger = Ledger(inner, observers=(lambda _, event: seen.append(event),))

    async def done() -> Json:
        assert await store.events("r.1") == WRONG[:1], "before an effect"
        return "done"

    async with ledger.hold("r.1") as entry:
        await entry.append(WRONG[0], later=True)
        assert (entry.waits, len(entry.episode.trials), seen, await store.events("r.1")) == (True, 1, [], ())
        await StoredJournal(entry).step("ask", "what?", done)
        await entry.append(WRONG[1], later=True)
        await entry.append(PAUSE, later=True)
    assert await store.events("r.1") == (*WRONG, PAUSE)
    assert seen == [*WRONG, PAUSE]
    assert await store.holder("r.1") is None
    async with ledger.hold("r.1") as entry:
        assert entry.paused


async def test_what_waits_is_written_however_the_work_ends_or_the_loss_is_told(store: SqliteStore) -> None:
    ledger, leases = Ledger(store), list[Lease]()

    async def fail() -> None:
        async with ledger.hold("r.1") as entry:
            await entry.append(WRONG[0], later=True)
            raise ZeroDivisionError

    async def lose() -> None:
        async with ledger.hold("r.1") as entry:
            await entry.append(WRONG[1], later=True)
            leases.append(await store.acquire("r.1", entry.lease.owner, 60))

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await store.events("r.1") == WRONG[:1]
    with pytest.raises(LeaseLost):
        await lose()
    await store.release(leases[0])
    async with ledger.hold("r.1") as entry:
        assert entry.events == [WRONG[0]]


async def test_an_entry_that_another_held_meanwhile_is_read_again(store: SqliteStore) -> None:
    ledger = Ledger(store)
    async with ledger.hold("r.1") as entry:
        await entry.append(WRONG[0])
    assert ledger.remembered("r.1") == await store.load("r.1")
    await record(store, WRONG[1])
    async with ledger.hold("r.1") as entry:
        assert entry.events == list(WRONG)


async def test_a_paused_episode_is_resumed_by_its_next_event_only(store: SqliteStore) -> None:
    await record(store, WRONG[0], PAUSE)
    await record(store, PAUSE)
    assert await store.events("r.1") == (WRONG[0], PAUSE)
    await record(store, WRONG[1])
    assert await store.events("r.1") == (WRONG[0], PAUSE, Resumed(), WRONG[1])
    assert (await store.load("r.1")).stop is None


async def test_a_fork_keeps_what_was_done_and_leaves_the_first_as_it_was(store: SqliteStore) -> None:
    happened = list[str]()

    async def do() -> Json:
        happened.append("asked")
        return "9"

    ledger = Ledger(store)
    async with ledger.hold("r.1") as entry:
        await StoredJournal(entry).step("model", "Name a prime.", do)
        await entry.append(WRONG[0])
    before = await store.load("r.1")
    fork = await ledger.fork(before, Plan(), Head(seed=7), {})
    assert (fork.forked_from, fork.head.seed, fork.run != "r") == ("r.1", 7, True)
    async with ledger.hold(fork.id) as entry:
        assert entry.events == [WRONG[0], Forked(Plan())]
        assert await StoredJournal(entry).step("model", "Name a prime.", do) == "9"
        await entry.append(WRONG[1])
    assert happened == ["asked"]
    assert (await store.load("r.1"), await store.events("r.1")) == (before, (WRONG[0],))


async def test_a_branch_is_the_same_one_when_it_is_asked_for_again(store: SqliteStore) -> None:
    ledger = Ledger(store)
    async with ledger.hold("r.1") as entry:
        first = await ledger.branch(entry, BEGUN, "it went left")
        again = await ledger.branch(entry, BEGUN, "it went left")
        other = await ledger.branch(entry, BEGUN, "it went right")
    assert first == again != other
    assert first.forked_from == "r.1"
    assert await store.files(first.id) == {"tests.py": "assert True"}
    stop = (await store.load("r.1")).stop
    assert stop is not None
    assert first.run in stop.detail
