"""opencode. Its hooks are functions of a plug-in; ours hands the program what they were called with, as JSON:

    {"event": "tool.execute.after", "directory": "…", "input": {…}, "output": {…}}

and the program answers {"text": "…"} for the model, or {"deny": "…"} for what the plug-in should throw. The events are
`session.created`, `chat.message`, `tool.execute.before`, `tool.execute.after`, `session.idle`, `session.compacted` and
`dispose`; for one of the bus, `input` holds its properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mulligan.hooks.agents import Hook, Payload, Settings, command_of, fields, items, text
from mulligan.hooks.events import Moment, Notice

NAME, TITLE, TRIED = "opencode", "opencode", True
HOOKS = (
    Hook("session.created", "start"),
    Hook("chat.message", "prompt"),
    Hook("tool.execute.before", "before_tool", "bash"),
    Hook("tool.execute.after", "success", "bash"),
    Hook("session.compacted", "compact"),
    Hook("session.idle", "stop"),
    Hook("dispose", "end"),
)
SETTINGS = Settings("~/.config/opencode", "OPENCODE_CONFIG_DIR", "plugins/mulligan.js", ".opencode/plugins/mulligan.js")

_MOMENTS: Mapping[str, Moment] = {hook.event: hook.moment for hook in HOOKS}
_TAKES_TEXT = {"session.created", "chat.message", "tool.execute.after"}


def read(payload: Payload, environ: Mapping[str, str]) -> Notice | None:
    event = text(payload, "event", "hook_event_name")
    moment, output = _MOMENTS.get(event), ""
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
        NAME,
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


def answer(notice: Notice, text: str) -> str:
    return json.dumps({"text": text}) if notice.event in _TAKES_TEXT else ""


def ask(notice: Notice, question: str) -> str:
    return ""


def deny(notice: Notice, reason: str) -> str:
    return json.dumps({"deny": reason}) if notice.event == "tool.execute.before" else ""
