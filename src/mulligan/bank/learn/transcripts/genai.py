"""Messages in OpenTelemetry's conventions for generative AI: `parts` of text, `tool_call` and `tool_call_response`.

Parts of reasoning are left out. `gen_ai.input.messages` and `gen_ai.output.messages` hold such lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.turns import Role, Turn
from mulligan.sessions.records import arguments

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_THOUGHT = ("reasoning", "thinking")


class GenAI:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "genai"

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for message in messages(text, name) for turn in turns_of(message, called)]


def turns_of(message: JsonEntry, called: dict[str, str]) -> Iterator[Turn]:
    """The turns of a message. called: the names of tools by the ids of their calls, to name the tool of a result."""
    if "parts" not in message.value:  # what stands beside the messages as the system's
        yield Turn("system", "\n\n".join(map(part_text, message.blocks())))
        return
    role = message.role(_ROLES)
    for part in message.entries("parts", "part"):
        kind, id = part.text("type"), part.text("id")
        if kind in ("tool_call", "server_tool_call"):
            called[id] = part.text("name")
            yield call_turn(part, "arguments" if "arguments" in part.value else "server_tool_call", id)
        elif kind in ("tool_call_response", "server_tool_call_response"):
            found = [part.value[key] for key in ("response", "result", kind[:-14]) if part.value.get(key) is not None]
            text = arguments(found[0]) if found else ""
            yield Turn("tool", text, called.get(id) or part.text("name"), id)
        elif kind not in _THOUGHT and (text := part_text(part)).strip():
            yield Turn("assistant" if role == "tool" else role, text)


def part_text(part: JsonEntry) -> str:
    """What a part says; of one that is no text, what it is in brackets: `[image]`."""
    if (part.text("type") or "text") != "text":
        return f"[{part.text('modality') or part.text('type')}]"
    return part.text("content") if "content" in part.value else block_text(part)
