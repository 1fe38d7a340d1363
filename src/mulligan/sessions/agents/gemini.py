"""Gemini CLI. A failed command is a tool's result that holds "Exit Code: n"; its limits are milliseconds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import (
    STOP,
    CodingAgent,
    Hook,
    Old,
    Payload,
    Settings,
    fields,
    first,
    items,
    stem,
    text,
)
from mulligan.sessions.events import Notice
from mulligan.sessions.records import (
    Record,
    arguments,
    background_id,
    inner,
    inner_list,
    own,
    record_in,
    records,
    sample,
    seconds,
    text_at,
    texts,
)
from mulligan.text.exit_codes import exit_code

if TYPE_CHECKING:
    from typing import Any

_OWN = r"(?s)<hook_context>.*?(?:</hook_context>\s*|\Z)"


_STATUS = {"success": False, "error": True, "cancelled": None}
_BLOCKED = "Tool execution blocked:"


class Gemini(CodingAgent):
    name, title = "gemini", "Gemini CLI"
    hooks = (
        Hook("SessionStart", "start", timeout=5000),
        Hook("BeforeAgent", "prompt", timeout=5000),
        Hook("BeforeTool", "before_tool", "run_shell_command", 5000),
        Hook("AfterTool", "success", "run_shell_command", 5000),
        Hook("AfterAgent", "stop", timeout=STOP * 1000),
        Hook("SessionEnd", "end", timeout=5000),
    )
    settings = Settings("~/.gemini", "", "settings.json", ".gemini/settings.json")
    edits = "write_file|replace|edit"
    takes_text = ("SessionStart", "BeforeAgent", "AfterTool")
    stop, before_tool = "AfterAgent", "BeforeTool"
    command = "gemini --approval-mode auto_edit"
    logs = "tmp/*/chats/session-*.json*"
    extension = "extensions/mulligan"
    unplugs = "gemini extensions uninstall"
    packaged = "gemini extensions link {}"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment, output = self.moment(event), ""
        if moment is None:
            return None
        if event == "AfterTool":
            result = fields(payload, "tool_response")
            ended = exit_code(texts(result.get("llmContent")))
            if ended and ended[0] != 0:
                moment, output = "failure", ended[1]
            elif error := text(fields(result, "error"), "message"):
                moment, output = "failure", error
        return self._notice(
            payload,
            moment,
            session=text(payload, "session_id") or environ.get("GEMINI_SESSION_ID", ""),
            folder=environ.get("GEMINI_PROJECT_DIR", "") or text(payload, "cwd") or environ.get("GEMINI_CWD", ""),
            text=re.sub(_OWN, "", text(payload, "prompt_response" if event == "AfterAgent" else "prompt")).strip(),
            output=output,
        )

    def _hold(self, reason: str) -> str:
        return json.dumps({"decision": "deny", "reason": reason})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        return json.dumps({"decision": decision, "reason": reason})

    def entry(self, hook: Hook, command: str) -> dict[str, Any]:
        called = {"type": "command", "name": "mulligan", "command": command, **self._limit(hook)}
        return {**self._matcher(hook), "hooks": [called]}  # its /hooks panel lists the name

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        config = fields(settings, "hooksConfig")
        off = config.get("enabled") is False
        return (
            "hooksConfig.enabled" if off else "hooksConfig.disabled" if "mulligan" in items(config, "disabled") else ""
        )

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        yield Old(self.name, first(head, "sessionId") or stem(path), path, self._project(os.path.dirname(path)), at)

    def _project(self, chats: str) -> str:
        """The folder that a folder of chats is about: as a file beside it says, else Gemini CLI's list of projects."""
        place = os.path.dirname(chats)
        try:
            with open(os.path.join(place, ".project_root"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            pass
        try:
            with open(os.path.join(self.folder(), "projects.json"), encoding="utf-8") as file:
                listed = fields(record_in(file.read()), "projects")
        except (OSError, ValueError):
            return ""
        return next((folder for folder, name in listed.items() if name == os.path.basename(place)), "")

    def subagents(self, transcript: str, session: str) -> str:
        return os.path.join(os.path.dirname(transcript), session)

    def session(self, head: Sequence[Record]) -> str:
        return first([one for one in head if "projectHash" in one], "sessionId") or first(head[:1], "session_id")

    def recognises(self, text: str) -> bool:
        head = [one for one, _ in zip(_records(text), range(5), strict=False)]
        return _is_stream(head) or any("sessionId" in one and "projectHash" in one for one in head)

    def read(self, text: str, name: str) -> list[Turn]:
        if _is_stream(sample(text)):
            return list(_streamed(text))
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


def _is_stream(head: Sequence[Record]) -> bool:
    """Whether these are the events that `--output-format stream-json` prints."""
    return bool(head) and head[0].get("type") == "init" and "session_id" in head[0] and "model" in head[0]


def _streamed(text: str) -> Iterator[Turn]:
    """The turns in a stream, in which an answer comes in parts."""
    called: dict[str, str] = {}
    said = ""
    for n, one in enumerate(records(text)):
        kind, at, id = one.get("type"), seconds(one.get("timestamp")), text_at(one, "tool_id")
        part = text_at(one, "content") if kind == "message" and one.get("role") == "assistant" else ""
        if said and not part:
            yield Turn("assistant", said, "", f"stream:{n}", None, at)
            said = ""
        said += part
        if kind == "message" and one.get("role") == "user" and (asked := own(text_at(one, "content"))):
            yield Turn("user", asked, "", f"stream:{n}:user", None, at)
        elif kind == "tool_use":
            called[id] = text_at(one, "tool_name")
            yield Turn("assistant", arguments(one.get("parameters")), called[id], id, None, at)
        elif kind == "tool_result":
            output = text_at(one, "output") or text_at(one, "error", "message")
            yield _result(output, text_at(one, "status"), called.get(id, ""), id, at)
    if said:
        yield Turn("assistant", said, "", "stream:end")


def _result(output: str, status: str, tool: str, id: str, at: float) -> Turn:
    output, failed = own(output), _STATUS.get(status)
    if ended := exit_code(output):
        failed, output = ended[0] != 0, ended[1]
    unknown = output.startswith(_BLOCKED) or background_id(output) is not None
    return Turn("tool", output, tool, id, None if unknown else failed, at)


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
            yield _result(_output(call), status, tool, called, at)


def _output(call: Record) -> str:
    result = call.get("result")
    if isinstance(result, str):
        return result
    answers = [inner(part, "functionResponse", "response") for part in inner_list(call, "result")]
    return "\n".join(filter(None, (text_at(one, "output") or text_at(one, "error") for one in answers))) or texts(
        result
    )


AGENT = Gemini()
