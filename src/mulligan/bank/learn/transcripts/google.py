"""Contents of Google's Gemini API: roles user and model, parts of text, `functionCall`, `functionResponse`.

Parts of thinking are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from mulligan.bank.learn.transcripts._messages import JsonEntry, call_turn, format_of, messages
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Role, Turn
from mulligan.sessions.records import arguments

_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "tool",
    "tool": "tool",
    "system": "system",
    "": "user",
}


class Google:
    def recognises(self, text: str) -> bool:
        return format_of(text) == "google"

    def read(self, text: str, name: str) -> list[Turn]:
        return [turn for content in messages(text, name) for turn in _turns(content)]


def _turns(content: JsonEntry) -> Iterator[Turn]:
    if "parts" not in content.value:  # what stands beside the contents as the system's
        yield Turn("system", "\n\n".join(block.text("text") for block in content.blocks()))
        return
    role = content.role(_ROLES)
    for part in content.entries("parts", "part"):
        call = _either(part, "functionCall", "function_call")
        result = _either(part, "functionResponse", "function_response")
        if part.value.get("thought") is True:
            continue
        if call is not None:
            yield call_turn(call, "args", call.text("id"))
        elif result is not None:
            response: Any = result.value.get("response")
            failed = isinstance(response, dict) and "error" in response
            yield Turn("tool", _written(response), result.text("name"), result.text("id"), failed or None)
        elif part.text("text").strip():
            yield Turn(role, part.text("text"))
        elif "text" not in part.value:
            kind = next((name for name, value in part.value.items() if value is not None), None)
            if kind is None:
                raise InvalidInput(f"{part.at} is empty.")
            yield Turn(role, f"[{kind}]")


def _either(part: JsonEntry, *keys: str) -> JsonEntry | None:
    """The object under the one of these keys that is there."""
    return next((part.entry(key) for key in keys if part.value.get(key) is not None), None)


def _written(response: Any) -> str:
    """What a function gave back: the only text in it, else all of it as JSON."""
    values = list(cast("dict[str, Any]", response).values()) if isinstance(response, dict) else []
    only = values[0] if len(values) == 1 else None
    return only if isinstance(only, str) else arguments(response)
