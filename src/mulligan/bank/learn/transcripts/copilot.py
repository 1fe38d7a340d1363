"""Sessions of GitHub Copilot CLI (`events.jsonl`): JSON Lines of `type` and `data`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mulligan.core.protocols import Turn
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
)

_EXIT = re.compile(r"\n?<(?:exited with exit code|shellId: \S+ completed with exit code) (-?\d+)>\s*\Z")
_GOES_ON = re.compile(r"<command with shellId: \S+ is still running|<shellId: \S+ is still running")


class Copilot:
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
        if ended := _EXIT.search(output):
            output, failed = output[: ended.start()], int(ended[1]) != 0
        elif _GOES_ON.search(output) or background_id(output) is not None:
            failed = None
        yield Turn("tool", output, called.get(id, ""), id, failed, at, folder)
