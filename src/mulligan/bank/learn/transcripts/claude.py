"""Transcripts of Claude Code: JSON Lines of which `user` and `assistant` are the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._records import (
    Record,
    arguments,
    inner,
    inner_list,
    own,
    records,
    sample,
    seconds,
    text_at,
    texts,
)
from mulligan.core.protocols import Turn

_REFUSED = ("The user doesn't want to", "[Request interrupted", "Permission to use", "Claude requested permissions")
_NOT_SAID = ("Stop hook feedback", "[Request interrupted", "Caveat:", "<command-", "<local-command-", "<task-")
"""How texts begin that the program put in the user's mouth."""


class Claude:
    def recognises(self, text: str) -> bool:
        return any(_is_said(one) and "content" in inner(one, "message") and "uuid" in one for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        turns: list[Turn] = []
        for one in filter(_is_said, records(text)):
            said = _turns(one, called)
            aside = bool(turns) and one.get("isSidechain")  # the main agent speaks to a sub-agent; its task stays
            turns += [turn for turn in said if not (aside and turn.role == "user")]
        return turns


def _is_said(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


def _turns(record: Record, called: dict[str, str]) -> Iterator[Turn]:
    """`called`: the names of the tools by the ids of their calls."""
    by_user = record["type"] == "user"
    at, folder, message = seconds(record.get("timestamp")), text_at(record, "cwd"), inner(record, "message")
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else inner_list(message, "content")
    for n, block in enumerate(blocks):
        kind = text_at(block, "type")
        if kind in ("tool_use", "server_tool_use"):
            id = text_at(block, "id")
            called[id] = text_at(block, "name")
            yield Turn("assistant", arguments(block.get("input")), called[id], id, None, at, folder)
        elif kind == "tool_result":
            id, result = text_at(block, "tool_use_id"), own(texts(block.get("content")))
            failed = None if result.startswith(_REFUSED) else block.get("is_error") is True
            yield Turn("tool", result, called.get(id, ""), id, failed, at, folder)
        elif kind == "text" and (said := own(text_at(block, "text"))):
            if by_user and (record.get("isMeta") or record.get("isCompactSummary") or said.startswith(_NOT_SAID)):
                continue
            id = f"{text_at(record, 'uuid')}:{n}"
            yield Turn("user" if by_user else "assistant", said, "", id, None, at, folder)
