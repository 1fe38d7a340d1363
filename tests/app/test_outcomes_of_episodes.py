"""The outcome of an episode reaches the recall that served it, whether the bank learns from the episode or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from banks import a_bank

import mulligan
from mulligan import Bank, Episode, Limits, ScriptedModel
from mulligan.app.transcripts import learn
from mulligan.core.errors import NotFound
from mulligan.core.protocols import Store
from mulligan.core.records import Json
from mulligan.store import open_store

TASK = "What is 6 times 7?"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


def bank_on(file: Path, **over: float) -> Bank:
    return a_bank(file, embedder="none", settings={"threshold": 0.0, **over})


async def attempt(answer: str, bank: Bank, store: Store, trials: int = 1) -> Episode:
    return await mulligan.solve(
        TASK,
        evaluator="exact_match:42",
        strategy="none",
        model=ScriptedModel([answer]),
        trials=trials,
        bank=bank,
        store=store,
    )


async def counted(bank: Bank) -> list[tuple[int, int]]:
    return [(one.tally.known, one.tally.solved) for one in await bank.worth()]


async def test_an_episode_that_only_recalls_tells_how_it_ended(file: Path) -> None:
    async with bank_on(file) as bank, open_store(file) as store:
        await bank.add("Times", "What is times: multiply.")
        solved, failed = await attempt("42", bank, store), await attempt("41", bank, store)
        assert (solved.solved, failed.solved) == (True, False)
        assert await counted(bank) == [(2, 1), (2, 1)]
        assert solved.recall is not None
        assert [(one.work, one.success) for one in (await bank.receipt(solved.recall.id)).outcomes] == [("", True)]


async def test_an_episode_that_ran_out_of_its_budget_tells_nothing_until_it_ends(file: Path) -> None:
    async with bank_on(file) as bank, open_store(file) as store:
        await bank.add("Times", "What is times: multiply.")
        stopped = await mulligan.solve(
            TASK,
            evaluator="exact_match:42",
            strategy="none",
            model=ScriptedModel(["42"]),
            limits=Limits(tokens=1),
            bank=bank,
            store=store,
        )
        assert stopped.stop is not None
        assert (stopped.stop.reason, await counted(bank)) == ("over_budget", [])
        await mulligan.resume(
            stopped.run, limits={"tokens": 10_000}, bank=bank, store=store, model=ScriptedModel(["42"])
        )
        assert await counted(bank) == [(1, 1), (1, 1)]


@pytest.mark.slow
async def test_a_recall_that_withheld_is_replayed_as_it_was_recorded(file: Path) -> None:
    async with bank_on(file, withhold=0.5) as bank, open_store(file) as store:
        for n in range(4):
            await bank.add(f"Times {n}", f"What is times: multiply, {n}.")
        for _ in range(6):
            stopped = await mulligan.solve(
                TASK,
                evaluator="exact_match:42",
                strategy="none",
                model=ScriptedModel(["42"]),
                limits=Limits(tokens=1),
                bank=bank,
                store=store,
            )
            done = await mulligan.resume(
                stopped.run, limits={"tokens": 10_000}, bank=bank, store=store, model=ScriptedModel(["42"])
            )
            assert done.recall == stopped.recall
            assert done.recall is not None
            receipt = await bank.receipt(done.recall.id)
            assert set(receipt.lessons) == {lesson.id for lesson in done.recall.lessons}
        assert (await counted(bank))[0] == (6, 6)


async def test_a_transcript_names_the_recall_that_it_was_given(file: Path) -> None:
    turns = [{"role": "user", "content": TASK}, {"role": "assistant", "content": "42"}]
    answers: Json = {"why": "", "lessons": [], "nothing_because": "It is plain."}
    async with a_bank(file, embedder="none", model=ScriptedModel([answers])) as bank:
        await bank.add("Times", "What is times: multiply.")
        recall = await bank.recall(TASK)
        await learn(turns, success=True, bank=bank, recall=recall.id)
        assert (await counted(bank))[0] == (1, 1)
        with pytest.raises(NotFound):
            await learn(turns, success=True, bank=bank, recall="rnone")
