"""GitHub Copilot CLI, as its documentation has it. A payload does not name its event: the hook's command does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.hooks.agents import Hook, Payload, Settings, command_of, fields, text
from mulligan.hooks.events import Moment, Notice

NAME, TITLE, TRIED = "copilot", "GitHub Copilot CLI", False
HOOKS = (
    Hook("sessionStart", "start", timeout=5),
    Hook("preToolUse", "before_tool", timeout=5),
    Hook("postToolUseFailure", "failure", timeout=5),
    Hook("agentStop", "stop", timeout=5),
    Hook("sessionEnd", "end", timeout=5),
)
SETTINGS = Settings("~/.copilot", "COPILOT_HOME", "", ".github/hooks/mulligan.json")

_MOMENTS: Mapping[str, Moment] = {hook.event: hook.moment for hook in HOOKS}
_TAKES_TEXT = {"sessionStart", "postToolUseFailure"}


def read(payload: Payload, environ: Mapping[str, str]) -> Notice | None:
    event = text(payload, "hook_event_name")
    moment = _MOMENTS.get(event)
    if moment is None:
        return None
    folder = text(payload, "cwd")
    return Notice(
        NAME,
        moment,
        session=text(payload, "sessionId", "session_id") or f"in {folder}",
        folder=folder,
        event=event,
        transcript=text(payload, "transcriptPath"),
        source=text(payload, "source"),
        text=text(payload, "prompt", "initialPrompt"),
        tool=text(payload, "toolName"),
        command=command_of(fields(payload, "toolArgs")),
        call=text(payload, "toolCallId"),
        output=text(payload, "error") or text(fields(payload, "error"), "message"),
    )


def answer(notice: Notice, text: str) -> str:
    return json.dumps({"additionalContext": text}) if notice.event in _TAKES_TEXT else ""


def ask(notice: Notice, question: str) -> str:
    return ""  # nobody would read its answer: the transcripts are not read


def deny(notice: Notice, reason: str) -> str:
    if notice.event != "preToolUse":
        return ""
    return json.dumps({"permissionDecision": "deny", "permissionDecisionReason": reason})
