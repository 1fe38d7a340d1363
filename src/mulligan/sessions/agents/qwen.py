"""Qwen Code: the events of Claude Code with the tool results of Gemini CLI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Payload, Settings, fields, text
from mulligan.sessions.events import Notice
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
    texts,
    unshortened,
)
from mulligan.text.exit_codes import exit_code

if TYPE_CHECKING:
    from typing import Any


_SPOKEN = (None, "mid_turn_user_message")
"""Of the records of users, the subtypes that a person said."""


class Qwen(CodingAgent):
    name, title = "qwen", "Qwen Code"
    hooks = (
        Hook("SessionStart", "start", timeout=5000),
        Hook("UserPromptSubmit", "prompt", timeout=5000),
        Hook("PreToolUse", "before_tool", "run_shell_command", 5000),
        Hook("PostToolUse", "success", "run_shell_command", 5000),
        Hook("PostToolUseFailure", "failure", timeout=5000),
        Hook("Stop", "stop", timeout=STOP * 1000),
        Hook("SessionEnd", "end", timeout=5000),
    )
    settings = Settings("~/.qwen", "", "settings.json", ".qwen/settings.json")
    edits = "write_file|replace|edit"
    says_held = False  # `stop_hook_active` is true at the first stop
    ends = False
    grows = True
    logs = "projects/*/chats/*.jsonl"
    command = "qwen --approval-mode auto-edit"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None or payload.get("is_interrupt") is True:
            return None
        if event == "UserPromptSubmit" and not text(payload, "prompt"):
            return None  # it comes again after every tool result
        if event in ("PostToolUse", "PostToolUseFailure"):  # 0.24.4 has been seen to report failed commands as either
            result = text(payload, "error") or texts(fields(payload, "tool_response").get("llmContent"))
            ended = exit_code(result)
            if moment == "failure" or (ended and ended[0] != 0):
                moment, output = "failure", ended[1] if ended else result
        call = text(payload, "tool_call_id", "tool_use_id")  # the first stands in the transcript, too
        return self._notice(payload, moment, call=call, output=output)

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "disableAllHooks" if settings.get("disableAllHooks") else ""

    def session(self, head: Sequence[Record]) -> str:
        return next(
            (id for one in head if one.get("type") in ("user", "assistant") and (id := text_at(one, "sessionId"))), ""
        )

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
            output = unshortened(output, os.path.join(AGENT.folder(), ""))
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


AGENT = Qwen()
