"""Items of OpenAI's responses: messages, `function_call` and `function_call_output`, as JSON or JSON Lines.

Items of reasoning are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Role, Turn

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


class Responses:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "responses"

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for item in messages(text, name) for turn in _turns(item, called)]


def _turns(item: JsonEntry, called: dict[str, str]) -> Iterator[Turn]:
    """The turns of a message. called: the names of tools by the ids of their calls, to name the tool of a result."""
    kind = item.text("type") or "message"
    id = item.text("call_id")
    if kind == "message":
        text = "\n\n".join(filter(None, map(_said, item.blocks())))
        if text.strip():
            yield Turn(item.role(_ROLES), text)
    elif kind in ("function_call", "custom_tool_call"):
        called[id] = item.text("name")
        yield call_turn(item, "input" if kind == "custom_tool_call" else "arguments", id)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = item.value.get("output")
        parts = item.entries("output", "part") if isinstance(output, list) else ()
        text = output if isinstance(output, str) else "\n\n".join(map(block_text, parts))
        yield Turn("tool", text, called.get(id, ""), id)
    elif kind.endswith("_call"):  # of a tool that the provider runs
        yield Turn("assistant", item.text("status"), kind.removesuffix("_call"), item.text("id"))
    elif kind != "reasoning":
        raise InvalidInput(f"{item.at}: unknown item type {kind!r:.60}.")


def _said(block: JsonEntry) -> str:
    return block.text("refusal") if block.text("type") == "refusal" else block_text(block)
