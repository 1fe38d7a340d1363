"""The tool for hooks: what `mulligan-hook` answers, from a server that runs already."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mulligan.app.memory import open_bank
from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import project_id
from mulligan.mcp_server.http import Listening, serve_http
from mulligan.mcp_server.server import run_tool
from mulligan.mcp_server.tool import Call, Reply
from mulligan.mcp_server.tools import select_tools
from mulligan.mcp_server.tools.hook import TOOL
from mulligan.sessions.signature import digest, signature

OUTPUT = "ModuleNotFoundError: No module named 'yaml'"


def failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Json]:
    """The arguments of a failed command in this folder, with a home of its own."""
    monkeypatch.setenv("MULLIGAN_HOME", str(folder / "home"))
    for name in ("MULLIGAN_STORE", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return {
        "agent": "claude", "hook_event_name": "PostToolUseFailure", "session_id": "s1", "cwd": str(folder),
        "tool_use_id": "c1", "command": "python app.py", "error": f"Exit code 1\n{OUTPUT}",
    }  # fmt: skip


def called(given: dict[str, Json], bound: str | None = None) -> Reply:
    async def call() -> Reply:
        service = Service()
        try:
            return await run_tool(TOOL, given, Call(service, bound))
        finally:
            await service.close()

    return asyncio.run(call())


def test_it_is_served_only_when_it_is_named() -> None:
    assert "hook" not in select_tools("all")
    assert "hook" in select_tools("memory,hooks")
    assert select_tools("hook") == ["hook"]


def test_what_a_template_gives_as_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = failure(tmp_path, monkeypatch) | {
        "tool_input": '{"command": "python app.py"}',
        "agent_id": "",
        "prompt": "",
    }
    called(given | {"is_interrupt": "true"})
    with Journal() as journal:
        assert journal.sessions() == [], "what a person interrupts is no failure"
    called(given | {"is_interrupt": "false"})
    with Journal() as journal:
        (session,) = journal.sessions()
        assert (session.session, session.subagent) == ("s1", "")


def test_it_answers_as_the_program_does_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = failure(tmp_path, monkeypatch)

    async def both() -> list[str]:
        async with open_bank(project_id(str(tmp_path)), embedder="none") as bank:
            context = {"errors": [digest(signature(OUTPUT))]}
            await bank.add("python: no yaml", "install pyyaml", nature="fact", confirmed=False, context=context)
        service = Service()
        call = Call(service)
        try:
            return [(await TOOL.call(given, call)).text for _ in range(2)]
        finally:
            await service.close()

    first, second = asyncio.run(both())
    answer = json.loads(first)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUseFailure"
    assert "install pyyaml" in answer["additionalContext"]
    assert second == "{}"


def test_the_switch_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = failure(tmp_path, monkeypatch)
    monkeypatch.setenv("MULLIGAN_HOOKS", "off")
    assert called(given).text == "{}"
    with Journal() as journal:
        assert journal.sessions() == []


def test_a_server_that_is_bound_reads_no_other_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = failure(tmp_path, monkeypatch)
    refused = called(given, "project:other")
    assert refused.error
    assert "project:other" in refused.text
    with Journal() as journal:
        assert journal.sessions() == []
    assert not called(given, project_id(str(tmp_path))).error


def test_it_is_not_served_over_http() -> None:
    with pytest.raises(InvalidInput, match="stdio"):
        asyncio.run(serve_http(Service(), "memory,hooks", Listening(transport="http", port=0), print))


def test_it_does_not_claim_to_change_nothing() -> None:
    annotations: Json = TOOL.definition["annotations"]
    assert annotations["readOnlyHint"] is False


def test_any_error_is_noted_and_the_agent_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = failure(tmp_path, monkeypatch)

    async def add() -> None:
        async with open_bank(project_id(str(tmp_path)), embedder="none") as bank:
            context = {"errors": [digest(signature(OUTPUT))]}
            await bank.add("python: no yaml", "install pyyaml", nature="fact", confirmed=False, context=context)

    asyncio.run(add())
    with closing(sqlite3.connect(tmp_path / "home" / "mulligan.db")) as db, db:
        db.execute("UPDATE log SET record = json_set(record, '$.created', json('[1]'))")
    reply = called(given)
    assert (reply.text, reply.error) == ("{}", False)
    with Journal() as journal:
        assert [one.what.partition(":")[0] for one in journal.errors()] == ["TypeError"]


def test_workers_that_have_ended_are_waited_for() -> None:
    code = (
        "import os, sys\nfrom mulligan.hooks.entry import start_worker\n"
        "sys.executable, pids = '/bin/true', []\n"
        "for _ in range(2):\n    start_worker({})\n"
        "    pids.append(os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid)\n"
        "print(len(set(pids)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "2\n"
