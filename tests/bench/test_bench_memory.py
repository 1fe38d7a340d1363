"""A run with a real bank: online it learns case by case, in order; frozen it only asks, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank, lessons_of, mind
from toy_bench import HERE, Obliging, cases

from mulligan.bank.bank import Bank
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.protocols import Learned
from mulligan.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    made = SqliteStore(tmp_path / "m.db")
    yield made
    await made.close()


def learning(tmp_path: Path, agent_id: str = "toy") -> Bank:
    """Its lesson of an episode names the case."""

    def extract(text: str) -> Any:
        case = next(f"c{n}" for n in range(1, 9) if f"c{n}: " in text)
        return lessons_of((f"How to say it in {case}", f"Say the right thing, as {case} taught."))

    return a_bank(tmp_path / "m.db", agent_id, model=mind(extract), settings={"threshold": 0})


async def ran(store: SqliteStore, tmp_path: Path, bank: Bank, **options: Any) -> Finished:
    data = cases(tmp_path, "right thing to say", "right thing to say", "right thing to say")
    return await run_benchmark(HERE, model=Obliging(), store=store, bank=bank, data=str(data), **options)


async def recalled(store: SqliteStore, finished: Finished) -> list[set[str]]:
    """The titles that each case was shown."""
    episodes = [await store.load(result.episodes[0].episode) for result in finished.results]
    return [{lesson.title for lesson in episode.recall.lessons} for episode in episodes if episode.recall]


ONLINE = [set[str](), {"How to say it in c1"}, {"How to say it in c1", "How to say it in c2"}]


async def test_online_each_case_is_shown_what_those_before_it_taught(store: SqliteStore, tmp_path: Path) -> None:
    said = list[str]()
    async with learning(tmp_path) as bank:
        finished = await ran(store, tmp_path, bank, memory="online", hooks=Hooks(notice=said.append))
        assert await recalled(store, finished) == ONLINE
        assert len(await bank.list()) == 3
    assert [result.status for result in finished.results] == ["solved"] * 3
    assert sum("1 lesson learned" in line for line in said) == 3


class Cut(BaseException):
    """As if the process were killed."""


async def test_online_a_run_that_was_killed_before_it_taught_teaches_first(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with learning(tmp_path) as bank:
        with monkeypatch.context() as patched:

            async def killed(episodes: Any, **_: Any) -> Learned:
                raise Cut

            patched.setattr(bank, "learn", killed)
            with pytest.raises(Cut):
                await ran(store, tmp_path, bank, memory="online")
        (run,) = await store.benches.runs()
        assert await store.benches.results(run.id) == ()
        finished = await resume_benchmark(run.id, model=Obliging(), store=store, bank=bank)
        assert await recalled(store, finished) == ONLINE
        again = await resume_benchmark(run.id, model=Obliging(), store=store, bank=bank)
        assert again.results == finished.results
        assert len(await bank.list()) == 3


@pytest.mark.parametrize("parallel", [1, 3])
async def test_frozen_the_bank_stays_as_it_is(store: SqliteStore, tmp_path: Path, parallel: int) -> None:
    async with learning(tmp_path) as bank:
        await ran(store, tmp_path, bank, memory="online")
        before = await bank.list()
        dump = [await bank.history(lesson.id) for lesson in before]
        finished = await ran(store, tmp_path, bank, memory="frozen", parallel=parallel)
        assert await recalled(store, finished) == [{f"How to say it in c{n}" for n in (1, 2, 3)}] * 3
        assert await bank.list() == before
        assert [await bank.history(lesson.id) for lesson in before] == dump


async def test_without_memory_nothing_is_recalled(store: SqliteStore, tmp_path: Path) -> None:
    async with learning(tmp_path) as bank:
        finished = await ran(store, tmp_path, bank)
        assert await recalled(store, finished) == []
        assert await bank.list() == ()
