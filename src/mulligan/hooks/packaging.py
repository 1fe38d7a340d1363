"""The plug-ins and extensions for coding agents, made from one source: the hooks that `install` writes, a skill, and
the MCP server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.hooks.install import PROGRAM, entries, plugin
from mulligan.sessions.agents import agent

NAME = "mulligan"
DESCRIPTION = "Shows how an earlier session overcame a failure when the same failure occurs again."
_SERVED = {"PreToolUse": False, "PostToolUseFailure": True}
"""Events at which Claude Code calls the plug-in's server, and whether it starts the program, too: the server may not
run yet, in the first seconds of a session. Of the two, one shows a lesson."""
_FIELDS = (
    "hook_event_name", "session_id", "transcript_path", "cwd", "tool_name", "tool_input", "tool_use_id", "error",
    "is_interrupt", "agent_id", "agent_type",
)  # fmt: skip
"""What the server gets then. Where an event does not have a field, Claude Code gives an empty text."""


def _servers(*tools: str) -> dict[str, Any]:
    return {"mcpServers": {NAME: {"command": "mulligan", "args": ["serve", "--project", "--tools", ",".join(tools)]}}}


def package(folder: Path) -> list[Path]:
    """Write the packages into a folder of their own each, and return these. Raises `InvalidInput` if one is there."""
    packages = {
        "claude": _claude(),
        "codex": _codex(),
        "gemini": _gemini(),
        "opencode": {"mulligan.js": plugin(PROGRAM)},
    }
    for name in packages:
        if (folder / name).exists():
            raise InvalidInput(f"{folder / name} already exists: choose another folder.")
    for name, texts in packages.items():
        for path, text in texts.items():
            file = folder / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return [folder / name for name in packages]


def _claude() -> dict[str, str]:
    hooks = entries(agent("claude"), PROGRAM)
    given = {"agent": "claude", **{field: f"${{{field}}}" for field in _FIELDS}}
    tool = {"type": "mcp_tool", "server": f"plugin:{NAME}:{NAME}", "tool": "hook", "input": given, "timeout": 5}
    for event, both in _SERVED.items():
        hooks[event] = [group | {"hooks": [tool, *group["hooks"]] if both else [tool]} for group in hooks[event]]
    inside = {
        ".claude-plugin/plugin.json": _json({**_about(), "author": {"name": "The Mulligan authors"}, "license": "MIT"}),
        "hooks/hooks.json": _json({"description": DESCRIPTION, "hooks": hooks}),
        "skills/lessons/SKILL.md": _skill(),
        ".mcp.json": _json(_servers("memory", "hooks")),
    }
    return _with_market(inside)


def _codex() -> dict[str, str]:
    parts = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    inside = {
        ".codex-plugin/plugin.json": _json({**_about(), **parts}),
        "hooks/hooks.json": _hooks("codex"),
        "skills/lessons/SKILL.md": _skill(),
        ".mcp.json": _json(_servers("memory")),
    }
    return _with_market(inside)


def _gemini() -> dict[str, str]:
    return {
        "gemini-extension.json": _json({**_about(), **_servers("memory")}),
        "hooks/hooks.json": _hooks("gemini"),
        "skills/lessons/SKILL.md": _skill(),
    }


def _with_market(inside: Mapping[str, str]) -> dict[str, str]:
    """A plug-in in a folder of its own, and the list of plug-ins that agents add before they install one of it."""
    listed = {"name": NAME, "source": f"./{NAME}", "description": DESCRIPTION}
    market = {"name": NAME, "owner": {"name": "Mulligan"}, "plugins": [listed]}
    return {
        ".claude-plugin/marketplace.json": _json(market),
        **{f"{NAME}/{path}": text for path, text in inside.items()},
    }


def _about() -> dict[str, str]:
    return {"name": NAME, "version": version("mulligan"), "description": DESCRIPTION}


def _hooks(name: str) -> str:
    return _json({"hooks": entries(agent(name), PROGRAM)})


def _skill() -> str:
    return files("mulligan.hooks").joinpath("packages", "SKILL.md").read_text("utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
