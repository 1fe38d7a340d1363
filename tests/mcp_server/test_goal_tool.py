"""The tool for goals: an agent sees its goal and runs the check, and changes nothing."""

import asyncio
from pathlib import Path

import pytest
from goal_kit import Folder, folder

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.goals.state import Goals
from mulligan.mcp_server.http import Listening, serve_http
from mulligan.mcp_server.server import run_tool
from mulligan.mcp_server.tool import Call, Reply
from mulligan.mcp_server.tools import select_tools
from mulligan.mcp_server.tools.goal import TOOL


def called(**given: Json) -> Reply:
    async def call() -> Reply:
        service = Service()
        try:
            return await run_tool(TOOL, given, Call(service))
        finally:
            await service.close()

    return asyncio.run(call())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    for name in ("MULLIGAN_STORE", "CLAUDE_PROJECT_DIR", "GEMINI_CWD"):
        monkeypatch.delenv(name, raising=False)
    made = folder(tmp_path)
    monkeypatch.chdir(made.path)
    return made


def test_an_agent_sees_its_goal_and_runs_the_check(place: Folder) -> None:
    assert called().data == {"state": "none"}
    place.goal()
    assert (called().data["check"], called(action="status").data["state"]) == ("python3 check.py", "active")
    seen = called(action="check")
    assert seen.data["passed"] is False
    assert "bad-one" in seen.data["text"]
    place.write("words.txt", "good\n")
    assert called(action="check").data["passed"] is True
    assert place.now().state == "active", "only the end of a turn ends a goal"
    assert place.tries() == []


@pytest.mark.parametrize("action", ["set", "pause", "clear", "resume", "true", 7])
def test_whatever_changes_a_goal_is_refused_and_recorded(place: Folder, action: Json) -> None:
    place.goal()
    assert called(action=action, check="true").error
    with Goals() as goals:
        assert goals.log(1)[0].what.startswith("refused")
    assert (place.now().state, place.now().label) == ("active", "python3 check.py")


def test_it_is_served_when_it_is_named_and_over_stdio_only() -> None:
    assert "goal" not in select_tools("all")
    assert select_tools("goals") == ["goal"]
    with pytest.raises(InvalidInput, match="only over stdio"):
        asyncio.run(serve_http(Service(), "goals", Listening(transport="http", port=0), print))
