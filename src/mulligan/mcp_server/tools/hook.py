"""`hook`: the answer of `mulligan-hook` from a server that runs already, for agents whose hooks can call a tool."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.hooks import is_off
from mulligan.hooks.entry import WAIT, answer, matters
from mulligan.hooks.journal import Journal, swallow
from mulligan.mcp_server.tool import Call, Reply, Tool, definition, failed
from mulligan.sessions.agents import NAMES, CodingAgent, agent


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    name = arguments.get("agent")
    if not isinstance(name, str) or name not in NAMES:
        raise InvalidInput(f"agent must be one of {', '.join(NAMES)}, not {name!r:.80}.")
    payload = {**arguments, "tool_input": arguments.get("tool_input") or {"command": arguments.get("command")}}
    payload |= {flag: arguments[flag] == "true" for flag in _FLAGS if isinstance(arguments.get(flag), str)}
    if is_off(os.environ):
        return Reply({}, indent=None)
    try:
        text = await asyncio.to_thread(_answer, agent(name), payload, call.bound)
    except PermissionError as error:
        raise InvalidInput(str(error)) from None
    except Exception as error:  # as the program: the agent goes on, and `hooks status` says what went wrong
        await asyncio.to_thread(
            swallow, name, str(arguments.get("hook_event_name")), f"{type(error).__name__}: {error}"
        )
        text = ""
    return Reply(cast(dict[str, Json], json.loads(text or "{}")), indent=None)


_FLAGS = ("is_interrupt", "stop_hook_active")
"""Fields that are true or false, which a hook's `${...}` makes a text."""
_HELD: dict[str, Journal] = {}
"""Open as long as the server runs, by their files: what closes a file of SQLite last waits for the disk."""


def _answer(of: CodingAgent, payload: Mapping[str, Json], bound: str | None) -> str:
    notice = of.notice(payload, os.environ)
    if notice is None or not matters(notice):
        return ""
    with Journal(wait=WAIT) as journal:
        if journal.path not in _HELD:
            _HELD[journal.path] = Journal(wait=WAIT)
        return answer(of, notice, journal, os.environ, bound=bound)


TOOL = Tool(definition("hook"), call, failed, listed=lambda service: False)  # to models, it is none
