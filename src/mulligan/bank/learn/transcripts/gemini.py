"""Chats of Gemini CLI: a header, then records that may be written again with the same id, and `$set` lines; or one
object that holds them all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mulligan.core.protocols import Turn
from mulligan.sessions.records import (
    Record,
    arguments,
    background_id,
    inner,
    inner_list,
    own,
    record_in,
    records,
    seconds,
    text_at,
    texts,
)
from mulligan.text.exit_codes import exit_code

_STATUS = {"success": False, "error": True, "cancelled": None}
_BLOCKED = "Tool execution blocked:"


class Gemini:
    def recognises(self, text: str) -> bool:
        return any(
            "sessionId" in one and "projectHash" in one for one, _ in zip(_records(text), range(5), strict=False)
        )

    def read(self, text: str, name: str) -> list[Turn]:
        kept: dict[str, Record] = {}
        for one in _records(text):
            if target := text_at(one, "$rewindTo"):
                names = list(kept)
                for id in names[names.index(target) if target in kept else 0 :]:
                    del kept[id]
            messages = (*inner_list(one, "messages"), *inner_list(inner(one, "$set"), "messages"))
            for message in (one, *messages):
                if id := text_at(message, "id"):
                    kept[id] = message
        return [turn for id, one in kept.items() for turn in _turns(id, one)]


def _records(text: str) -> Iterable[Record]:
    """The object that the text is, else those in its lines."""
    found = record_in(text)
    return [found] if found else records(text)


def _turns(id: str, record: Record) -> Iterator[Turn]:
    kind, at, said = record.get("type"), seconds(record.get("timestamp")), own(texts(record.get("content")))
    if kind == "user" and said and not said.startswith("<session_context>"):
        yield Turn("user", said, "", id, None, at)
    if kind != "gemini":
        return
    if said:
        yield Turn("assistant", said, "", id, None, at)
    for call in inner_list(record, "toolCalls"):
        tool, called = text_at(call, "name"), text_at(call, "id")
        at = seconds(call.get("timestamp")) or at
        yield Turn("assistant", arguments(call.get("args")), tool, called, None, at)
        status = text_at(call, "status")
        if status in _STATUS:
            output = own(_output(call))
            failed = _STATUS[status]
            if ended := exit_code(output):
                failed, output = ended[0] != 0, ended[1]
            yield Turn(
                "tool",
                output,
                tool,
                called,
                None if output.startswith(_BLOCKED) or background_id(output) is not None else failed,
                at,
            )


def _output(call: Record) -> str:
    result = call.get("result")
    if isinstance(result, str):
        return result
    answers = [inner(part, "functionResponse", "response") for part in inner_list(call, "result")]
    return "\n".join(filter(None, (text_at(one, "output") or text_at(one, "error") for one in answers))) or texts(
        result
    )
