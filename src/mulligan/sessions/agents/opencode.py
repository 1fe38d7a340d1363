"""opencode. Its hooks are functions of a plug-in; ours hands the program what they were called with, as JSON:

    {"event": "tool.execute.after", "directory": "…", "input": {…}, "output": {…}}

and the program answers {"text": "…"} for the model, or {"deny": "…"} for what the plug-in should throw. The events are
`session.created`, `chat.message`, `tool.execute.before`, `tool.execute.after`, `session.idle`, `session.compacted` and
`dispose`; for one of the bus, `input` holds its properties.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import (
    CodingAgent,
    Hook,
    Old,
    Payload,
    Settings,
    command_of,
    fields,
    first,
    items,
    text,
)
from mulligan.sessions.events import Notice
from mulligan.sessions.records import (
    Record,
    arguments,
    as_record,
    inner,
    inner_list,
    number_at,
    own,
    record_in,
    seconds,
    text_at,
    unshortened,
    whole,
    without_main_agent,
)

if TYPE_CHECKING:
    from typing import Any


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
    logs = "opencode*.db"
    command = "opencode run {prompt}"
    packaged = "cp {}/mulligan.js ~/.config/opencode/plugins/"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
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

    def session(self, head: Sequence[Record]) -> str:
        return first(head[:1], "info", "id")

    def log_folder(self) -> str:
        return os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "opencode")

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        try:
            rows = _asked(path, "SELECT id, directory, time_updated FROM session ORDER BY time_updated")
        except sqlite3.Error:
            return
        yield from (Old(self.name, id, path, folder, at / 1000) for id, folder, at in rows)

    def text(self, transcript: str, session: str) -> str:
        """A session in the store `opencode.db`, as `opencode export` prints it; or what an export holds."""
        if not _is_store(transcript):
            return super().text(transcript, session)
        (found, *_) = [
            *_asked(transcript, "SELECT directory, parent_id FROM session WHERE id = ?", session),
            ("", None),
        ]
        parts: dict[str, list[Record]] = {}
        query = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
        for message, id, data in _asked(transcript, query, session):
            parts.setdefault(message, []).append({"id": id, **record_in(data)})
        query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        messages = [
            {"info": {"id": id, **record_in(data)}, "parts": parts.get(id, [])}
            for id, data in _asked(transcript, query, session)
        ]
        return json.dumps({"info": {"id": session, "directory": found[0], "parentID": found[1]}, "messages": messages})

    def written(self, transcript: str, session: str) -> float:
        if not _is_store(transcript):
            return super().written(transcript, session)
        query = (
            "SELECT max(time_updated, coalesce((SELECT max(time_created) FROM message WHERE session_id = ?1), 0)) "
            "FROM session WHERE id = ?1"
        )
        found = _asked(transcript, query, session)
        return found[0][0] / 1000 if found else 0.0

    def recognises(self, text: str) -> bool:
        return any("parts" in message and "info" in message for message in _messages(text))

    def read(self, text: str, name: str) -> list[Turn]:
        info = inner(record_in(text), "info")
        turns = [turn for message in _messages(text) for turn in _turns(message, text_at(info, "directory"))]
        return without_main_agent(turns) if text_at(info, "parentID") else turns


def _is_store(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(15) == b"SQLite format 3"
    except OSError:
        return False


def _asked(store: str, query: str, *given: str) -> list[Any]:
    """The rows of a query to opencode's store. Raises `sqlite3.Error`."""
    from urllib.parse import quote  # the program of hooks asks no store

    db = sqlite3.connect(f"file:{quote(os.path.abspath(store))}?mode=ro", uri=True, timeout=2.0)
    try:
        return db.execute(query, given).fetchall()
    finally:
        db.close()


def _messages(text: str) -> list[Record]:
    value = whole(text) if text.lstrip()[:1] in ("{", "[") else None
    return [*inner_list({"messages": value} if isinstance(value, list) else as_record(value), "messages")]


def _turns(message: Record, folder: str) -> Iterator[Turn]:
    role, at = text_at(message, "info", "role"), seconds(inner(message, "info", "time").get("created"))
    for part in inner_list(message, "parts"):
        kind, id, state = part.get("type"), text_at(part, "callID"), inner(part, "state")
        if kind == "tool":
            at, tool = seconds(inner(state, "time").get("start")) or at, text_at(part, "tool")
            yield Turn("assistant", arguments(state.get("input")), tool, id, None, at, folder)
            status = text_at(state, "status")
            if status in ("completed", "error"):
                failed = status == "error" or bool(number_at(state, "metadata", "exit"))
                output = own(text_at(state, "error" if status == "error" else "output"))
                output = unshortened(output, os.path.join(AGENT.log_folder(), "tool-output") + os.sep)
                yield Turn("tool", output, tool, id, failed, at, folder)
            continue
        said = own(text_at(part, "text")) if kind == "text" and not part.get("synthetic") else ""
        if said and role in ("user", "assistant"):
            yield Turn(role, said, "", text_at(part, "id"), None, at, folder)


AGENT = Opencode()
