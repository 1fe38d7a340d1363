"""Messages of pydantic-ai as JSON, as `result.all_messages_json()` gives them. Parts of thinking are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.turns import Turn
from mulligan.sessions.records import arguments, as_record, text_at


class PydanticAI:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "pydantic_ai"

    def read(self, text: str, name: str) -> list[Turn]:
        return [turn for message in messages(text, name) for turn in _turns(message)]


def _turns(message: JsonEntry) -> Iterator[Turn]:
    for part in message.entries("parts", "part"):
        kind = part.text("part_kind")
        if kind == "system-prompt":
            yield Turn("system", part.text("content"))
        elif kind == "user-prompt":
            yield Turn("user", "\n\n".join(_prompt(part)))
        elif kind == "text":
            yield Turn("assistant", part.text("content"))
        elif kind.endswith("tool-call"):
            yield call_turn(JsonEntry(part.at, {**part.value, "name": part.value.get("tool_name")}), "args", _id(part))
        elif kind.endswith("tool-return"):
            failed = {"success": False, "failed": True}.get(part.text("outcome"))
            yield Turn("tool", arguments(part.value.get("content")), part.text("tool_name"), _id(part), failed)
        elif kind == "retry-prompt":
            said = arguments(part.value.get("content"))
            if part.value.get("tool_name"):
                yield Turn("tool", said, part.text("tool_name"), _id(part), failed=True)
            else:
                yield Turn("user", said)
        elif kind != "thinking":
            yield Turn("assistant" if message.text("kind") == "response" else "user", f"[{kind}]")


def _prompt(part: JsonEntry) -> Iterator[str]:
    """The texts of a prompt; what is no text by its kind in brackets."""
    content = part.value.get("content")
    if not isinstance(content, list):
        yield from map(block_text, part.blocks())
        return
    for item in cast("list[Any]", content):
        yield item if isinstance(item, str) else f"[{text_at(as_record(item), 'kind') or 'content'}]"


def _id(part: JsonEntry) -> str:
    return part.text("tool_call_id")
