"""Claude Code."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, command_of, fields, items, text
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any

_EXIT = r"\A(?:Error: )?Exit code -?\d+[ \t]*(?:\n|\Z)"


class Claude(CodingAgent):
    name, title = "claude", "Claude Code"
    hooks = (
        Hook("SessionStart", "start", timeout=5),
        Hook("SubagentStart", "start", timeout=5),
        Hook("UserPromptSubmit", "prompt", timeout=5),
        Hook("PreToolUse", "before_tool", "Bash", timeout=5),
        Hook("PostToolUseFailure", "failure", timeout=5),
        Hook("Stop", "stop", timeout=STOP),
        Hook("SubagentStop", "subagent_stop", timeout=5),
        Hook("SessionEnd", "end", timeout=5),
    )
    settings = Settings(
        "~/.claude", "CLAUDE_CONFIG_DIR", "settings.json", ".claude/settings.json", ".claude/settings.local.json"
    )
    holds_in_row = 8
    asks = True
    grows = True
    command = "claude -p --permission-mode acceptEdits"
    packaged = "claude plugin marketplace add {} && claude plugin install mulligan@mulligan"

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment = self.moment(event)
        if moment is None or (event == "PostToolUseFailure" and payload.get("is_interrupt") is True):
            return None
        subagent_id = text(payload, "agent_id")  # a session of `claude --agent` has a type, but no id
        return Notice(
            self.name,
            moment,
            session=text(payload, "session_id"),
            folder=environ.get("CLAUDE_PROJECT_DIR", "") or text(payload, "cwd"),  # `cd` moves only the second
            event=event,
            transcript=text(payload, "agent_transcript_path" if subagent_id else "transcript_path"),
            source=text(payload, "source"),
            text=text(payload, "prompt", "last_assistant_message"),
            tool=text(payload, "tool_name"),
            command=command_of(fields(payload, "tool_input")),
            call=text(payload, "tool_use_id"),
            output=re.sub(_EXIT, "", text(payload, "error")),
            subagent=text(payload, "agent_type") if subagent_id else "",
            subagent_id=subagent_id,
            stop_hook_active=payload.get("stop_hook_active") is True,
            waits=bool(items(payload, "background_tasks")),
        )

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "disableAllHooks" if settings.get("disableAllHooks") else ""


AGENT = Claude()
