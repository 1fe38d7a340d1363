"""Messages of OpenAI's chat completions: roles, `tool_calls` and their results, as JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.bank.learn.transcripts._messages import JsonEntry, block_text, call_turn, format_of, messages
from mulligan.core.turns import Role, Turn
from mulligan.sessions.calls import error_in
from mulligan.sessions.records import arguments

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class OpenAI:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "openai"

    def read(self, text: str, name: str) -> list[Turn]:
        called: dict[str, str] = {}
        return [turn for message in messages(text, name) for turn in turns_of(message, called)]


def turns_of(message: JsonEntry, called: dict[str, str]) -> Iterator[Turn]:
    """The turns of a message. called: the names of tools by the ids of their calls, to name the tool of a result."""
    role = message.role(_ROLES)
    tool = id = ""
    if role == "tool":
        id = message.text("tool_call_id")
        tool = called.get(id) or message.text("name")
    text = "\n\n".join(filter(None, (*map(block_text, message.blocks()), message.text("refusal"))))
    if text.strip() or role == "tool":
        yield Turn(role, text, tool, id)
    for call in message.entries("tool_calls", "call"):
        if "result" in call.value:  # STATE-Bench has calls with their results
            id = call.text("id") or call.at
            yield call_turn(call, "arguments", id)
            result = arguments(call.value.get("result"))
            yield Turn("tool", result, call.text("name"), id, bool(error_in(result)))
            continue
        custom = call.text("type") == "custom"
        function = call.entry("custom" if custom else "function")
        called[call.text("id")] = function.text("name")
        yield call_turn(function, "input" if custom else "arguments", call.text("id"))
    if message.value.get("function_call") is not None:
        yield call_turn(message.entry("function_call"), "arguments")
