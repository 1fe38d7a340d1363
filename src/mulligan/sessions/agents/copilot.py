"""GitHub Copilot CLI, as its documentation has it. A payload does not name its event: the hook's command does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import (
    STOP,
    CodingAgent,
    Hook,
    Old,
    Payload,
    Settings,
    command_of,
    fields,
    first,
    stem,
    text,
)
from mulligan.sessions.events import Notice
from mulligan.sessions.records import (
    Record,
    arguments,
    background_id,
    inner,
    own,
    records,
    sample,
    seconds,
    text_at,
    unshortened,
)

if TYPE_CHECKING:
    from typing import Any


_EXIT = r"\n?<(?:exited with exit code|shellId: \S+ completed with exit code) (-?\d+)>\s*\Z"
_GOES_ON = r"<command with shellId: \S+ is still running|<shellId: \S+ is still running"


class Copilot(CodingAgent):
    name, title, tried = "copilot", "GitHub Copilot CLI", False
    hooks = (
        Hook("sessionStart", "start", timeout=5),
        Hook("userPromptSubmitted", "prompt", timeout=5),
        Hook("preToolUse", "before_tool", timeout=5),
        Hook("postToolUseFailure", "failure", timeout=5),
        Hook("agentStop", "stop", timeout=STOP),
        Hook("sessionEnd", "end", timeout=5),
    )
    settings = Settings("~/.copilot", "COPILOT_HOME", "", ".github/hooks/mulligan.json", new='{\n  "version": 1\n}\n')
    takes_text = ("sessionStart", "postToolUseFailure")
    stop, before_tool = "agentStop", "preToolUse"
    holds_in_row = 8
    says_held = False
    asks = True
    grows = True
    logs = "session-state/*/events.jsonl"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment = self.moment(event)
        if moment is None:
            return None
        folder = text(payload, "cwd")
        return Notice(
            self.name,
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

    def _context(self, notice: Notice, text: str) -> str:
        return json.dumps({"additionalContext": text})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        return json.dumps({"permissionDecision": decision, "permissionDecisionReason": reason})

    def entry(self, hook: Hook, command: str) -> dict[str, Any]:
        return {"type": "command", "bash": command, **self._matcher(hook), **self._limit(hook, "timeoutSec")}

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        yield Old(self.name, stem(os.path.dirname(path)), path, first(head, "data", "context", "cwd"), at)

    def session(self, head: Sequence[Record]) -> str:
        return first([one for one in head if one.get("type") == "session.start"], "data", "sessionId")

    def recognises(self, text: str) -> bool:
        return any(one.get("type") in ("session.start", "user.message") and "data" in one for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        folder, called = "", dict[str, str]()
        turns: list[Turn] = []
        for one in records(text):
            data, at = inner(one, "data"), seconds(one.get("timestamp"))
            folder = text_at(data, "context", "cwd") or folder
            turns += _turns(one, data, called, at, folder)
        return turns


def _turns(record: Record, data: Record, called: dict[str, str], at: float, folder: str) -> Iterator[Turn]:
    """called: the names of the tools by the ids of their calls."""
    kind, id = record.get("type"), text_at(data, "toolCallId")
    if kind in ("user.message", "assistant.message"):
        if said := own(text_at(data, "content")):
            yield Turn(
                "user" if kind == "user.message" else "assistant", said, "", text_at(record, "id"), None, at, folder
            )
    elif kind == "tool.execution_start":
        called[id] = text_at(data, "toolName")
        yield Turn("assistant", arguments(data.get("arguments")), called[id], id, None, at, folder)
    elif kind == "tool.execution_complete":
        output = own(text_at(data, "result", "content") or text_at(data, "error", "message"))
        failed: bool | None = data.get("success") is False
        if ended := re.search(_EXIT, output):
            output, failed = output[: ended.start()], int(ended[1]) != 0
        elif re.search(_GOES_ON, output) or background_id(output) is not None:
            failed = None
        shown = unshortened(output, os.path.join(os.environ.get("TMPDIR", "/tmp"), "copilot-tool-output"))
        yield Turn("tool", shown, called.get(id, ""), id, failed, at, folder)


AGENT = Copilot()
