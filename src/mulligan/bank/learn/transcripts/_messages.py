"""Chat messages as JSON, whoever wrote them: a list, an object with `messages`, or a message on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.core.turns import Role, Turn
from mulligan.text.json_lines import parsed

_ANTHROPIC = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")
"""Kinds of content blocks that only Anthropic's messages have."""
_ITEMS = (
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "reasoning",
    "message",
)
"""Types of the items of OpenAI's responses."""
LANGCHAIN = ("human", "ai", "system", "tool", "function", "chat", "developer", "remove")
"""Types of LangChain's messages."""
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_LISTS = ("messages", "contents", "conversation", "input", "output")
"""Keys under which an object has its messages."""


@dataclass(frozen=True)
class JsonEntry:
    """A message, or a part of one, and where it stands, for errors."""

    at: str
    value: Mapping[str, Json]

    def text(self, key: str) -> str:
        """The text under this key; "" where it is missing or null. Raises `InvalidInput` for anything else."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InvalidInput(f"{self.at}: {key} must be a string, not {type(value).__name__}.")
        return value

    def role(self, known: Mapping[str, Role]) -> Role:
        """The role of the turns of this message. Raises `InvalidInput` for one that is not known."""
        role = self.text("role")
        if role not in known:
            raise InvalidInput(f"{self.at}: role must be {', '.join(known)}, not {role!r:.60}.")
        return known[role]

    def entry(self, key: str) -> JsonEntry:
        """The object under this key. Raises `InvalidInput` where it is none."""
        return JsonEntry(f"{self.at}, {key}", _object(self.value.get(key), f"{self.at}: {key}"))

    def entries(self, key: str, each: str) -> Iterator[JsonEntry]:
        """The objects in the list under this key, `each` of which is called so; none where it is missing or null."""
        value = self.value.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            raise InvalidInput(f"{self.at}: {key} must be a list, not {type(value).__name__}.")
        for number, one in enumerate(cast(list[Json], value), 1):
            at = f"{self.at}, {each} {number}"
            yield JsonEntry(at, _object(one, at))

    def blocks(self) -> Iterator[JsonEntry]:
        """The blocks of the content. A content that is a text counts as one block of text."""
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
    """What a block says; of one that is no text, such as an image, its type in brackets."""
    kind = block.text("type") or "text"
    return block.text("text") if kind in ("text", "input_text", "output_text") else f"[{kind}]"


def call_turn(call: JsonEntry, key: str, id: str = "") -> Turn:
    """The call of a tool, with its arguments under this key: a text, or what is written as JSON."""
    arguments = call.value.get(key, "")
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        raise InvalidInput(f"{call.at}: {key} is nested too deeply.") from None
    return Turn("assistant", text, call.text("name"), id)


def messages(text: str, name: str) -> list[JsonEntry]:
    """The messages in their order; a system text beside them comes first. Raises `InvalidInput` that says where."""
    if not text.strip():
        raise InvalidInput(f"{name} is empty.")
    if _is_lines(text):
        numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
        found = [(f"{name}:{n}", parsed(name, line, n)) for n, line in numbered]
    else:
        found = [(f"{name}: message {n}", one) for n, one in enumerate(_listed(parsed(name, text), name), 1)]
    if not found:
        raise InvalidInput(f"{name}: the list of messages is empty.")
    return [JsonEntry(at, _object(one, at)) for at, one in found]


def recognised(text: str) -> str:
    """Whose messages these are, by the name of the format: "openai" also where it and "anthropic" do not differ; "" for
    none."""
    try:
        found = messages(text, "")
    except InvalidInput:
        found = _first_line(text)
    if not found:
        return ""
    first = found[0].value
    if isinstance(first.get("parts"), list):
        if first.get("kind") in ("request", "response"):
            return "pydantic_ai"
        if any(map(_is_genai, found)):
            return "genai"
        return "google" if isinstance(first.get("role", ""), str) and "info" not in first else ""
    if first.get("type") in ("init", "session") or {"type", "subtype"} <= first.keys():  # of a coding agent
        return ""
    if any(one.value.get("type") in _ITEMS for one in found):
        return "responses"
    if first.get("lc") == 1 or ("role" not in first and first.get("type") in LANGCHAIN):
        return "langchain"
    if not isinstance(first.get("role"), str):
        return ""
    return "anthropic" if any(map(_is_anthropic, found)) else "openai"


def _first_line(text: str) -> list[JsonEntry]:
    """The message on the first line, where a later line is broken: reading says which."""
    first = text.lstrip().partition("\n")[0]
    try:
        return messages(first, "") if _is_lines(text) else []
    except InvalidInput:
        return []


def _is_anthropic(message: JsonEntry) -> bool:
    content = message.value.get("content")
    blocks = cast(Sequence[Any], content) if isinstance(content, list) else ()
    kinds = [cast(dict[str, Any], block).get("type") for block in blocks if isinstance(block, dict)]
    return "stop_reason" in message.value or any(isinstance(kind, str) and kind in _ANTHROPIC for kind in kinds)


def _is_genai(message: JsonEntry) -> bool:
    parts = message.value.get("parts")
    listed = cast(Sequence[Any], parts) if isinstance(parts, list) else ()
    typed = any(isinstance(part, dict) and isinstance(cast(dict[str, Any], part).get("type"), str) for part in listed)
    return typed and isinstance(message.value.get("role"), str)


def _is_lines(text: str) -> bool:
    """Whether the first line is an object of its own and others follow."""
    first, _, rest = text.lstrip().partition("\n")
    if not first.startswith("{") or not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _listed(whole: Json, name: str) -> list[Json]:
    """The messages in a list, in an object (with its system text first), or one that is alone."""
    if isinstance(whole, list):
        return cast(list[Json], whole)
    table = _object(whole, name)
    if "role" in table:
        return [whole]
    system = next((found for key in _SYSTEM if (found := table.get(key)) is not None), None)
    listed: Any = next((table[key] for key in _LISTS if isinstance(table.get(key), list)), None)
    if not isinstance(listed, list):
        raise InvalidInput(f'{name}: a list of messages is expected, or an object with one under "messages".')
    text = {"content": system} if not isinstance(system, dict) else cast(dict[str, Json], system)
    before: list[Json] = [] if system is None else [{**text, "role": "system"}]
    return [*before, *cast(list[Json], listed)]


def _object(value: Json, at: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{at}: an object is expected, not {type(value).__name__}.")
    return cast(dict[str, Json], value)
