"""`mulligan memory history`: who changed which lesson."""

import getpass
import json
from pathlib import Path
from typing import Any

import pytest
from commands import Mulligan

from mulligan.app.config import load
from mulligan.app.memory import Bank
from mulligan.core.operations import acting_as, actor
from mulligan.store import open_store


def added(mulligan: Mulligan, title: str, agent: str = "") -> str:
    whose = ("--agent-id", agent) if agent else ()
    done = mulligan("memory", *whose, "add", "--title", title, "--content", "c")
    assert done.status == 0, done.err
    return done.out.strip()


def audit(mulligan: Mulligan, *options: str) -> list[dict[str, Any]]:
    shown = mulligan("memory", "history", "--json", *options)
    assert shown.status == 0, shown.err
    return json.loads(shown.out)


def test_changes_name_who_made_them_when_and_why(mulligan: Mulligan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    id = added(mulligan, "Test first")
    mulligan("memory", "edit", id, "--title", "Test before a change")
    monkeypatch.setattr(getpass, "getuser", lambda: "ben")
    mulligan("memory", "retire", id, "--why", "out of date")
    mulligan("memory", "retire", "--undo", id)
    found = audit(mulligan)
    assert [(one["change"], one["by"], one["why"]) for one in found] == [
        ("added", "cli anna", ""),
        ("edited", "cli anna", ""),
        ("retired", "cli ben", "out of date"),
        ("restored", "cli ben", ""),
    ]
    assert [one["title"] for one in found] == ["Test first", *["Test before a change"] * 3]
    assert {one["lesson"] for one in found} == {id}
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    assert [one["change"] for one in audit(mulligan, "--by", "anna")] == ["added", "edited"]
    assert audit(mulligan, "--since", "2999-01-01") == []
    page = mulligan("memory", "history").out
    assert "cli ben" in page
    assert "out of date" in page


def test_the_lessons_of_another_agent_are_not_told(mulligan: Mulligan) -> None:
    added(mulligan, "Of anna", "anna")
    added(mulligan, "Of ben", "ben")
    assert [one["title"] for one in audit(mulligan, "--agent-id", "anna")] == ["Of anna"]
    assert [one["agent_id"] for one in audit(mulligan, "--all-agents")] == ["anna", "ben"]
    assert "No lessons have been changed" in mulligan("memory", "history").err


def test_who_merges_and_who_undoes_it_is_named(mulligan: Mulligan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    ids = [added(mulligan, f"Title {n}") for n in range(2)]
    monkeypatch.setattr(getpass, "getuser", lambda: "ben")
    answer: Any = {
        "title": "Both",
        "description": "d",
        "content": "Do both.",
        "tags": [],
        "abstraction_level": 1,
        "query": "q",
    }
    Path("answer.json").write_text(json.dumps(answer))
    merged = mulligan("memory", "merge", *ids, "--answer", "answer.json")
    assert merged.status == 0, merged.err
    assert [(one["change"], one["by"]) for one in audit(mulligan)[2:]] == [("merged", "cli ben")] * 2
    (id,) = {lesson["id"] for lesson in json.loads(mulligan("memory", "list", "--json").out)}
    monkeypatch.setattr(getpass, "getuser", lambda: "cleo")
    assert mulligan("memory", "merge", "--undo", id).status == 0
    assert [(one["change"], one["by"]) for one in audit(mulligan, "--by", "cleo")] == [("unmerged", "cli cleo")] * 3


async def test_what_upkeep_and_nobody_in_particular_do_is_told_apart() -> None:
    async with Bank.open("") as bank:
        lesson = await bank.add(title="t", content="c", outcome="success")
        with acting_as("mcp token 1"):
            assert actor() == "mcp token 1"
            await bank.edit(lesson.id, content="d")
        assert actor() == ""
        await bank.edit(lesson.id, content="e")
        assert [one.by for one in await bank.decided() if one.change == "edited"] == ["mcp token 1", ""]


async def test_a_merge_in_the_background_is_the_banks_own() -> None:
    memory = open_store(load().store).memory
    async with Bank.open("", store=memory, settings={"merging": "voting"}) as bank:
        with acting_as("cli anna"):
            ids = [(await bank.add(title=f"t {n}", content=f"c {n}", outcome="success")).id for n in range(2)]
        await memory.queue.enqueue("merge", "", {"lessons": ids})
        assert await bank.work() >= 1
        assert [(one.change, one.by) for one in await bank.decided()][2:] == [("merged", "upkeep")] * 2
