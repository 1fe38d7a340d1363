"""The plug-ins and extensions: one source, the same hooks as `install` writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.core.errors import InvalidInput
from mulligan.hooks.packaging import package
from mulligan.hooks.project import project_id
from mulligan.sessions.agents import agent


def test_each_package_has_the_hooks_the_skill_and_the_server(tmp_path: Path) -> None:
    made = package(tmp_path / "out")
    assert [folder.name for folder in made] == ["claude", "codex", "gemini", "opencode"]
    for name, place in (("claude", "claude/mulligan"), ("codex", "codex/mulligan"), ("gemini", "gemini")):
        folder = tmp_path / "out" / place
        hooks = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
        assert list(hooks) == [hook.event for hook in agent(name).hooks]
        for event, ((group,),) in ((event, (groups,)) for event, groups in hooks.items()):
            served = [hook for hook in group["hooks"] if hook["type"] == "mcp_tool"]
            started = [hook["command"] for hook in group["hooks"] if hook["type"] == "command"]
            assert bool(served) == (name == "claude" and event in ("PreToolUse", "PostToolUseFailure"))
            assert all((hook["server"], hook["tool"]) == ("plugin:mulligan:mulligan", "hook") for hook in served)
            if name != "claude" or event != "PreToolUse":
                assert started == [f"mulligan-hook {name} {event}"], "no path of this machine"
        assert (folder / "skills" / "lessons" / "SKILL.md").read_text().startswith("---\nname: lessons\n")
    for file in ("claude/mulligan/.mcp.json", "codex/mulligan/.mcp.json", "gemini/gemini-extension.json"):
        server = json.loads((tmp_path / "out" / file).read_text())["mcpServers"]["mulligan"]
        assert server["command"] == "mulligan"
        assert "--project" in server["args"]
    assert '["mulligan-hook"]' in (tmp_path / "out" / "opencode" / "mulligan.js").read_text()


@pytest.mark.slow
def test_the_packaged_server_serves_the_bank_of_the_project(tmp_path: Path) -> None:
    package(tmp_path / "out")
    server = json.loads((tmp_path / "out" / "claude" / "mulligan" / ".mcp.json").read_text())["mcpServers"]["mulligan"]
    (tmp_path / "project").mkdir()
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    ran = subprocess.run(
        [sys.executable, "-m", server["command"], *server["args"]],
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}) + "\n",
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(tmp_path / "project")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = json.loads(ran.stdout.splitlines()[0])["result"]["instructions"]
    assert f"`{project_id(str(tmp_path / 'project'))}`" in said


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    package(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidInput, match="claude already exists"):
        package(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
