"""`goal`: where the goal of this folder stands, and its check now. Setting one is for people: see `goals.person`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping

from mulligan.app.goals import in_json
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.goals.checks import check_now
from mulligan.goals.place import Place
from mulligan.goals.state import Goals
from mulligan.mcp_server.tool import Call, Reply, Tool, definition

ACTIONS = ("status", "check")


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    action = arguments.get("action", "status")
    if action not in ACTIONS:
        raise InvalidInput(f"'action' must be status or check, not {action!r:.80}. Only a person can change a goal.")
    place = Place(_folder())
    with Goals() as goals:
        there = place.goal(goals.standing())
        if there is None:
            return Reply({"state": "none"})
        if action == "status":
            return Reply(json.loads(in_json(goals, there)))
    if not there.settings["check"]:
        raise InvalidInput("A model judges this goal, but only when a turn is about to end.")
    feedback = await asyncio.to_thread(check_now, there, place.where(there), place.top)
    return Reply({"passed": feedback.passed, "text": feedback.text, "notes": list(feedback.notes)})


def _folder() -> str:
    return os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("GEMINI_CWD") or os.getcwd()


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    action = arguments.get("action", "status")
    if action not in ACTIONS:
        with Goals() as goals:
            goals.note("", "agent", f"refused in {_folder()}: {str(action)[:200]!r} over MCP")
    return Reply({"error": message}, error=True)


TOOL = Tool(definition("goal"), call, failed)
