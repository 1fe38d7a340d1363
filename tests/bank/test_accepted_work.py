"""What was accepted to be learned from: looked at, gone on with, answered by the caller, tried again, and followed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from banks import a_bank, an_episode, lessons_of, mind

from mulligan import Bank, ScriptedModel
from mulligan.core.errors import InvalidInput, ModelError, NotFound
from mulligan.core.lesson_history import TaskOutcome
from mulligan.core.records import Recall

LEARNED = lessons_of(("Whole history", "Open the full history."))
VERDICT = {"reasoning": "It looks so.", "verdict": "success"}


async def test_work_is_looked_at_from_acceptance_to_lessons(tmp_path: Path) -> None:
    episode = an_episode("e1", "Find it", "done", passed=None)
    async with a_bank(tmp_path / "m.db") as bank:
        assert await bank.accepted(episode) is None
        asked = await bank.learn(episode)
        work = str(asked.work)
        assert await bank.accepted([episode]) == work
        assert (await bank.outcome(work)).question == asked.question
        judged = await bank.commit(work, VERDICT)
        assert judged.work != work
        assert await bank.outcome(work) == await bank.learn(episode) == judged
        learned = await bank.commit(str(judged.work), LEARNED)
        assert await bank.outcome(work) == await bank.resume(work) == await bank.learn(episode) == learned
        assert (learned.success, len(learned.lessons), learned.pending) == (True, 1, False)


async def test_thinking_can_be_borrowed_though_there_is_a_model(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", model=mind(lambda text: pytest.fail("nobody asked it"))) as bank:
        asked = await bank.learn(an_episode("e1", "Find it", "done"), borrow=True)
        assert asked.question is not None
        assert len((await bank.commit(str(asked.work), LEARNED)).lessons) == 1


async def test_a_question_that_waits_is_left_to_the_model_when_asked(tmp_path: Path) -> None:
    episode = an_episode("e1", "Find it", "done")
    async with a_bank(tmp_path / "m.db") as bank:
        asked = await bank.learn(episode)
    async with a_bank(tmp_path / "m.db", model=mind(lambda text: LEARNED)) as bank:
        accepted = await bank.learn(episode, background=True)
        assert (accepted.work, accepted.pending, accepted.question) == (asked.work, True, None)
        await settled(bank, str(asked.work))
        assert len(await bank.list()) == 1


async def settled(bank: Bank, work: str) -> None:
    async with asyncio.timeout(20):
        while True:
            if not (await bank.outcome(work)).pending:
                return
            await asyncio.sleep(0.01)


async def test_a_close_does_not_wait_for_what_is_due_later(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", model=ScriptedModel([ModelError("down")])) as bank:
        work = str((await bank.learn(an_episode("e1", "Find it", "done"), background=True)).work)
        async with asyncio.timeout(20):
            while True:
                if (await bank.pending())[0].error:
                    break
                await asyncio.sleep(0.01)
        begun = time.monotonic()
    assert time.monotonic() - begun < 2
    async with a_bank(tmp_path / "m.db", model=ScriptedModel([LEARNED])) as bank:
        assert (await bank.outcome(work)).pending
        await bank.resume(work, borrow=True)
        await bank.resume(work, background=True)
        await settled(bank, work)
        assert len(await bank.list()) == 1


async def test_what_was_folded_is_told_again(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", model=mind(lambda text: LEARNED)) as bank:
        first = await bank.learn(an_episode("e1", "Find it", "done"))
        again = await bank.learn(an_episode("e2", "Find it again", "done"))
        assert (again.lessons, again.folded) == ((), first.lessons)
        assert await bank.outcome(str(again.work)) == again


async def test_other_work_has_no_outcome(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", embedder="none") as bank, a_bank(tmp_path / "m.db", "other") as other:
        ids = [(await bank.add(title, f"{title} thing.")).id for title in ("One", "Another")]
        merge = str((await bank.merge(ids)).work)
        learn = str((await bank.learn(an_episode("e1", "Find it", "done"))).work)
        for who, work in ((bank, merge), (bank, "w0"), (other, learn)):
            for call in (who.outcome, who.resume):
                with pytest.raises(NotFound, match="no pending job"):
                    await call(work)


async def test_an_episode_that_names_its_recall_is_its_outcome(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", "me") as bank, a_bank(tmp_path / "m.db", None) as everybody:
        recall = await bank.recall("Find it")
        assert await bank.recalled(recall.id) == Recall(recall.id)
        episode = replace(an_episode("e1", "Find it", "done", passed=False), recall=recall)
        asked = await bank.learn(episode)
        assert (await bank.receipt(recall.id)).outcomes == (TaskOutcome(str(asked.work), False),)
        assert (await everybody.receipt(recall.id)).outcomes == (TaskOutcome(str(asked.work), False),)
        with pytest.raises(NotFound):
            await everybody.recalled(recall.id)
        gone = replace(an_episode("e2", "Find it", "done"), recall=Recall("r0"))
        assert (await bank.learn(gone)).question is not None


async def test_an_empty_list_of_episodes_is_refused(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        with pytest.raises(InvalidInput, match="nothing to learn from"):
            await bank.learn([], borrow=True)
