"""A bank that moves to another store, of any kind, recalls what it did before in every form, and counts on."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lesson_kit import KINDS, STORES, entry, ids

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.bank.exchange.importing import archives_from_json, archives_to_json, prepared
from mulligan.core.lesson_history import Account, Archive, Receipt, Worth
from mulligan.core.lesson_store import Memory
from mulligan.core.records import Attempt, Episode, Feedback, Step, Stop, Task, Trial
from mulligan.core.worth import Tally


@pytest.fixture(params=KINDS)
async def there(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    opened = STORES[request.param](tmp_path / "there")
    yield opened
    await opened.close()


def an_account(id: str, at: float, text: str = "t") -> Account:
    return Account(id, "p", at, text, True)


async def accounts(memory: Memory, agent: str = "a") -> list[tuple[str, str]]:
    return [(one.id, one.text) for one in await memory.lessons.accounts(agent, "p", 100)]


def a_bank(memory: Memory) -> Bank:
    return open_bank("a", store=memory, embedder="none", project="shop", settings={"withhold": 0.5})


def an_episode(n: int) -> Episode:
    steps = (Step("", f"read shelf_{n} as text", "Error: unknown form"), Step("", f"read shelf_{n} as list", f"{n}"))
    trial = Trial(1, Attempt(str(n), steps), Feedback(n % 2 == 0, "", source="exact_match"))
    stop = Stop("solved" if n % 2 == 0 else "exhausted")
    return Episode(f"e{n}", Task(f"How many things stand on shelf {n}?"), trials=(trial,), stop=stop)


async def moved(here: Memory, there: Memory) -> None:
    """Restores all of one store in another, by way of the text of an export."""
    text = json.dumps(archives_to_json(await here.lessons.archive(None)))
    several = archives_from_json(json.loads(text))
    await there.lessons.restore([prepared(one, quarantine=True) for one in several])


@pytest.mark.light_cases(1)
async def test_a_bank_that_moves_recalls_the_same_in_every_form(memory: Memory, there: Memory) -> None:
    old, new = a_bank(memory), a_bank(there)
    for n in range(8):
        episode = an_episode(n)
        recall = await old.recall(episode.task, forms="notebook,lessons")
        await old.learn(replace(episode, recall=recall))
    first, second, *_ = await old.notebook()
    await old.pin(first.id)
    await old.announce("the shelves were moved")
    await old.add(first.title, "It stands elsewhere.", nature="fact")
    await moved(memory, there)
    for forms in ("history", "notebook", "lessons", "notebook,lessons,history"):
        before, after = [
            await bank.recall("How many things stand on shelf 3?", forms=forms, counted=False, threshold=0.0)
            for bank in (old, new)
        ]
        assert before.formatted_prompt
        assert after.formatted_prompt == before.formatted_prompt
        assert [one.id for one in after.lessons] == [one.id for one in before.lessons]
    assert await new.notebook() == await old.notebook()
    assert (await new.get(first.id)).pinned
    assert (await new.get(second.id)).to_check == "announced: the shelves were moved"
    worth = await old.worth()
    assert any(one.tally.withheld.count for one in worth)
    assert await new.worth() == worth
    again = await there.lessons.archive("a")
    assert again == await memory.lessons.archive("a")
    assert await there.lessons.verify() == []
    facts = [
        await bank.learn(replace(an_episode(3), id="more")) for bank in (old, new)
    ]  # facts are looked up as before
    assert facts[0].facts
    assert facts[1].facts == facts[0].facts


async def test_accounts_are_sorted_in_by_time_and_known_episodes_stay(memory: Memory, there: Memory) -> None:
    await memory.lessons.keep_accounts("a", [an_account("e1", 1.0), an_account("e3", 3.0, "theirs")], 9)
    await memory.lessons.keep_accounts("b", [an_account("e9", 9.0)], 9)
    await there.lessons.keep_accounts("a", [an_account("e3", 3.5, "ours"), an_account("e2", 2.0)], 9)
    await moved(memory, there)
    assert await accounts(there) == [("e3", "ours"), ("e2", "t"), ("e1", "t")]
    assert await accounts(there, "b") == [("e9", "t")]
    await moved(memory, there)  # a second time changes nothing
    assert await accounts(there) == [("e3", "ours"), ("e2", "t"), ("e1", "t")]


async def test_what_is_counted_here_stays_and_an_outcome_counts_once(memory: Memory, there: Memory) -> None:
    for one in (memory, there):
        await one.lessons.add("a", [entry("1")])
        await one.lessons.recalled(Receipt("r", "a", 5.0, "q", {"1": 0.5}))
    await memory.lessons.add("a", [entry("2")])
    await memory.lessons.recalled(Receipt("s", "a", 6.0, "q", {"1": 0.5, "2": 0.5}))
    for receipt in ("r", "s"):
        await memory.lessons.outcome_of("a", receipt, True)
    await there.lessons.outcome_of("a", "r", False)
    await moved(memory, there)
    assert await there.lessons.outcome_of("a", "s", False)  # the outcome came with the recall
    counted = {one.id: (one.tally.known, one.tally.solved) for one in await there.lessons.worth("a")}
    assert counted == {"": (1, 0), "1": (1, 0), "2": (1, 1)}
    assert await there.lessons.verify() == []


async def test_an_older_export_has_neither_accounts_nor_counts(memory: Memory) -> None:
    old: dict[str, Any] = {"mulligan": "0.1.0", "schema": 1, "agents": [{"agent_id": "a", "lessons": []}]}
    assert archives_from_json(old) == (Archive("a"),)
    lesson = entry("1", embedder=None)
    archive = Archive(
        "a", (replace(lesson.lesson, agent_id="a"),), worth=(Worth("a", "1", "active", Tally(2, 1), 7.0),)
    )
    await memory.lessons.restore([(archive, [lesson])])
    assert await ids(memory.lessons) == ["1"]
    assert await memory.lessons.worth("a") == (Worth("a", "1", "active", Tally(2, 1), 7.0),)
