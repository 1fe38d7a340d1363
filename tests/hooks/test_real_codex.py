"""Codex CLI itself, with hooks, against a scripted model."""

import json
import sys
from pathlib import Path

import pytest
from agent_story import SHOWN, fails_again, is_asked_why, is_given_back, learns_and_is_shown
from coding_agents import CODEX, FAILS, MENDS, desk

pytestmark = pytest.mark.slow


async def test_what_one_session_overcomes_the_next_is_shown(tmp_path: Path) -> None:
    async with desk(CODEX, tmp_path) as at:
        config = at.home / ".codex" / "config.toml"
        await is_given_back(at, at.home / ".codex" / "hooks.json", config, installing=["--trust"])
        said = await at.mulligan("hooks", "install", "codex", "--yes")
        assert "type /hooks" in said
        await at.session("Write the report.", [FAILS, MENDS, FAILS])
        assert "none yet" in await at.mulligan("hooks", "status"), "Codex runs no hook that nobody trusts"
        (at.project / "orders.schema").unlink()
        said = await at.mulligan("hooks", "install", "codex", "--yes", "--trust")
        assert "trusted_hash" in said
        await learns_and_is_shown(at)
        await at.mulligan("hooks", "uninstall", "codex", "--yes")
        assert SHOWN not in (await fails_again(at))[1].text


async def test_the_agent_is_asked_why_once_when_it_stops(tmp_path: Path) -> None:
    async with desk(CODEX, tmp_path) as at:
        await is_asked_why(at)


async def test_a_hook_fails_that_gives_a_server_a_field_which_the_event_lacks(tmp_path: Path) -> None:
    """Why the plug-in starts the program: only `agent_id` tells a sub-agent, and the main agent's events lack it."""
    async with desk(CODEX, tmp_path) as at:
        words = json.dumps(["-m", "mulligan", "serve", "--tools", "hook"])
        home = json.dumps(at.env["MULLIGAN_HOME"])  # Codex gives servers a part of its environment alone
        with (at.home / ".codex" / "config.toml").open("a") as config:
            config.write(f"[mcp_servers.mulligan]\ncommand = {json.dumps(sys.executable)}\nargs = {words}\n")
            config.write(f"env = {{MULLIGAN_HOME = {home}}}\n")
        for more in ((), ("agent_id",)):
            names = ("hook_event_name", "session_id", "cwd", "transcript_path", "tool_use_id", *more)
            given = {"agent": "codex", **{name: f"${{{name}}}" for name in names}}
            hook = {"type": "mcp_tool", "server": "mulligan", "tool": "hook", "input": given, "timeout": 20}
            (at.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": {"PostToolUse": [{"hooks": [hook]}]}}))
            await at.session("Write the report.", [FAILS], "--dangerously-bypass-hook-trust")
            assert len(json.loads(await at.mulligan("hooks", "status", "--json"))["sessions"]) == 1
