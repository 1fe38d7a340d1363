"""Claude Code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import (
    STOP,
    CodingAgent,
    Hook,
    Old,
    Payload,
    Settings,
    command_of,
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
    records,
    sample,
    seconds,
    text_at,
    texts,
)

if TYPE_CHECKING:
    from typing import Any

_CODE = r"\A(?:Error: )?Exit code -?\d+[ \t]*(?:\n|\Z)"
_REFUSED = ("The user doesn't want to", "[Request interrupted", "Permission to use", "Claude requested permissions")
_NOT_SAID = ("Stop hook feedback", "[Request interrupted", "Caveat:", "<command-", "<local-command-", "<task-")
"""How texts begin that the program put in the user's mouth."""
_SAID = r"(?s)the user said:\s*(.+)\Z"
"""The user's words in the result of a call that the user refused."""
_SAVED = r"\A\s*<persisted-output>[^\n]*\n[^\n]*saved to: ([^\n]+)"
_TAIL = 80_000
"""Bytes at the end of a saved output that are read."""
_TASK = r"<task[-_]id>\s*([\w-]+)\s*</task[-_]id>"
_STATUS = r"<status>\s*(completed|failed|killed|stopped)\s*</status>"
_EXIT = r"<exit_code>\s*(-?\d+)\s*</exit_code>|\bexit code (-?\d+)"
_OUTPUT = r"(?s)<(output|stdout|stderr)>\n?(.*?)</\1>"


class Claude(CodingAgent):
    name, title = "claude", "Claude Code"
    hooks = (
        Hook("SessionStart", "start", timeout=5),
        Hook("SubagentStart", "start", timeout=5),
        Hook("UserPromptSubmit", "prompt", timeout=5),
        Hook("PreToolUse", "before_tool", "Bash", timeout=5),
        Hook("PostToolUseFailure", "failure", timeout=5),
        Hook("Stop", "stop", timeout=STOP),
        Hook("SubagentStop", "subagent_stop", timeout=5),
        Hook("SessionEnd", "end", timeout=5),
    )
    settings = Settings(
        "~/.claude", "CLAUDE_CONFIG_DIR", "settings.json", ".claude/settings.json", ".claude/settings.local.json"
    )
    holds_in_row = 8
    asks = True
    grows = True
    logs = "projects/*/*.jsonl"
    plugins = "enabledPlugins"
    unplugs = "claude plugin uninstall"
    writes = ("~/.claude", "~/.claude.json")
    command = "claude -p --permission-mode acceptEdits"
    packaged = "claude plugin marketplace add {} && claude plugin install mulligan@mulligan"

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        event = text(payload, "hook_event_name")
        moment = self.moment(event)
        if moment is None or (event == "PostToolUseFailure" and payload.get("is_interrupt") is True):
            return None
        subagent_id = text(payload, "agent_id")  # a session of `claude --agent` has a type, but no id
        return Notice(
            self.name,
            moment,
            session=text(payload, "session_id"),
            folder=environ.get("CLAUDE_PROJECT_DIR", "") or text(payload, "cwd"),  # `cd` moves only the second
            event=event,
            transcript=text(payload, "agent_transcript_path" if subagent_id else "transcript_path"),
            source=text(payload, "source"),
            text=text(payload, "prompt", "last_assistant_message"),
            tool=text(payload, "tool_name"),
            command=command_of(fields(payload, "tool_input")),
            call=text(payload, "tool_use_id"),
            output=re.sub(_CODE, "", text(payload, "error")),
            subagent=text(payload, "agent_type") if subagent_id else "",
            subagent_id=subagent_id,
            stop_hook_active=payload.get("stop_hook_active") is True,
            waits=bool(items(payload, "background_tasks")),
        )

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        return "disableAllHooks" if settings.get("disableAllHooks") else ""

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        folder = first(head, "cwd")
        if folder and not os.path.isdir(folder):  # a worktree that was removed since
            folder = first(head, "worktreeSession", "originalCwd") or folder
        yield Old(self.name, stem(path), path, folder, at)

    def subagents(self, transcript: str, session: str) -> str:
        return os.path.join(os.path.splitext(transcript)[0], "subagents")

    def session(self, head: Sequence[Record]) -> str:
        return next((id for one in head if _is_said(one) and (id := text_at(one, "sessionId"))), "")

    def recognises(self, text: str) -> bool:
        return any(_is_said(one) and "content" in inner(one, "message") and "uuid" in one for one in sample(text))

    def read(self, text: str, name: str) -> list[Turn]:
        reader = _Reader(os.path.dirname(os.path.abspath(name)))
        turns: list[Turn] = []
        for one in filter(_is_said, records(text)):
            aside = bool(turns) and one.get("isSidechain")  # the main agent speaks to a sub-agent; its task stays
            turns += [turn for turn in reader.turns(one) if not (aside and turn.role == "user")]
        return turns


