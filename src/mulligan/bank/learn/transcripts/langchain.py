"""Messages of LangChain as JSON: as `messages_to_dict`, `dumpd` and `model_dump` write them."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Role, Turn

_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "developer": "system"}
_SKIPPED = ("tool_use", "tool_call", "function_call", "thinking", "reasoning", "redacted_thinking")
"""Blocks that say what `tool_calls` says, too, or what is thought."""


class LangChain:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "langchain"

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for message in messages(text, name) for turn in _turns(message, called)]


def _turns(message: JsonEntry, called: dict[str, str]) -> Iterator[Turn]:
    """The turns of a message. called: the names of tools by the ids of their calls, to name the tool of a result."""
    body = message.entry("kwargs") if message.value.get("lc") == 1 else message
    kind = body.text("type")
    body = body.entry("data") if isinstance(body.value.get("data"), dict) else body
    text = "\n\n".join(block_text(block) for block in body.blocks() if block.text("type") not in _SKIPPED)
    if kind in ("tool", "function"):
        id = body.text("tool_call_id")
        failed = {"error": True, "success": False}.get(body.text("status"))
        yield Turn("tool", text, called.get(id) or body.text("name"), id, failed)
        return
    role = _ROLES.get(body.text("role") if kind == "chat" else kind) or (kind == "chat" and "user") or None
    if role is None:
        raise InvalidInput(f"{message.at}: unknown message type {kind!r:.60}.")
    if text.strip():
        yield Turn(role, text)
    for call in body.entries("tool_calls", "call"):
        called[call.text("id")] = call.text("name")
        yield call_turn(call, "args", call.text("id"))
