"""Cursor, as its documentation has it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import (
    CodingAgent,
    Hook,
    Payload,
    Settings,
    command_of,
    fields,
    items,
    text,
)
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any


class Cursor(CodingAgent):
    name, title, tried = "cursor", "Cursor", False
    hooks = (
        Hook("sessionStart", "start"),
        Hook("beforeSubmitPrompt", "prompt"),
        Hook("beforeShellExecution", "before_tool"),
        Hook("postToolUse", "success"),
        Hook("postToolUseFailure", "failure"),
        Hook("stop", "stop"),
        Hook("subagentStop", "subagent_stop"),
        Hook("sessionEnd", "end"),
    )
    settings = Settings("~/.cursor", "", "hooks.json", ".cursor/hooks.json", new='{\n  "version": 1\n}\n')
    takes_text = ("sessionStart", "postToolUse")
    stop, before_tool = "stop", "beforeShellExecution"
    holds_in_row = 5
    readable = False

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None or payload.get("is_interrupt") is True:
            return None
        if event == "postToolUse":
            result = fields(payload, "tool_output")
            if result.get("exitCode") not in (0, None):
                moment = "failure"
                output = "\n".join(filter(None, (text(result, "stderr"), text(result, "stdout", "output"))))
        elif moment == "failure":
            output = text(payload, "error_message", "error")
        root = next(iter(items(payload, "workspace_roots")), "")
        subagent_id = text(payload, "subagent_id")
        return Notice(
            self.name,
            moment,
            session=text(payload, "conversation_id", "session_id"),
            folder=text(payload, "cwd") or str(root) or environ.get("CURSOR_PROJECT_DIR", ""),
            event=event,
            transcript=text(payload, "agent_transcript_path" if subagent_id else "transcript_path"),
            source=text(payload, "source"),
            text=text(payload, "prompt"),
            tool=text(payload, "tool_name"),
            command=text(payload, "command") or command_of(fields(payload, "tool_input")),
            call=text(payload, "tool_use_id"),
            output=output,
            subagent=text(payload, "subagent_type") if subagent_id else "",
            subagent_id=subagent_id,
            stop_hook_active=bool(payload.get("loop_count")),
        )

    def _context(self, notice: Notice, text: str) -> str:
        return json.dumps({"additional_context": text})

    def _hold(self, reason: str) -> str:
        return json.dumps({"followup_message": reason})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        return json.dumps({"permission": decision, "user_message": reason, "agent_message": reason})

    def entry(self, hook: Hook, command: str) -> dict[str, Any]:
        return {"command": command, **self._matcher(hook), **self._limit(hook)}


AGENT = Cursor()
