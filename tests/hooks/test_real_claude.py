"""Claude Code itself, with hooks, against a scripted model."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from agent_story import (
    LOOKS,
    REASON,
    SHOWN,
    fails_again,
    is_asked_why,
    is_given_back,
    learns_and_is_shown,
    taught,
)
from coding_agents import CLAUDE, FAILS, MENDS, desk, small_disk

from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import FILE
from mulligan.hooks.project import project_id

pytestmark = pytest.mark.slow

ODD = '{"theme":"dark",\n\n  "hooks": {"Stop": [ {"hooks": [{"type": "command", "command": "true"}]} ]}}'


async def test_what_one_session_overcomes_the_next_is_shown(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        settings = at.home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(ODD)
        await is_given_back(at, settings)
        await at.mulligan("hooks", "install", "claude", "--yes")
        await learns_and_is_shown(at)
        await at.mulligan("hooks", "uninstall", "claude", "--yes")
        assert SHOWN not in (await fails_again(at))[1].text


async def test_where_the_store_hangs_and_a_setting_is_broken_the_agent_goes_on_and_status_says_so(
    tmp_path: Path,
) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await at.mulligan("hooks", "install", "claude", "--yes")
        (at.project / "mulligan.toml").write_text("[memory\n")
        os.mkfifo(tmp_path / "hangs.db")  # who opens it to read waits for a writer
        at.env |= {"MULLIGAN_STORE": str(tmp_path / "hangs.db"), "MULLIGAN_HOOKS_SECONDS": "1"}
        assert len(await at.session("Write the report.", [FAILS, MENDS, FAILS])) == 4
        del at.env["MULLIGAN_STORE"], at.env["MULLIGAN_HOOKS_SECONDS"]
        said = await at.mulligan("hooks", "status")
        assert "claude PostToolUseFailure: TimeoutError: took longer than 1.0 seconds" in said
        await at.mulligan("learn", "--since", "1d")
        with Journal(str(tmp_path / "mulligan" / FILE)) as journal:
            journal.set("withhold", "a lot")
        assert len(await fails_again(at)) == 2
        assert "claude PostToolUseFailure: ValueError: could not convert string to float: 'a lot'" in await at.mulligan(
            "hooks", "status"
        )


async def test_on_a_full_disk_the_agent_goes_on_and_status_says_so(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at, small_disk(tmp_path / "mulligan", at.project) as disk:
        at.within = disk.enter
        await at.mulligan("hooks", "install", "claude", "--yes")
        assert len(await at.session("Write the report.", [FAILS, MENDS, FAILS])) == 4
        await taught(at)
        await disk.fill()
        assert SHOWN not in (await fails_again(at))[1].text, "what cannot be noted is not shown"
        said = await at.mulligan("hooks", "status")
        assert "claude PostToolUseFailure: OperationalError: " in said
        assert f"so nothing is shown or learned: the disk of {disk.folder} is full" in said
        await disk.empty()
        assert MENDS in (await fails_again(at))[1].text.partition(SHOWN)[2]
        assert "cannot be used" not in await at.mulligan("hooks", "status")


async def test_the_plugin_brings_hooks_a_skill_and_a_server_that_answers_hooks(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await at.mulligan("hooks", "package", str(tmp_path / "packages"))
        plugin = tmp_path / "packages" / "claude" / "mulligan"
        loaded, said = ("--plugin-dir", str(plugin)), tmp_path / "said"
        first = await at.session("Write the report.", [FAILS, MENDS, FAILS], *loaded)
        assert "mulligan:lessons" in first[0].text
        await taught(at)
        changed(plugin / ".mcp.json", "mcpServers", mulligan={"command": "false"})
        second = await fails_again(at, *loaded)
        assert MENDS in second[1].text.partition(SHOWN)[2], (
            "the server is dead: the agent goes on, and the program answers"
        )

        serve = f"mulligan serve --project --tools memory,hooks | tee {said}"
        changed(plugin / ".mcp.json", "mcpServers", mulligan={"command": "sh", "args": ["-c", serve]})
        hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
        served = [hook for hook in hooks["PostToolUseFailure"][0]["hooks"] if hook["type"] == "mcp_tool"]
        changed(plugin / "hooks" / "hooks.json", "hooks", PostToolUseFailure=[{"hooks": served}])
        listed = f"until grep -q inputSchema {said}; do sleep 0.1; done"
        third = await at.session("And again.", [listed, FAILS], *loaded)
        assert MENDS in third[2].text.partition(SHOWN)[2], "here no program answers"
        assert project_id(str(at.project)) in said.read_text(), "the server says which bank is its own"


def changed(file: Path, key: str, **fields: Any) -> None:
    settings = json.loads(file.read_text())
    settings[key] |= fields
    file.write_text(json.dumps(settings))


async def test_the_agent_is_asked_why_once_when_it_stops(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await is_asked_why(at)


async def test_its_own_command_line_says_why_with_hooks_off(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await at.mulligan("hooks", "install", "claude", "--yes")
        await at.mulligan("hooks", "set", "why", "command:claude -p --no-session-persistence")
        asks = "Next month another session goes on there"
        answer = json.dumps({"facts": [], "lessons": {"L1": REASON}})
        await at.session("Write the report.", [FAILS, MENDS, FAILS], when={asks: answer})
        for _ in range(LOOKS):
            if REASON in await at.mulligan("memory", "export", "--all-agents"):
                break
        else:
            raise AssertionError(await at.mulligan("hooks", "status"))
        seen = json.loads(await at.mulligan("hooks", "status", "--json"))["sessions"]
        assert len(seen) == 1, "the question is a session of its own, which no hook has seen"
