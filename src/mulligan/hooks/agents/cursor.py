"""Cursor, as its documentation has it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.hooks.agents import Hook, Payload, Settings, command_of, fields, items, text
from mulligan.hooks.events import Moment, Notice

NAME, TITLE, TRIED = "cursor", "Cursor", False
HOOKS = (
    Hook("sessionStart", "start"),
    Hook("beforeShellExecution", "before_tool"),
    Hook("postToolUse", "success"),
    Hook("postToolUseFailure", "failure"),
    Hook("stop", "stop"),
    Hook("subagentStop", "subagent_stop"),
    Hook("sessionEnd", "end"),
)
SETTINGS = Settings("~/.cursor", "", "hooks.json", ".cursor/hooks.json")

_MOMENTS: Mapping[str, Moment] = {hook.event: hook.moment for hook in HOOKS}
_TAKES_TEXT = {"sessionStart", "postToolUse"}


def read(payload: Payload, environ: Mapping[str, str]) -> Notice | None:
    event = text(payload, "hook_event_name")
    moment, output = _MOMENTS.get(event), ""
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
        NAME,
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
    )


def answer(notice: Notice, text: str) -> str:
    return json.dumps({"additional_context": text}) if notice.event in _TAKES_TEXT else ""


def ask(notice: Notice, question: str) -> str:
    return ""  # nobody would read its answer: the transcripts are not read


def deny(notice: Notice, reason: str) -> str:
    if notice.event != "beforeShellExecution":
        return ""
    return json.dumps({"permission": "deny", "user_message": reason, "agent_message": reason})
