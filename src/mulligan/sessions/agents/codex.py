"""Codex CLI. Its hooks do not say whether a call failed: the end of the transcript does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, command_of, fields, plain, text
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any

_TAILS = (1 << 16, 1 << 20)
"""Bytes at the end of a transcript that are searched for a call."""
_EXITED = r"(?m)^Process exited with code (-?\d+)$"


class Codex(CodingAgent):
    name, title = "codex", "Codex CLI"
    hooks = (
        Hook("SessionStart", "start", timeout=5),
        Hook("SubagentStart", "start", timeout=5),
        Hook("UserPromptSubmit", "prompt", timeout=5),
        Hook("PreToolUse", "before_tool", "Bash", timeout=5),
        Hook("PostToolUse", "success", timeout=5),
        Hook("PostCompact", "compact", timeout=5),
        Hook("Stop", "stop", timeout=STOP),
        Hook("SubagentStop", "subagent_stop", timeout=5),
        Hook("SessionEnd", "end", timeout=3),
    )
    settings = Settings("~/.codex", "CODEX_HOME", "hooks.json", ".codex/hooks.json")
    grows = True
    command = "codex exec --sandbox workspace-write -"
    packaged = "codex plugin marketplace add {} && codex plugin add mulligan@mulligan"

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment = self.moment(event)
        if moment is None:
            return None
        subagent_id, call = text(payload, "agent_id"), text(payload, "tool_use_id")
        transcript, output = text(payload, "transcript_path"), ""
        if event == "PostToolUse":
            failed, output = _result(text(payload, "agent_transcript_path") or transcript, call)
            output = output or plain(payload.get("tool_response"))
            moment = "failure" if failed else "success"
        return Notice(
            self.name,
            moment,
            session=text(payload, "session_id"),
            folder=text(payload, "cwd"),
            event=event,
            transcript=text(payload, "agent_transcript_path") if subagent_id else transcript,
            source=text(payload, "source"),
            text=text(payload, "prompt", "last_assistant_message"),
            tool=text(payload, "tool_name"),
            command=command_of(fields(payload, "tool_input")),
            call=call,
            output=output if moment == "failure" else "",
            subagent=text(payload, "agent_type") if subagent_id else "",
            subagent_id=subagent_id,
            stop_hook_active=payload.get("stop_hook_active") is True,
        )

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "features.hooks" if fields(settings, "features").get("hooks") is False else ""


def _result(transcript: str, call: str) -> tuple[bool | None, str]:
    """Whether the call failed (None: the transcript does not say) and what it gave."""
    if not transcript or not call:
        return None, ""
    for size in _TAILS:
        for entry in _entries(transcript, call, size):
            item = fields(entry, "item")
            if text(item, "id") == call and text(item, "status"):
                return text(item, "status") == "failed", text(item, "aggregated_output")
            if text(entry, "call_id") != call:
                continue
            if isinstance(entry.get("exit_code"), int):  # `exec_command_end`
                return entry["exit_code"] != 0, text(entry, "aggregated_output")
            if found := re.search(_EXITED, output := plain(entry.get("output"))):
                return int(found[1]) != 0, output.partition("Output:\n")[2]
    return None, ""


def _entries(transcript: str, call: str, size: int) -> Iterator[Mapping[str, Any]]:
    """The payloads of the lines that name this call, the last first."""
    try:
        with open(transcript, "rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(length - size, 0))
            lines = file.read(size).split(b"\n")
    except OSError:
        return
    for line in reversed(lines):
        if call.encode() in line:
            try:
                record: Any = json.loads(line)
            except ValueError:
                continue  # the first line is cut where the file is longer
            if isinstance(record, dict):
                yield fields(record, "payload")  # pyright: ignore[reportUnknownArgumentType]


AGENT = Codex()
