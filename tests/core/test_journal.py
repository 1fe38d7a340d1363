"""The journal's rules over the real store: reuse, divergence, forks, steps in flight, branches, a lost lease."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from mulligan.core.codec import changes, digest
from mulligan.core.errors import InvalidInput, JournalDiverged, JournalError, LeaseLost, StepInFlight
from mulligan.core.loop import scope
from mulligan.core.protocols import Lease
from mulligan.core.records import Episode, Json, Task
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Entry
from mulligan.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("e", Task("p")))
    yield store
    await store.close()


@pytest.fixture
async def lease(store: SqliteStore) -> Lease:
    return await store.acquire("e", "me", 60)


class Effects:
    """Counts what really happened."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    def __call__(self, name: str) -> Callable[[], Awaitable[Json]]:
        async def do() -> Json:
            self.happened.append(name)
            return {"did": name, "n": len(self.happened)}

        return do


async def cut(journal: StoredJournal, name: str, request: Json, *, repeatable: bool = True) -> None:
    """A step that is cut off while its effect is under way."""

    async def never() -> Json:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await journal.step(name, request, never, repeatable=repeatable)


async def keys(store: SqliteStore) -> list[tuple[str, bool]]:
    return [(row.key, row.done) for row in await store.steps("e")]


async def test_a_step_that_is_done_is_reused(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    results: list[Json] = []
    for _ in range(2):
        journal = StoredJournal(await Entry.read(store, lease))
        with scope("trial.1", "act"):
            results += [await journal.step("model", {"n": n}, effects(f"model {n}")) for n in (1, 2)]
            results.append(await journal.step("tool.search", ["x"], effects("search")))
    assert results[:3] == results[3:]
    assert effects.happened == ["model 1", "model 2", "search"]
    expected = ["trial.1/act/model#1", "trial.1/act/model#2", "trial.1/act/tool.search#1"]
    assert await keys(store) == [(key, True) for key in expected]


async def test_a_result_of_none_counts_as_done(store: SqliteStore, lease: Lease) -> None:
    happened: list[int] = []

    async def nothing() -> Json:
        happened.append(1)

    for _ in range(2):
        assert await StoredJournal(await Entry.read(store, lease)).step("quiet", None, nothing) is None
    assert happened == [1]


async def test_another_request_is_named_and_runs_nothing(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    before = {"messages": [{"role": "user", "text": "a"}], "model": "m"}
    after = {"messages": [{"role": "user", "text": "b"}], "model": "n"}
    await StoredJournal(await Entry.read(store, lease)).step("model", before, effects("first"))
    with pytest.raises(JournalDiverged, match=r"model#1: messages\.0\.text; model\..*fork=True") as caught:
        await StoredJournal(await Entry.read(store, lease)).step("model", after, effects("second"))
    assert caught.value.changed == ("messages.0.text", "model")
    assert effects.happened == ["first"]


async def test_numbers_that_are_equal_are_no_divergence(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    first = await StoredJournal(await Entry.read(store, lease)).step("model", {"temperature": 1}, effects("first"))
    assert (
        await StoredJournal(await Entry.read(store, lease)).step("model", {"temperature": 1.0}, effects("again"))
        == first
    )


async def test_a_fork_leaves_behind_what_was_recorded_from_the_difference_on(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()

    async def drive(second: str, *, fork: bool = False) -> None:
        journal = StoredJournal(await Entry.read(store, lease), fork=fork)
        await journal.step("env", "look", effects("look"))
        await journal.step("env", second, effects(second))
        await journal.step("env", "look", effects("look again"))

    await drive("north")
    await drive("south", fork=True)
    # the last request is the same, but the world is another: it runs again
    assert effects.happened == ["look", "north", "look again", "south", "look again"]
    await drive("south")
    assert len(effects.happened) == 5
    assert [row.request for row in await store.steps("e")] == ["look", "south", "look"]


async def test_a_fork_that_is_cut_off_never_falls_back_on_stale_rows(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    journal = StoredJournal(await Entry.read(store, lease))
    for request in ("look", "north", "look"):
        await journal.step("env", request, effects(request))
    forked = StoredJournal(await Entry.read(store, lease), fork=True)
    await forked.step("env", "look", effects("look"))
    await cut(forked, "env", "south")
    assert await keys(store) == [("env#1", True), ("env#2", False)]


async def test_a_repeatable_step_in_flight_runs_again(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    await cut(StoredJournal(await Entry.read(store, lease)), "model", "q")
    assert await keys(store) == [("model#1", False)]
    await StoredJournal(await Entry.read(store, lease)).step("model", "q", effects("model"))
    assert await keys(store) == [("model#1", True)]
    assert effects.happened == ["model"]


async def test_an_unrepeatable_step_in_flight_is_reported(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    await cut(StoredJournal(await Entry.read(store, lease)), "pay", 5, repeatable=False)
    with pytest.raises(StepInFlight, match="pay#1 was started and its result is unknown"):
        await StoredJournal(await Entry.read(store, lease)).step("pay", 5, effects("pay"), repeatable=False)
    assert effects.happened == []
    await StoredJournal(await Entry.read(store, lease), fork=True).step("pay", 5, effects("pay"), repeatable=False)
    assert effects.happened == ["pay"]


async def test_a_changed_request_of_a_step_in_flight_is_a_divergence(store: SqliteStore, lease: Lease) -> None:
    await cut(StoredJournal(await Entry.read(store, lease)), "model", "q")
    with pytest.raises(JournalDiverged, match="the request"):
        await StoredJournal(await Entry.read(store, lease)).step("model", "r", Effects()("model"))


async def test_branches_that_are_named_keep_their_keys_whoever_comes_first(store: SqliteStore, lease: Lease) -> None:
    async def drive(first: str, effects: Effects) -> dict[str, Json]:
        journal = StoredJournal(await Entry.read(store, lease))
        gate = asyncio.Event()
        results: dict[str, Json] = {}

        async def branch(name: str) -> None:
            with scope(f"branch.{name}"):
                if name != first:
                    await gate.wait()
                for n in (1, 2):
                    results[f"{name}{n}"] = await journal.step("model", name, effects(f"{name}{n}"))
            gate.set()

        async with asyncio.timeout(10):
            await asyncio.gather(branch("a"), branch("b"))
        return results

    effects = Effects()
    assert await drive("b", effects) == await drive("a", effects)
    assert effects.happened == ["b1", "b2", "a1", "a2"]
    assert sorted(key for key, _ in await keys(store)) == [f"branch.{b}/model#{n}" for b in "ab" for n in (1, 2)]


async def test_branches_without_names_are_refused(store: SqliteStore, lease: Lease) -> None:
    journal = StoredJournal(await Entry.read(store, lease))
    results = await asyncio.gather(
        *(journal.step("model", n, Effects()("model")) for n in (1, 2)), return_exceptions=True
    )
    assert isinstance(results[0], dict)
    assert isinstance(results[1], JournalError)
    assert "scope(name)" in str(results[1])


async def test_a_step_inside_a_step_does_not_shift_the_count(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()

    async def drive() -> None:
        journal = StoredJournal(await Entry.read(store, lease))

        async def outer() -> Json:
            return await journal.step("model", "inner", effects("inner"))

        await journal.step("tool", "outer", outer)
        await journal.step("model", "after", effects("after"))

    await drive()
    await drive()
    assert effects.happened == ["inner", "after"]
    assert await keys(store) == [("tool#1", True), ("tool#1/model#1", True), ("model#1", True)]


async def test_a_lost_lease_stops_the_journal_before_the_effect(store: SqliteStore, lease: Lease) -> None:
    effects = Effects()
    journal = StoredJournal(await Entry.read(store, lease))
    await journal.step("model", 1, effects("mine"))
    await store.renew(lease, 0)
    theirs = await store.acquire("e", "they", 0)
    with pytest.raises(LeaseLost, match="now driven by they"):
        await journal.step("model", 2, effects("still mine?"))
    assert effects.happened == ["mine"]
    await StoredJournal(await Entry.read(store, theirs)).step("model", 1, effects("theirs"))
    assert effects.happened == ["mine"]


async def test_an_effect_that_fails_leaves_its_step_in_flight(store: SqliteStore, lease: Lease) -> None:
    async def fails() -> Json:
        raise ValueError("no")

    journal = StoredJournal(await Entry.read(store, lease))
    with pytest.raises(ValueError, match="no"):
        await journal.step("tool", None, fails)
    assert await keys(store) == [("tool#1", False)]
    await journal.step("tool", None, Effects()("tool"))
    assert await keys(store) == [("tool#1", False), ("tool#2", True)]


async def test_a_role_that_works_without_a_record_works_with_one() -> None:
    async def tuples() -> Json:
        return (1, 2)

    with pytest.raises(InvalidInput, match="a tuple is not JSON; make it a list"):
        await NoJournal().step("tool", None, tuples)
    with pytest.raises(InvalidInput, match=r"value\.at: a tuple"):
        await NoJournal().step("tool", {"at": ()}, Effects()("tool"))
    assert await NoJournal().step("tool", {"at": []}, Effects()("tool")) == {"did": "tool", "n": 1}


def test_changes_name_the_places() -> None:
    assert changes({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ["a.1.b"]
    assert changes({"a": None}, {}) == ["the request"]
    assert changes({"a": [1]}, {"a": [1, 2]}) == ["a"]
    assert changes(1, 2) == ["the request"]
    assert changes([{"x": 1}], [{"x": 1}]) == []
    assert changes({str(n): n for n in range(9)}, {str(n): -n for n in range(9)}) == ["1", "2", "3", "4", "5"]


def test_the_digest_is_that_of_the_meaning() -> None:
    assert digest({"b": 1, "a": [2]}) == digest({"a": [2], "b": 1})
    assert digest(["\udcff"]) != digest(["\udcfe"])
