"""GitHub Copilot CLI, as its documentation has it. A payload does not name its event: the hook's command does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.core.light import TYPE_CHECKING
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, command_of, fields, text
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any


class Copilot(CodingAgent):
    name, title, tried = "copilot", "GitHub Copilot CLI", False
    hooks = (
        Hook("sessionStart", "start", timeout=5),
        Hook("preToolUse", "before_tool", timeout=5),
        Hook("postToolUseFailure", "failure", timeout=5),
        Hook("agentStop", "stop", timeout=STOP),
        Hook("sessionEnd", "end", timeout=5),
    )
    settings = Settings("~/.copilot", "COPILOT_HOME", "", ".github/hooks/mulligan.json", new='{\n  "version": 1\n}\n')
    takes_text = ("sessionStart", "postToolUseFailure")
    stop, before_tool = "agentStop", "preToolUse"
    says_held = False
    asks = True
    grows = True

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
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


AGENT = Copilot()
