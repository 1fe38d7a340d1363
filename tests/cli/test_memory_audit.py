"""`mulligan memory audit`: who changed which lesson."""

import getpass
import json
from typing import Any

import pytest

from conftest import Mulligan
from mulligan.app.memory import Bank
from mulligan.core.operations import acting_as, actor


def added(mulligan: Mulligan, title: str, agent: str = "") -> str:
    whose = ("--agent-id", agent) if agent else ()
    done = mulligan("memory", *whose, "add", "--title", title, "--content", "c")
    assert done.status == 0, done.err
    return done.out.strip()


def audit(mulligan: Mulligan, *options: str) -> list[dict[str, Any]]:
    shown = mulligan("memory", "audit", "--json", *options)
    assert shown.status == 0, shown.err
    return json.loads(shown.out)


def test_changes_name_who_made_them_when_and_why(mulligan: Mulligan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    id = added(mulligan, "Test first")
    mulligan("memory", "edit", id, "--title", "Test before a change")
    monkeypatch.setattr(getpass, "getuser", lambda: "ben")
    mulligan("memory", "retire", id, "--why", "out of date")
    mulligan("memory", "restore", id)
    found = audit(mulligan)
    assert [(one["change"], one["by"], one["why"]) for one in found] == [
        ("added", "", ""),
        ("edited", "cli anna", ""),
        ("retired", "cli ben", "out of date"),
        ("restored", "cli ben", ""),
    ]
    assert [one["title"] for one in found] == ["Test first", *["Test before a change"] * 3]
    assert {one["lesson"] for one in found} == {id}
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    assert [one["change"] for one in audit(mulligan, "--by", "anna")] == ["edited"]
    assert audit(mulligan, "--since", "2999-01-01") == []
    page = mulligan("memory", "audit").out
    assert "cli ben" in page
    assert "out of date" in page


def test_the_lessons_of_another_agent_are_not_told(mulligan: Mulligan) -> None:
    added(mulligan, "Of anna", "anna")
    added(mulligan, "Of ben", "ben")
    assert [one["title"] for one in audit(mulligan, "--agent-id", "anna")] == ["Of anna"]
    assert [one["agent_id"] for one in audit(mulligan, "--all-agents")] == ["anna", "ben"]
    assert "Nobody changed" in mulligan("memory", "audit").err


async def test_what_upkeep_and_nobody_in_particular_do_is_told_apart() -> None:
    async with Bank.open("") as bank:
        lesson = await bank.add(title="t", content="c", outcome="success")
        with acting_as("mcp token 1"):
            assert actor() == "mcp token 1"
            await bank.edit(lesson.id, content="d")
        assert actor() == ""
        await bank.edit(lesson.id, content="e")
        assert [one.by for one in await bank.decided() if one.change == "edited"] == ["mcp token 1", ""]
