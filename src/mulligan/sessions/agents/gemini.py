"""Gemini CLI. A failed command is a tool's result that holds "Exit Code: n"; its limits are milliseconds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, command_of, fields, items, plain, text
from mulligan.sessions.events import Notice
from mulligan.text.exit_codes import exit_code

if TYPE_CHECKING:
    from typing import Any

_OWN = r"(?s)<hook_context>.*?(?:</hook_context>\s*|\Z)"


class Gemini(CodingAgent):
    name, title = "gemini", "Gemini CLI"
    hooks = (
        Hook("SessionStart", "start", timeout=5000),
        Hook("BeforeAgent", "prompt", timeout=5000),
        Hook("BeforeTool", "before_tool", "run_shell_command", 5000),
        Hook("AfterTool", "success", "run_shell_command", 5000),
        Hook("AfterAgent", "stop", timeout=STOP * 1000),
        Hook("SessionEnd", "end", timeout=5000),
    )
    settings = Settings("~/.gemini", "", "settings.json", ".gemini/settings.json")
    takes_text = ("SessionStart", "BeforeAgent", "AfterTool")
    stop, before_tool = "AfterAgent", "BeforeTool"
    command = "gemini --approval-mode auto_edit"
    packaged = "gemini extensions link {}"

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None:
            return None
        if event == "AfterTool":
            result = fields(payload, "tool_response")
            ended = exit_code(plain(result.get("llmContent")))
            if ended and ended[0] != 0:
                moment, output = "failure", ended[1]
            elif error := text(fields(result, "error"), "message"):
                moment, output = "failure", error
        return Notice(
            self.name,
            moment,
            session=text(payload, "session_id") or environ.get("GEMINI_SESSION_ID", ""),
            folder=environ.get("GEMINI_PROJECT_DIR", "") or text(payload, "cwd") or environ.get("GEMINI_CWD", ""),
            event=event,
            transcript=text(payload, "transcript_path"),
            source=text(payload, "source"),
            text=re.sub(_OWN, "", text(payload, "prompt_response" if event == "AfterAgent" else "prompt")).strip(),
            tool=text(payload, "tool_name"),
            command=command_of(fields(payload, "tool_input")),
            output=output,
            stop_hook_active=payload.get("stop_hook_active") is True,
        )

    def _hold(self, reason: str) -> str:
        return json.dumps({"decision": "deny", "reason": reason})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        return json.dumps({"decision": decision, "reason": reason})

    def entry(self, hook: Hook, command: str) -> dict[str, Any]:
        called = {"type": "command", "name": "mulligan", "command": command, **self._limit(hook)}
        return {**self._matcher(hook), "hooks": [called]}  # its /hooks panel lists the name

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        config = fields(settings, "hooksConfig")
        off = config.get("enabled") is False
        return (
            "hooksConfig.enabled" if off else "hooksConfig.disabled" if "mulligan" in items(config, "disabled") else ""
        )


AGENT = Gemini()
