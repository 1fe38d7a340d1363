"""Sessions of Pi: JSON Lines of a `session` and its entries, of which `message` is the conversation.

Entries are a tree of `id` and `parentId`. The last entry is where the session stands: only what leads to it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.core.turns import Turn
from mulligan.sessions.records import (
    Record,
    arguments,
    inner,
    inner_list,
    number_at,
    own,
    records,
    sample,
    seconds,
    text_at,
    texts,
)


class Pi:
    def recognises(self, text: str) -> bool:
        return any(one.get("type") == "session" and "cwd" in one and "id" in one for one in sample(text)[:1])

    def read(self, text: str, name: str) -> list[Turn]:
        entries = list(records(text))
        folder = text_at(entries[0], "cwd") if entries else ""
        return [turn for one in _branch(entries) if one.get("type") == "message" for turn in _turns(one, folder)]


def _branch(entries: list[Record]) -> list[Record]:
    """The entries from the first to the last, without those of branches that were left."""
    known = {id: one for one in entries if (id := text_at(one, "id")) and one.get("type") != "session"}
    if not all("parentId" in one for one in known.values()) or not known:
        return entries
    branch: list[Record] = []
    at = next(reversed(known))
    while at in known and len(branch) < len(known):
        branch.append(known[at])
        at = text_at(known[at], "parentId")
    return branch[::-1]


def _turns(entry: Record, folder: str) -> Iterator[Turn]:
    message, id = inner(entry, "message"), text_at(entry, "id")
    role, at = text_at(message, "role"), seconds(entry.get("timestamp")) or seconds(message.get("timestamp"))
    if role == "toolResult":
        failed = message.get("isError") is True
        tool, call = text_at(message, "toolName"), text_at(message, "toolCallId")
        yield Turn("tool", own(texts(message.get("content"))), tool, call, failed, at, folder)
    elif role == "bashExecution":  # the user's own command
        code = number_at(message, "exitCode")
        failed = None if message.get("cancelled") is True or code is None else code != 0
        yield Turn("assistant", arguments({"command": text_at(message, "command")}), "bash", id, None, at, folder)
        yield Turn("tool", own(text_at(message, "output")), "bash", id, failed, at, folder)
    elif role == "user" and (said := own(texts(message.get("content")))):
        yield Turn("user", said, "", id, None, at, folder)
    elif role == "assistant":
        for n, part in enumerate(inner_list(message, "content")):
            if part.get("type") == "toolCall":
                given = arguments(part.get("arguments"))
                yield Turn("assistant", given, text_at(part, "name"), text_at(part, "id"), None, at, folder)
            elif part.get("type") == "text" and (said := own(text_at(part, "text"))):
                yield Turn("assistant", said, "", f"{id}:{n}", None, at, folder)
