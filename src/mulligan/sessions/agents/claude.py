"""Claude Code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING
from mulligan.core.turns import Turn
from mulligan.sessions.agents import STOP, CodingAgent, Hook, Old, Payload, Settings, first, items, stem, text
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

if TYPE_CHECKING:
    from typing import Any

_CODE = r"\A(?:Error: )?Exit code -?\d+[ \t]*(?:\n|\Z)"
_REFUSED = ("The user doesn't want to", "[Request interrupted", "Permission to use", "Claude requested permissions")
_NOT_SAID = ("Stop hook feedback", "[Request interrupted", "Caveat:", "<command-", "<local-command-", "<task-")
"""How texts begin that the program put in the user's mouth."""
_SAID = r"(?s)the user said:\s*(.+)\Z"
"""The user's words in the result of a call that the user refused."""
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
    edits = "Edit|Write|MultiEdit|NotebookEdit"
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
        folder = environ.get("CLAUDE_PROJECT_DIR", "") or text(payload, "cwd")  # `cd` moves only the second
        output, waits = re.sub(_CODE, "", text(payload, "error")), bool(items(payload, "background_tasks"))
        return self._notice(payload, moment, folder=folder, output=output, waits=waits)

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
        return next(
            (id for one in head if _is_said(one) and (id := text_at(one, "sessionId") or text_at(one, "session_id"))),
            "",
        )

    def recognises(self, text: str) -> bool:
        known = ("uuid", "session_id")  # the second in what `--output-format stream-json` prints
        said = [one for one in sample(text) if _is_said(one) and "content" in inner(one, "message")]
        return any(name in one for one in said for name in known)

    def read(self, text: str, name: str) -> list[Turn]:
        reader = _Reader(os.path.dirname(os.path.abspath(name)), first(sample(text)[:1], "cwd"))
        turns: list[Turn] = []
        for one in filter(_is_said, records(text)):
            # The main agent speaks to a sub-agent; its task stays.
            aside = bool(turns) and (one.get("isSidechain") or one.get("parent_tool_use_id"))
            turns += [turn for turn in reader.turns(one) if not (aside and turn.role == "user")]
        return turns


def _is_said(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


class _Reader:
    """folder: where the transcript lies. Saved outputs are read only below it. cwd: where the agent began to work."""

    def __init__(self, folder: str, cwd: str) -> None:
        self._folder, self._cwd = folder, cwd
        self._called: dict[str, tuple[str, Record]] = {}
        self._background: dict[str, str] = {}

    def turns(self, record: Record) -> Iterator[Turn]:
        by_user = record["type"] == "user"
        at, message = seconds(record.get("timestamp")), inner(record, "message")
        folder = text_at(record, "cwd") or self._cwd
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
        yield Turn("tool", unshortened(result, self._folder + os.sep), tool, id, failed, at, folder)
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


AGENT = Claude()
