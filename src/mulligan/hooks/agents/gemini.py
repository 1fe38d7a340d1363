"""Gemini CLI. A failed command is a tool's result that holds "Exit Code: n"; its limits are milliseconds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from mulligan.hooks.agents import Hook, Payload, Settings, command_of, fields, plain, text, with_context
from mulligan.hooks.events import Moment, Notice
from mulligan.text.exit_codes import exit_code

NAME, TITLE, TRIED = "gemini", "Gemini CLI", True
HOOKS = (
    Hook("SessionStart", "start", timeout=5000),
    Hook("BeforeAgent", "prompt", timeout=5000),
    Hook("BeforeTool", "before_tool", "run_shell_command", 5000),
    Hook("AfterTool", "success", "run_shell_command", 5000),
    Hook("AfterAgent", "stop", timeout=5000),
    Hook("SessionEnd", "end", timeout=5000),
)
SETTINGS = Settings("~/.gemini", "", "settings.json", ".gemini/settings.json")

_MOMENTS: Mapping[str, Moment] = {hook.event: hook.moment for hook in HOOKS}
_TAKES_TEXT = {"SessionStart", "BeforeAgent", "AfterTool"}
_OWN = re.compile(r"<hook_context>.*?(?:</hook_context>\s*|\Z)", re.DOTALL)


def read(payload: Payload, environ: Mapping[str, str]) -> Notice | None:
    event = text(payload, "hook_event_name")
    moment, output = _MOMENTS.get(event), ""
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
        NAME,
        moment,
        session=text(payload, "session_id") or environ.get("GEMINI_SESSION_ID", ""),
        folder=environ.get("GEMINI_PROJECT_DIR", "") or text(payload, "cwd") or environ.get("GEMINI_CWD", ""),
        event=event,
        transcript=text(payload, "transcript_path"),
        source=text(payload, "source"),
        text=_OWN.sub("", text(payload, "prompt_response" if event == "AfterAgent" else "prompt")).strip(),
        tool=text(payload, "tool_name"),
        command=command_of(fields(payload, "tool_input")),
        output=output,
        stop_hook_active=payload.get("stop_hook_active") is True,
    )


def answer(notice: Notice, text: str) -> str:
    return with_context(notice.event, text) if notice.event in _TAKES_TEXT else ""


def ask(notice: Notice, question: str) -> str:
    return json.dumps({"decision": "deny", "reason": question}) if notice.event == "AfterAgent" else ""


def deny(notice: Notice, reason: str) -> str:
    return json.dumps({"decision": "deny", "reason": reason}) if notice.event == "BeforeTool" else ""
