"""Qwen Code: the events of Claude Code with the tool results of Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, command_of, fields, plain, text
from mulligan.sessions.events import Notice
from mulligan.text.exit_codes import exit_code

if TYPE_CHECKING:
    from typing import Any


class Qwen(CodingAgent):
    name, title = "qwen", "Qwen Code"
    hooks = (
        Hook("SessionStart", "start", timeout=5000),
        Hook("UserPromptSubmit", "prompt", timeout=5000),
        Hook("PreToolUse", "before_tool", "run_shell_command", 5000),
        Hook("PostToolUse", "success", "run_shell_command", 5000),
        Hook("PostToolUseFailure", "failure", timeout=5000),
        Hook("Stop", "stop", timeout=STOP * 1000),
        Hook("SessionEnd", "end", timeout=5000),
    )
    settings = Settings("~/.qwen", "", "settings.json", ".qwen/settings.json")
    says_held = False
    ends = False
    grows = True
    command = "qwen --approval-mode auto-edit"

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None or payload.get("is_interrupt") is True:
            return None
        if event == "UserPromptSubmit" and not text(payload, "prompt"):
            return None  # it comes again after every tool result
        if event in ("PostToolUse", "PostToolUseFailure"):  # 0.24.4 has been seen to report failed commands as either
            result = text(payload, "error") or plain(fields(payload, "tool_response").get("llmContent"))
            ended = exit_code(result)
            if moment == "failure" or (ended and ended[0] != 0):
                moment, output = "failure", ended[1] if ended else result
        return Notice(
            self.name,
            moment,
            session=text(payload, "session_id"),
            folder=text(payload, "cwd"),
            event=event,
            transcript=text(payload, "transcript_path"),
            source=text(payload, "source"),
            text=text(payload, "prompt", "last_assistant_message"),
            tool=text(payload, "tool_name"),
            command=command_of(fields(payload, "tool_input")),
            call=text(payload, "tool_call_id", "tool_use_id"),  # the first stands in the transcript, too
            output=output,  # `stop_hook_active` says nothing: it is true at the first stop
        )

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "disableAllHooks" if settings.get("disableAllHooks") else ""


AGENT = Qwen()
