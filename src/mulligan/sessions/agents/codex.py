"""Codex CLI. Its hooks do not say whether a call failed: the end of the transcript does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Old, Payload, Settings, fields, first, stem, text
from mulligan.sessions.events import Notice
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

if TYPE_CHECKING:
    from typing import Any

_TAILS = (1 << 16, 1 << 20)
"""Bytes at the end of a transcript that are searched for a call."""


_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_NOT_SAID = ("<environment_context", "<user_instructions", "<hook_prompt", "<turn_aborted", "<skill", "# AGENTS.md")
"""How texts begin that the program put in the user's mouth."""
_PARENT = ("source", "subagent", "thread_spawn", "parent_thread_id")
"""Of a sub-agent, the session that it belongs to."""
_BLOCKED = "Command blocked by"
_HEAD = r"\A(?:(?:Chunk ID|Wall time|Exit code|Process|Original token count|Total output lines)\b[^\n]*\n)*Output:\n"
"""What Codex writes before the output of a command."""
_EXIT = r"(?m)^(?:Process exited with code|Exit code:) (-?\d+)\b"


class Codex(CodingAgent):
    name, title = "codex", "Codex CLI"
    hooks = (
        Hook("SessionStart", "start", timeout=5),
        Hook("SubagentStart", "start", timeout=5),
        Hook("UserPromptSubmit", "prompt", timeout=5),
        Hook("PreToolUse", "before_tool", "Bash", timeout=5),
        Hook("PostToolUse", "success", timeout=5),
        Hook("PostCompact", "compact", timeout=5),
        Hook("Stop", "stop", timeout=STOP),
        Hook("SubagentStop", "subagent_stop", timeout=5),
        Hook("SessionEnd", "end", timeout=3),
    )
    settings = Settings("~/.codex", "CODEX_HOME", "hooks.json", ".codex/hooks.json")
    grows = True
    logs = "sessions/*/*/*/rollout-*.jsonl"
    plugins = "plugins"
    unplugs = "codex plugin remove"
    command = "codex exec --sandbox workspace-write -"
    packaged = "codex plugin marketplace add {} && codex plugin add mulligan@mulligan"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment = self.moment(event)
        if moment is None:
            return None
        output = ""
        if event == "PostToolUse":
            transcript = text(payload, "agent_transcript_path", "transcript_path")
            failed, output = _result(transcript, text(payload, "tool_use_id"))
            output = output or texts(payload.get("tool_response"))
            moment = "failure" if failed else "success"
        return self._notice(payload, moment, output=output if moment == "failure" else "")

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "features.hooks" if fields(settings, "features").get("hooks") is False else ""

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        head = [inner(one, "payload") for one in head]
        id, parent = first(head, "id") or stem(path)[-36:], first(head, *_PARENT)
        yield Old(self.name, parent or id, path, first(head, "cwd"), at, id if parent else "")

    def session(self, head: Sequence[Record]) -> str:
        about = [inner(one, "payload") for one in head if one.get("type") == "session_meta"]
        return next((id for one in about if (id := text_at(one, *_PARENT) or text_at(one, "id"))), "")

    def recognises(self, text: str) -> bool:
        return any(one.get("type") in _KINDS and isinstance(one.get("payload"), dict) for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        reader = _Reader()
        return [turn for one in records(text) for turn in reader.turns(one)]


def _result(transcript: str, call: str) -> tuple[bool | None, str]:
    """Whether the call failed (None: the transcript does not say) and what it gave."""
    if not transcript or not call:
        return None, ""
    for size in _TAILS:
        for entry in _entries(transcript, call, size):
            item = fields(entry, "item")
            if text(item, "id") == call and text(item, "status"):
                return text(item, "status") == "failed", text(item, "aggregated_output")
            if text(entry, "call_id") != call:
                continue
            if isinstance(entry.get("exit_code"), int):  # `exec_command_end`
                return entry["exit_code"] != 0, text(entry, "aggregated_output")
            output, failed = _outcome({}, texts(entry.get("output")))
            if failed is not None:
                return failed, output
    return None, ""


def _entries(transcript: str, call: str, size: int) -> Iterator[Mapping[str, Any]]:
    """The payloads of the lines that name this call, the last first."""
    try:
        with open(transcript, "rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(length - size, 0))
            lines = file.read(size).split(b"\n")
    except OSError:
        return
    for line in reversed(lines):
        if call.encode() in line:
            try:
                record: Any = json.loads(line)
            except (ValueError, RecursionError):
                continue  # the first line is cut where the file is longer
            if isinstance(record, dict):
                yield fields(record, "payload")  # pyright: ignore[reportUnknownArgumentType]


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
            output, failed = _outcome(self._completed.get(id, {}), given)
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


def _outcome(done: Record, output: str) -> tuple[str, bool | None]:
    """What a call gave back, and whether it failed: as its completion says, else its output.

    Only the heading that Codex writes counts, and not what a command prints.
    """
    if output.startswith(_BLOCKED):
        return output, None
    older = record_in(output)
    code = number_at(done, "exit_code")
    if code is None:
        code = number_at(older, "metadata", "exit_code")
    if code is None:
        head = re.match(_HEAD, output)
        found = re.search(_EXIT, head[0] if head else output.partition("Output:\n")[0])
        code = int(found[1]) if found else None
    shown = text_at(done, "aggregated_output") or text_at(older, "output") or re.sub(_HEAD, "", output)
    if code is not None:
        return shown, code != 0
    status = text_at(done, "status")
    return shown, status == "failed" if status in ("failed", "completed") else None


def _task_line(output: str) -> str:
    """The line of Codex's heading that says whether the process ended."""
    head = re.match(_HEAD, output)
    return next((line for line in head[0].split("\n") if line.startswith("Process")), "") if head else ""


AGENT = Codex()
