"""A lesson that expires is not recalled, and stays; a fact says how old it is, and which newer one contradicts it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.app.memory import open_bank
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_store import Memory
from mulligan.core.lessons import Selection
from mulligan.core.records import Task
from mulligan.hooks.recall import Reader, shown_text
from mulligan.store import open_store

DAY = 24 * 3600
SETTINGS = {"embedder": "none", "threshold": 0.0, "expires": {"fact": "2d", "web": "5d"}}


async def test_an_expired_lesson_is_not_recalled_and_is_renewed(memory: Memory) -> None:
    bank = open_bank("a", store=memory, settings=SETTINGS, project="shop")
    now = time.time()
    old = await bank.add("Staging", "Staging runs on port 8080.", expires=now - DAY)
    soon = await bank.add("Soon", "Staging moves to port 9090.", kind="web")
    never = await bank.add("Never", "Staging has a port.", kind="web", expires="never")
    fact = await bank.add("Fact", "The port of staging is secret.", nature="fact")
    assert (soon.expires or 0) - now > 4 * DAY
    assert DAY < (fact.expires or 0) - now < 3 * DAY
    assert never.expires is None

    async def recalled() -> set[str]:
        return {one.id for one in (await bank.recall("the port of staging", top_k=9)).lessons}

    assert await recalled() == {soon.id, never.id, fact.id}
    assert [one.id for one in await bank.list(Selection(expired=True))] == [old.id]
    assert {one.id for one in await bank.list(Selection(expired=False))} == {soon.id, never.id, fact.id}
    await bank.edit(soon.id, expires=time.time() + 0.3)  # while the index is in memory
    until = time.monotonic() + 20
    while soon.id in await recalled():
        assert time.monotonic() < until
    await bank.edit(soon.id, expires="30d")
    assert soon.id in await recalled()
    await bank.add("Staging", "Staging runs on port 8080.", expires="3d")  # learned again, so it is renewed
    assert old.id in await recalled()
    assert await bank.list(Selection(expired=True)) == ()
    assert fact.id not in {one.id for one in await bank.notebook(now + 3 * DAY)}


async def test_a_day_is_the_day_that_is_shown_and_what_a_person_set_is_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        bank = open_bank("a", store=memory, settings={"embedder": "none", "threshold": 0.0}, project="shop")
        dated = await bank.add("Port", "The port is 9090.", date="2026-01-31", expires="21260131")
        assert "as of 2026-01-31" in (await bank.recall("port")).formatted_prompt
        again = await bank.add("Port", "The port is 9090.")
        assert (again.id, again.expires) == (dated.id, dated.expires)
        with pytest.raises(InvalidInput, match="is not a time"):
            await bank.add("Port", "The port is 1.", expires="2026")
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_facts_that_contradict_each_other_are_marked_the_newer_first(memory: Memory) -> None:
    bank = open_bank("a", store=memory, settings={"embedder": "none", "threshold": 0.0}, project="shop")
    new = await bank.add("Port of staging", "The port of staging is 9090.", nature="fact", date="2026-03-01")
    old = await bank.add("port of staging", "The port of staging is 8080.", nature="fact", date="2025-01-01")
    found = await bank.recall(Task("port of staging"))
    assert [one.id for one in found.lessons] == [new.id, old.id]
    first, second = found.formatted_prompt.split("9090")
    assert "as of 2026-03-01" in first
    assert "as of 2025-01-01" in second
    assert "a newer fact from 2026-03-01 contradicts it" in second
    assert [one.id for one in await bank.notebook()] == [new.id, old.id]
    newest = await bank.add("Port of staging", "The port of staging is 9999.", nature="fact")
    assert {one.state for one in await memory.lessons.get("a", [new.id, old.id])} == {"superseded"}
    found = await bank.recall(Task("port of staging"))
    assert [one.id for one in found.lessons] == [newest.id]
    assert "as of" not in found.formatted_prompt  # a fact without a date costs no words


async def test_hooks_do_not_show_what_has_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    async with open_bank("project:shop", store=open_store(tmp_path / "mulligan.db").memory) as bank:
        await bank.add("Over", "The old server.", expires=time.time() - DAY)
        await bank.add("Now", "The new server.", expires=time.time() + DAY, date="2026-01-31T12:00Z")
        await bank.add("Always", "Any server.")
    reader = Reader("project:shop")
    shown = shown_text(reader.kept())
    reader.close()
    assert ("- Now (as of 2026-01-31)\n" in shown, "- Always\n" in shown, "Over" in shown) == (True, True, False)


async def test_a_lesson_that_a_stranger_changes_is_quarantined(memory: Memory) -> None:
    bank = open_bank("a", store=memory, settings={"embedder": "none"}, project="shop")
    mine = await bank.add("Mine", "As I wrote it.")
    theirs = await bank.receive(replace(mine, content="As they wrote it."), mine)
    assert (theirs.state, theirs.content) == ("quarantined", "As they wrote it.")
    assert [one.change for one in await bank.history(mine.id)] == ["added", "quarantined"]
