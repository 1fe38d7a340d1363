"""opencode. Its hooks are functions of a plug-in; ours hands the program what they were called with, as JSON:

    {"event": "tool.execute.after", "directory": "…", "input": {…}, "output": {…}}

and the program answers {"text": "…"} for the model, or {"deny": "…"} for what the plug-in should throw. The events are
`session.created`, `chat.message`, `tool.execute.before`, `tool.execute.after`, `session.idle`, `session.compacted` and
`dispose`; for one of the bus, `input` holds its properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.sessions.agents import CodingAgent, Hook, Payload, Settings, command_of, fields, items, text
from mulligan.sessions.events import Notice


class Opencode(CodingAgent):
    name, title = "opencode", "opencode"
    hooks = (
        Hook("session.created", "start"),
        Hook("chat.message", "prompt"),
        Hook("tool.execute.before", "before_tool", "bash"),
        Hook("tool.execute.after", "success", "bash"),
        Hook("session.compacted", "compact"),
        Hook("session.idle", "stop"),
        Hook("dispose", "end"),
    )
    settings = Settings(
        "~/.config/opencode", "OPENCODE_CONFIG_DIR", "plugins/mulligan.js", ".opencode/plugins/mulligan.js"
    )
    takes_text = ("session.created", "chat.message", "tool.execute.after")
    stop, before_tool = "session.idle", "tool.execute.before"
    holds = False
    command = "opencode run {prompt}"
    packaged = "cp {}/mulligan.js ~/.config/opencode/plugins/"

    def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "event", "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None:
            return None
        given, result = fields(payload, "input"), fields(payload, "output")
        if event == "tool.execute.after":
            code = fields(result, "metadata").get("exit")
            if isinstance(code, int) and code != 0:
                moment, output = "failure", text(result, "output") or text(fields(result, "metadata"), "output")
        info = fields(given, "info")
        own = [fields({"part": part}, "part") for part in items(result, "parts")]
        said = [text(part, "text") for part in own if part.get("type") == "text" and not part.get("synthetic")]
        return Notice(
            self.name,
            moment,
            session=text(given, "sessionID") or text(info, "id") or text(payload, "session"),
            folder=text(payload, "directory") or text(info, "directory"),
            event=event,
            transcript=text(payload, "transcript"),
            text="\n".join(filter(None, said)),
            tool=text(given, "tool"),
            command=command_of(fields(given, "args") or fields(result, "args")),
            call=text(given, "callID"),
            output=output,
        )

    def _context(self, notice: Notice, text: str) -> str:
        return json.dumps({"text": text})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        return json.dumps({decision: reason})


AGENT = Opencode()
