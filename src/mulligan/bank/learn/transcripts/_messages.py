"""Read chat messages as JSON, in any format: a list, an object with `messages`, or a message on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.core.turns import Role, Turn
from mulligan.text.json_lines import parsed

_ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")
"""Types of content blocks that only Anthropic's messages have."""
_CALL_ITEMS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_RESPONSES_ITEMS = (*_CALL_ITEMS, "reasoning", "message")
"""Types of the items of OpenAI's responses."""
_LANGCHAIN_TYPES = ("human", "ai", "system", "tool", "function", "chat", "developer", "remove")
"""Types of LangChain's messages."""
_SYSTEM_KEYS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Keys under which an object has its system text."""
_MESSAGE_KEYS = ("messages", "contents", "conversation", "input", "output")
"""Keys under which an object has its messages."""


@dataclass(frozen=True)
class JsonEntry:
    """A message, or a part of one. at: where it is in the file, for errors."""

    at: str
    value: Mapping[str, Json]

    def text(self, key: str) -> str:
        """The text under this key; "" if it is missing or null. Raises `InvalidInput` for any other value."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InvalidInput(f"{self.at}: {key} must be a string, not {type(value).__name__}.")
        return value

    def role(self, known: Mapping[str, Role]) -> Role:
        """The role of the turns of this message. Raises `InvalidInput` if its own role is not in `known`."""
        role = self.text("role")
        if role not in known:
            raise InvalidInput(f"{self.at}: role must be {', '.join(known)}, not {role!r:.60}.")
        return known[role]

    def entry(self, key: str) -> JsonEntry:
        """The object under this key. Raises `InvalidInput` if it is not an object."""
        return JsonEntry(f"{self.at}, {key}", _object(self.value.get(key), f"{self.at}: {key}"))

    def entries(self, key: str, noun: str) -> Iterator[JsonEntry]:
        """The objects in the list under this key; none if it is missing or null. noun: what errors call an object."""
        value = self.value.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            raise InvalidInput(f"{self.at}: {key} must be a list, not {type(value).__name__}.")
        for number, one in enumerate(cast(list[Json], value), 1):
            at = f"{self.at}, {noun} {number}"
            yield JsonEntry(at, _object(one, at))

    def blocks(self) -> Iterator[JsonEntry]:
        """The blocks of the content. If the content is a text, it is one block."""
        content = self.value.get("content")
        if isinstance(content, str):
            yield JsonEntry(self.at, {"type": "text", "text": content})
        elif content is None or isinstance(content, list):
            yield from self.entries("content", "block")
        else:
            raise InvalidInput(
                f"{self.at}: content must be a string or a list of blocks, not {type(content).__name__}."
            )


def block_text(block: JsonEntry) -> str:
    """The text of a block; for a block without text, such as an image, its type in brackets."""
    kind = block.text("type") or "text"
    return block.text("text") if kind in ("text", "input_text", "output_text") else f"[{kind}]"


def call_turn(call: JsonEntry, key: str, id: str = "") -> Turn:
    """The call of a tool as a turn. key: where its arguments are, as a text or as JSON."""
    arguments = call.value.get(key, "")
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        raise InvalidInput(f"{call.at}: {key} is nested too deeply.") from None
    return Turn("assistant", text, call.text("name"), id)


def messages(text: str, name: str) -> list[JsonEntry]:
    """The messages in order, preceded by a system text next to them. Raises `InvalidInput`, which says where."""
    if not text.strip():
        raise InvalidInput(f"{name} is empty.")
    if _is_lines(text):
        numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        values = [(f"{name}:{n}", parsed(name, line, n)) for n, line in numbered]
    else:
        values = [(f"{name}: message {n}", one) for n, one in enumerate(_listed(parsed(name, text), name), 1)]
    if not values:
        raise InvalidInput(f"{name}: the list of messages is empty.")
    return [JsonEntry(at, _object(value, at)) for at, value in values]


def format_of(text: str) -> str:
    """The name of the format of these messages; "" if it is unknown.

    Messages that OpenAI and Anthropic write in the same way count as "openai".
    """
    try:
        entries = messages(text, "")
    except InvalidInput:
        entries = _first_line(text)
    if not entries:
        return ""
    first = entries[0].value
    if isinstance(first.get("parts"), list):
        if first.get("kind") in ("request", "response"):
            return "pydantic_ai"
        if any(map(_is_genai, entries)):
            return "genai"
        # The messages of OpenCode, a coding agent, have `info` next to their parts.
        return "google" if isinstance(first.get("role", ""), str) and "info" not in first else ""
    # Transcripts of coding agents have readers of their own.
    if first.get("type") in ("init", "session") or {"type", "subtype"} <= first.keys():
        return ""
    if any(entry.value.get("type") in _RESPONSES_ITEMS for entry in entries):
        return "responses"
    # LangChain's `dumpd` writes `lc: 1`, its other functions only a type.
    if first.get("lc") == 1 or ("role" not in first and first.get("type") in _LANGCHAIN_TYPES):
        return "langchain"
    if not isinstance(first.get("role"), str):
        return ""
    return "anthropic" if any(map(_is_anthropic, entries)) else "openai"


def _first_line(text: str) -> list[JsonEntry]:
    """The message on the first line, for a text with a broken line. Reading it will say which line that is."""
    first = text.lstrip().partition("\n")[0]
    try:
        return messages(first, "") if _is_lines(text) else []
    except InvalidInput:
        return []


def _is_anthropic(message: JsonEntry) -> bool:
    content = message.value.get("content")
    blocks = cast(Sequence[Any], content) if isinstance(content, list) else ()
    kinds = [cast(dict[str, Any], block).get("type") for block in blocks if isinstance(block, dict)]
    return "stop_reason" in message.value or any(isinstance(kind, str) and kind in _ANTHROPIC_BLOCKS for kind in kinds)


def _is_genai(message: JsonEntry) -> bool:
    parts = message.value.get("parts")
    listed = cast(Sequence[Any], parts) if isinstance(parts, list) else ()
    typed = any(isinstance(part, dict) and isinstance(cast(dict[str, Any], part).get("type"), str) for part in listed)
    return typed and isinstance(message.value.get("role"), str)


def _is_lines(text: str) -> bool:
    """Whether the first line is a whole object and other lines follow."""
    first, _, rest = text.lstrip().partition("\n")
    if not first.startswith("{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _listed(whole: Json, name: str) -> list[Json]:
    """The messages in a list, in an object (with its system text first), or a single message."""
    if isinstance(whole, list):
        return cast(list[Json], whole)
    table = _object(whole, name)
    if "role" in table:
        return [whole]
    system = next((table[key] for key in _SYSTEM_KEYS if table.get(key) is not None), None)
    listed: Any = next((table[key] for key in _MESSAGE_KEYS if isinstance(table.get(key), list)), None)
    if listed is None:
        raise InvalidInput(f'{name} must be a list of messages, or an object with one under "messages".')
    text = {"content": system} if not isinstance(system, dict) else cast(dict[str, Json], system)
    before: list[Json] = [] if system is None else [{**text, "role": "system"}]
    return [*before, *cast(list[Json], listed)]


def _object(value: Json, at: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{at} must be an object, not {type(value).__name__}.")
    return cast(dict[str, Json], value)