def _is_said(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


class _Reader:
    """folder: where the transcript lies. Saved outputs are read only below it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._called: dict[str, tuple[str, Record]] = {}
        self._background: dict[str, str] = {}

    def turns(self, record: Record) -> Iterator[Turn]:
        by_user = record["type"] == "user"
        at, folder, message = seconds(record.get("timestamp")), text_at(record, "cwd"), inner(record, "message")
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else inner_list(message, "content")
        for n, block in enumerate(blocks):
            kind = text_at(block, "type")
            if kind in ("tool_use", "server_tool_use"):
                id, tool = text_at(block, "id"), text_at(block, "name")
                self._called[id] = tool, inner(block, "input")
                yield Turn("assistant", arguments(block.get("input")), tool, id, None, at, folder)
            elif kind == "tool_result":
                yield from self._results(block, at, folder)
            elif kind == "text" and (said := own(text_at(block, "text"))):
                if by_user and said.startswith("<task-"):
                    yield from self._ended(said, "", at, folder)
                if by_user and (record.get("isMeta") or record.get("isCompactSummary") or said.startswith(_NOT_SAID)):
                    continue
                id = f"{text_at(record, 'uuid')}:{n}"
                yield Turn("user" if by_user else "assistant", said, "", id, None, at, folder)

    def _results(self, block: Record, at: float, folder: str) -> Iterator[Turn]:
        id, result = text_at(block, "tool_use_id"), own(texts(block.get("content")))
        tool, given = self._called.get(id, ("", {}))
        if (task := background_id(result)) is not None:
            if task:  # its result comes with its end
                self._background[task] = id
            else:
                yield Turn("tool", result, tool, id, None, at, folder)
            return
        refused = result.startswith(_REFUSED)
        yield from self._ended(result, text_at(given, "bash_id") or text_at(given, "task_id"), at, folder)
        failed = None if refused else block.get("is_error") is True
        yield Turn("tool", self._whole(result), tool, id, failed, at, folder)
        if refused and (said := re.search(_SAID, result)):
            yield Turn("user", said[1].strip(), "", f"{id}:said", None, at, folder)

    def _ended(self, text: str, task: str, at: float, folder: str) -> Iterator[Turn]:
        """The result of a command in the background, from what says that it ended."""
        if found := re.search(_TASK, text):
            task = found[1]
        status = re.search(_STATUS, text)
        if task not in self._background or not status:
            return
        id = self._background.pop(task)
        code = re.search(_EXIT, text)
        failed = None if status[1] in ("killed", "stopped") else status[1] == "failed"
        if failed is False and code:
            failed = int(code[1] or code[2]) != 0
        output = "\n".join(found[2] for found in re.finditer(_OUTPUT, text))
        yield Turn("tool", output.strip(), self._called[id][0], id, failed, at, folder)

    def _whole(self, result: str) -> str:
        """A result that was saved to a file: the end of that file; "" where it cannot be read, as a preview does not
        show what went wrong."""
        saved = re.match(_SAVED, result)
        if not saved:
            return result
        path = os.path.realpath(saved[1].strip())
        if not path.startswith(os.path.realpath(self._folder) + os.sep) or not os.path.isfile(path):
            return ""
        try:
            with open(path, "rb") as file:
                file.seek(max(os.path.getsize(path) - _TAIL, 0))
                return own(file.read(_TAIL).decode("utf-8", "replace"))
        except OSError:
            return ""


AGENT = Claude()
