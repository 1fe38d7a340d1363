"""What entries are worth: they are withheld by a recorded draw, and outcomes count once, for the agent's own entries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank, an_episode
from hypothesis import given
from hypothesis import strategies as st

from mulligan import Bank
from mulligan.core.errors import InvalidInput, NotFound
from mulligan.core.lesson_history import Worth
from mulligan.core.records import Recall
from mulligan.core.worth import Tally, is_withheld

QUERY = "pay the order"


def bank_of(folder: Path, agent: str | None = "", share: float = 0.5, **over: Any) -> Bank:
    over = {"withhold": share, "threshold": 0.0, "top_k": 5, **over}
    return a_bank(folder / "m.db", agent, embedder="none", settings=over)


async def filled(bank: Bank, count: int = 3) -> list[str]:
    return [(await bank.add(f"Order {n}", f"Pay the order by rules {n}.")).id for n in range(count)]


async def of_lesson(bank: Bank, id: str) -> Worth:
    found = [one for one in await bank.worth() if one.id == id]
    return found[0] if found else Worth(bank.agent_id or "", id, "", Tally())


def shown(recall: Recall) -> set[str]:
    return {lesson.id for lesson in recall.lessons}


@pytest.mark.parametrize("share", [-0.1, 0.51, True, "much"])
def test_the_share_is_from_0_to_a_half(tmp_path: Path, share: Any) -> None:
    with pytest.raises(InvalidInput, match=r"'withhold' must be a share from 0 to 0\.5"):
        bank_of(tmp_path, share=share)


async def test_nothing_is_withheld_unless_it_is_asked_for(tmp_path: Path) -> None:
    async with bank_of(tmp_path, share=0.0) as bank:
        ids = await filled(bank)
        for _ in range(20):
            recall = await bank.recall(QUERY)
            receipt = await bank.receipt(recall.id)
            assert (shown(recall), "withheld" in recall.note) == (set(ids), False)
            assert (receipt.withheld, receipt.drawn) == ({}, {})


@pytest.mark.slow
async def test_what_is_withheld_is_recorded_before_the_outcome_and_not_refilled(tmp_path: Path) -> None:
    async with bank_of(tmp_path, top_k=3) as bank:
        ids = await filled(bank, 5)
        sizes = set[int]()
        for _ in range(100):
            recall = await bank.recall(QUERY)
            receipt = await bank.receipt(recall.id)
            assert set(receipt.lessons) == shown(recall)
            assert set(receipt.drawn) == {*receipt.lessons, *receipt.withheld}
            assert set(receipt.drawn.values()) == {0.5}
            assert len(receipt.drawn) == 3
            for id in receipt.drawn:  # anybody can repeat the draw
                assert is_withheld(receipt.id, id, 0.5) == (id in receipt.withheld)
                title = (await bank.get(id)).title
                assert (title in recall.formatted_prompt) == (id in receipt.lessons)
            assert ("withheld to measure" in recall.note) == bool(receipt.withheld)
            sizes.add(len(receipt.lessons))
        assert sizes == {0, 1, 2, 3}
        uses = sum([(await bank.get(id)).uses for id in ids])
        history = [version.change for id in ids for version in await bank.history(id)]
        assert (history.count("used"), history.count("withheld")) == (uses, 300 - uses)


async def test_what_is_pinned_is_always_shown(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        ids = await filled(bank)
        assert (await bank.pin(ids[0])).pinned
        for _ in range(20):
            recall = await bank.recall(QUERY)
            assert ids[0] in shown(recall)
            assert ids[0] not in (await bank.receipt(recall.id)).drawn
            await bank.outcome_of(recall.id, True)
        assert (await of_lesson(bank, ids[0])).tally.uplift is None
        assert (await of_lesson(bank, ids[0])).tally.known == 20
        assert not (await bank.pin(ids[0], False)).pinned
        drawn = [(await bank.receipt((await bank.recall(QUERY)).id)).drawn for _ in range(3)]
        assert all(ids[0] in one for one in drawn)


async def test_looking_withholds_nothing(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        ids = await filled(bank)
        for _ in range(10):
            assert shown(await bank.recall(QUERY, counted=False)) == set(ids)


async def test_the_first_outcome_of_a_recall_counts_once(tmp_path: Path) -> None:
    async with bank_of(tmp_path, share=0.0) as bank:
        (id,) = await filled(bank, 1)
        recall = await bank.recall(QUERY)
        assert await bank.outcome_of(recall.id, False) is False
        assert await bank.outcome_of(recall.id, True) is False
        await bank.learn(replace(an_episode("e", QUERY, "paid"), recall=await bank.recalled(recall.id)))
        assert [one.success for one in (await bank.receipt(recall.id)).outcomes] == [True]  # of the work; told before
        tally = (await of_lesson(bank, id)).tally
        assert (tally.known, tally.solved, tally.uplift) == (1, 0, None)
        with pytest.raises(NotFound):
            await bank.outcome_of("rnone", True)
        with pytest.raises(InvalidInput, match="success must be True or False"):
            await bank.outcome_of(recall.id, 1)  # pyright: ignore[reportArgumentType]


async def test_an_episode_that_is_learned_from_tells_its_outcome(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        (id,) = await filled(bank, 1)
        for n in range(30):
            recall = await bank.recall(QUERY)
            there = id in shown(recall)
            await bank.learn(replace(an_episode(f"e{n}", QUERY, f"paid {n}", passed=there), recall=recall))
        tally = (await of_lesson(bank, id)).tally
        assert tally.known == tally.shown.count + tally.withheld.count == 30
        assert (tally.shown.solved, tally.withheld.solved) == (tally.shown.count, 0)
        assert tally.uplift is not None
        assert tally.uplift.low > 0.3
        (whole,) = [one.tally for one in await bank.worth() if not one.id]
        assert (whole.known, whole.solved) == (30, tally.shown.count)


async def test_each_recall_of_a_contrast_gets_the_outcome_of_its_own_episode(tmp_path: Path) -> None:
    async with bank_of(tmp_path, share=0.0) as bank:
        await filled(bank, 1)
        recalls = [await bank.recall(QUERY) for _ in range(2)]
        episodes = [
            replace(an_episode(f"e{n}", QUERY, "paid", passed=bool(n)), recall=recall)
            for n, recall in enumerate(recalls)
        ]
        await bank.learn(episodes)
        (whole,) = [one.tally for one in await bank.worth() if not one.id]
        assert (whole.known, whole.solved) == (2, 1)


async def test_another_text_is_counted_anew_and_a_pin_is_no_other_text(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        (id,) = await filled(bank, 1)
        before = [await bank.recall(QUERY) for _ in range(6)]
        for recall in before[:5]:
            await bank.outcome_of(recall.id, True)
        await bank.edit(id, tags=["x"])
        assert (await of_lesson(bank, id)).tally.known == 5
        await bank.edit(id, content="Pay the order by another rule.")
        await bank.outcome_of(before[5].id, True)  # it showed the text of before
        assert (await of_lesson(bank, id)).tally == Tally()
        await bank.outcome_of((await bank.recall(QUERY)).id, True)
        assert (await of_lesson(bank, id)).tally.known == 1


async def until_retired(bank: Bank, id: str, most: int = 400) -> int:
    """Tasks succeed if and only if the lesson is withheld; how many it takes."""
    for n in range(most):
        recall = await bank.recall(QUERY)
        await bank.outcome_of(recall.id, id not in shown(recall))
        if (await bank.get(id)).state == "retired":
            return n + 1
    return most


async def test_a_lesson_that_does_harm_is_retired_and_it_is_said_once(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        harmful, other = await filled(bank, 2)
        assert await until_retired(bank, harmful) < 60
        assert (await bank.get(other)).state == "active"
        last = (await bank.history(harmful))[-1]
        assert last.change == "retired"
        assert "it did harm: uplift -" in str(last.detail)
        notes = [(await bank.recall(QUERY)).note for _ in range(2)]
        assert f"without lesson {harmful[:8]}, which was retired (it did harm: uplift -" in notes[0]
        assert "retired" not in notes[1]
        await bank.restore(harmful)
        assert (await of_lesson(bank, harmful)).tally == Tally()
        await bank.pin(harmful)
        assert await until_retired(bank, harmful, 60) == 60


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(["a", "b", "", None]), st.booleans())))
async def test_outcomes_of_one_agent_never_touch_the_figures_of_another(
    tmp_path_factory: pytest.TempPathFactory, told: Sequence[tuple[str, str | None, bool]]
) -> None:
    """Whoever recalls, of its own bank or of all, and whoever tells the outcome: it counts for the teller's alone."""
    folder = tmp_path_factory.mktemp("banks")
    banks = {agent: bank_of(folder, agent) for agent in ("a", "b", "", None)}
    for agent in ("a", "b", ""):
        await filled(banks[agent], 2)

    async def figures() -> dict[str, list[Worth]]:
        everyone = await banks[None].worth()
        return {agent: [one for one in everyone if one.agent_id == agent] for agent in ("a", "b", "")}

    for teller, of, success in told:
        recall, before = await banks[of].recall(QUERY), await figures()
        mine = (of or "") == teller
        if mine:
            await banks[teller].outcome_of(recall.id, success)
        else:
            with pytest.raises(NotFound):
                await banks[teller].outcome_of(recall.id, success)
            await banks[teller].learn(replace(an_episode(recall.id, QUERY, "x", passed=success), recall=recall))
        after = await figures()
        for agent in ("a", "b", ""):
            assert (after[agent] != before[agent]) == (mine and agent == teller)
        for agent in ("a", "b"):
            assert list(await banks[agent].worth()) == after[agent]
    for bank in banks.values():
        await bank.close()


