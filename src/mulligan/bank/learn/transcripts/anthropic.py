"""Messages of Anthropic's API: contents of blocks, with `tool_use` and `tool_result`, as JSON or JSON Lines.

Blocks of thinking are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.turns import Role, Turn

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class Anthropic:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "anthropic"

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for message in messages(text, name) for turn in _turns(message, called)]


def _turns(message: JsonEntry, called: dict[str, str]) -> Iterator[Turn]:
    """The turns of a message. called: the names of tools by the ids of their calls, to name the tool of a result."""
    role = message.role(_ROLES)
    for block in message.blocks():
        kind = block.text("type")
        if kind in ("tool_use", "server_tool_use"):
            called[block.text("id")] = block.text("name")
            yield call_turn(block, "input", block.text("id"))
        elif kind == "tool_result":
            id = block.text("tool_use_id")
            yield Turn("tool", _result(block), called.get(id, ""), id, block.value.get("is_error") is True)
        elif kind not in ("thinking", "redacted_thinking") and (text := block_text(block)).strip():
            yield Turn(role, text)


def _result(block: JsonEntry) -> str:
    text = "\n\n".join(map(block_text, block.blocks()))
    return f"error: {text}" if block.value.get("is_error") is True else text
