"""Sessions of opencode: an object of `info` and `messages` with their `parts`, as `opencode export` prints it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mulligan.core.protocols import Turn
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
    whole,
    without_main_agent,
)


class Opencode:
    def recognises(self, text: str) -> bool:
        return any("parts" in message and "info" in message for message in _messages(text))

    def read(self, text: str, name: str) -> list[Turn]:
        info = inner(record_in(text), "info")
        turns = [turn for message in _messages(text) for turn in _turns(message, text_at(info, "directory"))]
        return without_main_agent(turns) if text_at(info, "parentID") else turns


def session_text(store: Path, session: str) -> str:
    """A session in the store `opencode.db` as the text that is read here. Raises `sqlite3.Error`."""
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
        found = db.execute("SELECT directory, parent_id FROM session WHERE id = ?", (session,)).fetchone()
        parts: dict[str, list[Record]] = {}
        query = "SELECT message_id, id, data FROM part WHERE session_id = ? ORDER BY id"
        for message, id, data in db.execute(query, (session,)):
            parts.setdefault(message, []).append({"id": id, **record_in(data)})
        query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        messages = [
            {"info": {"id": id, **record_in(data)}, "parts": parts.get(id, [])}
            for id, data in db.execute(query, (session,))
        ]
    folder, parent = found or ("", None)
    return json.dumps({"info": {"id": session, "directory": folder, "parentID": parent}, "messages": messages})


def session_time(store: Path, session: str) -> float:
    """When a session in the store was last written, in seconds; 0 if it is not there. Raises `sqlite3.Error`."""
    query = (
        "SELECT max(time_updated, coalesce((SELECT max(time_created) FROM message WHERE session_id = ?1), 0)) "
        "FROM session WHERE id = ?1"
    )
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
        found = db.execute(query, (session,)).fetchone()
    return found[0] / 1000 if found else 0.0


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
                yield Turn("tool", output, tool, id, failed, at, folder)
            continue
        said = own(text_at(part, "text")) if kind == "text" and not part.get("synthetic") else ""
        if said and role in ("user", "assistant"):
            yield Turn(role, said, "", text_at(part, "id"), None, at, folder)
