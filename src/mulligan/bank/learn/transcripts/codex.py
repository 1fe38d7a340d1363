"""Rollouts of Codex CLI: JSON Lines of `type` and `payload`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mulligan.core.protocols import Turn
from mulligan.sessions.records import (
    Record,
    arguments,
    background_id,
    inner,
    number_at,
    own,
    record_in,
    records,
    sample,
    seconds,
    text_at,
    texts,
)

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_NOT_SAID = ("<environment_context", "<user_instructions", "<hook_prompt", "<turn_aborted", "<skill", "# AGENTS.md")
"""How texts begin that the program put in the user's mouth."""
_BLOCKED = "Command blocked by"
_HEAD = re.compile(
    r"\A(?:(?:Chunk ID|Wall time|Exit code|Process|Original token count|Total output lines)\b[^\n]*\n)*Output:\n"
)
"""What Codex writes before the output of a command."""
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)\b", re.MULTILINE)


class Codex:
    def recognises(self, text: str) -> bool:
        return any(one.get("type") in _KINDS and isinstance(one.get("payload"), dict) for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        reader = _Reader()
        return [turn for one in records(text) for turn in reader.turns(one)]


class _Reader:
    def __init__(self) -> None:
        self._folder = ""
        self._called: dict[str, str] = {}
        self._completed: dict[str, Record] = {}
        self._running: dict[str, tuple[str, str]] = {}
        self._polled: dict[str, str] = {}

    def turns(self, record: Record) -> Iterator[Turn]:
        kind, payload, at = record.get("type"), inner(record, "payload"), seconds(record.get("timestamp"))
        if kind in ("session_meta", "turn_context"):
            self._folder = text_at(payload, "cwd") or self._folder
        elif kind == "event_msg" and payload.get("type") == "item_completed":
            item = inner(payload, "item")
            self._completed[text_at(item, "id")] = item
        elif kind == "response_item":
            yield from self._item(payload, at)

    def _item(self, item: Record, at: float) -> Iterator[Turn]:
        kind, id = text_at(item, "type"), text_at(item, "call_id")
        if kind == "message":
            role, said = text_at(item, "role"), own(texts(item.get("content")))
            if said and (role == "assistant" or (role == "user" and not said.startswith(_NOT_SAID))):
                yield Turn(role, said, "", text_at(item, "id"), None, at, self._folder)
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._called[id] = text_at(item, "name") or "shell"
            given = next((item[key] for key in ("arguments", "input", "action") if key in item), "")
            if self._called[id] == "write_stdin":
                self._polled[id] = str(record_in(arguments(given)).get("session_id", ""))
            yield Turn("assistant", arguments(given), self._called[id], id, None, at, self._folder)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            given, running = texts(item.get("output")), self._polled.pop(id, "")
            output, failed = self._result(id, given)
            if task := background_id(_task_line(given)):
                started, before = self._running.pop(running, (id, ""))
                self._running[task] = started, before + output
            elif running in self._running:
                started, before = self._running.pop(running)
                yield Turn(
                    "tool", own(before + output), self._called.get(started, ""), started, failed, at, self._folder
                )
            else:
                started = ""
                yield Turn("tool", own(output), self._called.get(id, ""), id, failed, at, self._folder)
            if started not in ("", id):  # what only asked for more has no result of itself
                yield Turn("tool", "", self._called.get(id, ""), id, None, at, self._folder)

    def _result(self, id: str, output: str) -> tuple[str, bool | None]:
        """What a call gave back, and whether it failed: as its completion says, else its output."""
        if output.startswith(_BLOCKED):
            return output, None
        done, older = self._completed.get(id, {}), record_in(output)
        code = number_at(done, "exit_code")
        if code is None:
            code = number_at(older, "metadata", "exit_code")
        if code is None:
            head = _HEAD.match(output)
            code = (
                int(found[1])
                if (found := _EXIT.search(head[0] if head else output.partition("Output:\n")[0]))
                else None
            )
        shown = text_at(done, "aggregated_output") or text_at(older, "output") or _HEAD.sub("", output)
        if code is not None:
            return shown, code != 0
        status = text_at(done, "status")
        return shown, status == "failed" if status in ("failed", "completed") else None


def _task_line(output: str) -> str:
    """The line of Codex's heading that says whether the process ended."""
    head = _HEAD.match(output)
    return next((line for line in head[0].split("\n") if line.startswith("Process")), "") if head else ""
