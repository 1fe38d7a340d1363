"""Chats of Qwen Code: JSON Lines of `user`, `assistant` and `tool_result` whose messages have `parts`."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.core.protocols import Turn
from mulligan.sessions.records import (
    Record,
    arguments,
    background_id,
    inner,
    inner_list,
    own,
    records,
    sample,
    seconds,
    text_at,
)
from mulligan.text.exit_codes import exit_code

_SPOKEN = (None, "mid_turn_user_message")
"""Of the records of users, the subtypes that a person said."""


class Qwen:
    def recognises(self, text: str) -> bool:
        return any("uuid" in one and "parts" in inner(one, "message") for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        return [turn for one in records(text) for turn in _turns(one)]


def _turns(record: Record) -> Iterator[Turn]:
    kind, at, folder = record.get("type"), seconds(record.get("timestamp")), text_at(record, "cwd")
    for n, part in enumerate(inner_list(inner(record, "message"), "parts")):
        call, answer = inner(part, "functionCall"), inner(part, "functionResponse")
        if call:
            id = text_at(call, "id")
            yield Turn("assistant", arguments(call.get("args")), text_at(call, "name"), id, None, at, folder)
        elif answer:
            output = own(text_at(answer, "response", "output") or text_at(answer, "response", "error"))
            status = text_at(record, "toolCallResult", "status")
            failed = status == "error" or "error" in inner(answer, "response")
            if ended := exit_code(output):
                failed, output = ended[0] != 0, ended[1]
            id, tool = text_at(answer, "id"), text_at(answer, "name")
            yield Turn(
                "tool",
                output,
                tool,
                id,
                None if status == "cancelled" or background_id(output) is not None else failed,
                at,
                folder,
            )
        elif not part.get("thought") and (said := own(text_at(part, "text"))):
            id = f"{text_at(record, 'uuid')}:{n}"
            if kind == "assistant":
                yield Turn("assistant", said, "", id, None, at, folder)
            elif kind == "user" and record.get("subtype") in _SPOKEN:
                yield Turn("user", said, "", id, None, at, folder)
