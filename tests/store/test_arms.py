"""What every store counts of the arms of strategies that learn: once, as the episode ends for good, and bounded."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lesson_kit import ADDRESSES, KINDS

from mulligan.core.arms import ArmRow
from mulligan.core.episode import Acted, Evaluated, Forked, Resumed, Stopped
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Choice, Episode, Feedback, Head, Plan, Stop, StopReason, Task
from mulligan.store import open_store
from mulligan.store.sqlite import arms

HEAD = Head(models={"actor": "m1"})


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(ADDRESSES[request.param](tmp_path)) as opened:
        yield opened


async def ended(
    store: Store, id: str, *tried: tuple[str | None, bool | None], kind: str = "", reason: StopReason = "exhausted"
) -> None:
    """An episode of these arms and verdicts, that stops for this reason."""
    await store.create(Episode(id, Task("p", kind=kind), plan=Plan(reflects=False), head=HEAD))
    lease = await store.acquire(id, "me", 60)
    events = list[Acted | Evaluated | Stopped]()
    for number, (arm, passed) in enumerate(tried, 1):
        events.append(Acted(number, Attempt(f"{number}", choice=None if arm is None else Choice(arm))))
        events.append(Evaluated(number, Feedback(passed)))
    for seq, event in enumerate([*events, Stopped(Stop(reason))]):
        await store.append(lease, seq, event)
    await store.release(lease)


def row(arm: str, tried: int, passed: int, kind: str = "") -> tuple[str, str, str, int, int]:
    return "m1", kind, arm, tried, passed


async def rows(store: Store, model: str | None = None, kind: str | None = None) -> list[tuple[str, str, str, int, int]]:
    return [(one.model, one.kind, one.arm, one.tried, one.passed) for one in await store.arms(model, kind)]


async def test_judged_trials_with_a_choice_are_counted_for_the_kind_and_over_all(store: Store) -> None:
    await ended(store, "e1", (None, False), ("a", None), ("b", False), ("a", True), kind="Dates  now", reason="solved")
    await ended(store, "e2", (None, False), ("a", False))
    assert await rows(store) == [
        row("a", 2, 1),
        row("b", 1, 0),
        row("a", 1, 1, "dates now"),
        row("b", 1, 0, "dates now"),
    ]
    assert await rows(store, "m1", "DATES now") == await rows(store)
    assert await rows(store, "m1", "other") == [row("a", 2, 1), row("b", 1, 0)]
    assert await rows(store, "m2") == []


async def test_an_episode_that_can_be_resumed_is_counted_once_when_it_is_over(store: Store) -> None:
    await ended(store, "e", (None, False), ("a", False), reason="interrupted")
    assert await rows(store) == []
    lease = await store.acquire("e", "me", 60)
    await store.append(lease, 5, Resumed())
    await store.append(lease, 6, Acted(3, Attempt("3", choice=Choice("a"))))
    await store.append(lease, 7, Evaluated(3, Feedback(True)))
    await store.append(lease, 8, Stopped(Stop("solved")))
    assert await rows(store) == [row("a", 2, 1)]


async def test_a_fork_counts_what_it_tried_itself(store: Store) -> None:
    await ended(store, "e", (None, False), ("a", False))
    await store.copy("e", "f", "r", HEAD, {}, Forked(Plan(reflects=False)))
    lease = await store.acquire("f", "me", 60)
    await store.append(lease, 6, Acted(3, Attempt("3", choice=Choice("b"))))
    await store.append(lease, 7, Evaluated(3, Feedback(True)))
    await store.append(lease, 8, Stopped(Stop("solved")))
    assert await rows(store) == [row("a", 1, 0), row("b", 1, 1)]


async def test_forgetting_takes_all_or_one_model_or_kind(store: Store) -> None:
    await ended(store, "e", (None, False), ("a", True), kind="k", reason="solved")
    assert await store.forget_arms("m2") == 0
    assert await store.forget_arms("m1", " K ") == 1
    assert await rows(store) == [row("a", 1, 1)]
    assert (await store.forget_arms(), await store.arms()) == (1, ())


async def test_of_a_model_only_the_kinds_that_changed_last_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "MAX_KINDS", 3)
    for n in range(5):
        await ended(store, f"e{n}", (None, False), ("a", False), kind=f"k{n}")
    kinds = {one.kind for one in await store.arms()}
    assert len(kinds) == 4
    assert {"", "k4"} <= kinds


async def test_an_episode_without_choices_counts_nothing(store: Store) -> None:
    await ended(store, "e", (None, False), (None, True), reason="solved")
    assert await store.arms() == ()
    assert ArmRow("m", "", "a").tried == 0