async def test_what_is_purged_leaves_no_trace_in_receipts_and_figures(tmp_path: Path) -> None:
    async with bank_of(tmp_path) as bank:
        gone, stays = await filled(bank, 2)
        recalls = [(await bank.recall(QUERY)).id for _ in range(10)]
        for id in recalls:
            await bank.outcome_of(id, True)
        await bank.purge([gone])
        for id in recalls:
            receipt = await bank.receipt(id)
            assert {stays} >= {*receipt.lessons, *receipt.withheld, *receipt.drawn}
        assert [one.id for one in await bank.worth()] == ["", stays]
        assert [one.id for one in await bank.worth(of=[gone])] == [""]
        await bank.purge(None)
        assert await bank.worth() == ()


@pytest.mark.parametrize("damage", ["record = '{'", "record = x'ff'", "schema = 'x'", "positive = 'x'"])
async def test_figures_that_are_damaged_keep_nobody_from_counting(tmp_path: Path, damage: str) -> None:
    async with bank_of(tmp_path) as bank:
        (id,) = await filled(bank, 1)
        await bank.outcome_of((await bank.recall(QUERY)).id, True)
        with closing(sqlite3.connect(tmp_path / "m.db")) as db, db:
            db.execute(f"UPDATE worth SET {damage}")
        await bank.worth()
        await bank.outcome_of((await bank.recall(QUERY)).id, True)
        assert (await of_lesson(bank, id)).tally.known in (1, 2)
        with closing(sqlite3.connect(tmp_path / "m.db")) as db, db:
            db.execute(f"UPDATE worth SET {damage}")
        assert any(not one.mended for one in await bank.verify())
        assert all(one.mended for one in await bank.verify(mend=True))
        assert list(await bank.verify()) == []
        assert (await of_lesson(bank, id)).tally == Tally()
