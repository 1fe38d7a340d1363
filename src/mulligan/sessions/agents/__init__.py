"""The coding agents that are understood: one file and one class each, with all that is particular to it: design/130.

A file is imported when its agent is named. `AGENT` in it is the agent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING, NamedTuple, cast
from mulligan.core.turns import Turn
from mulligan.sessions.events import Moment, Notice
from mulligan.sessions.records import Record, as_record, text_at, whole

if TYPE_CHECKING:
    from typing import Any, ClassVar, Literal, TypeAlias

Payload: TypeAlias = "Mapping[str, Any]"
"""What an agent hands to a hook, read from JSON."""


Scope: TypeAlias = "Literal['user', 'project', 'local']"
SCOPES: tuple[Scope, ...] = ("user", "project", "local")


class Hook(NamedTuple):
    """A hook to install.

    Attributes:
        event: the agent's own name of the event.
        matcher: which tools it is for, in the agent's own syntax; "" is all of them.
        timeout: in the agent's own unit; 0: the agent knows none.
    """

    event: str
    moment: Moment
    matcher: str = ""
    timeout: int = 0


STOP = 3600
"""Seconds that a hook at a stop may take: the check of a goal runs there. It is constant, as Codex asks its user to
trust a hook anew when the limit changes."""


class Settings(NamedTuple):
    """Where an agent's hooks stand.

    Attributes:
        folder: of the user's settings, if `variable` is not set.
        variable: the environment variable that names another folder.
        user: the file in that folder; "": the agent has no such file.
        project: the file in a project's folder that a team shares.
        local: the file in a project's folder that stays on this machine.
        new: the text of a new file, before the hooks are added.
    """

    folder: str
    variable: str = ""
    user: str = ""
    project: str = ""
    local: str = ""
    new: str = "{}\n"


class Old(NamedTuple):
    """A transcript on this machine. session, subagent: as hooks call them. at: when it was last written."""

    agent: str
    session: str
    path: str
    folder: str
    at: float
    subagent: str = ""


SHELLS = ("bash", "shell", "exec_command", "run_shell_command", "local_shell", "terminal", "run_terminal_cmd")
"""Tools that run commands, as agents call them."""


class CodingAgent:
    """A coding agent. What stands here is as most agents have it: the hooks of Claude Code.

    Attributes:
        name: as commands and the journal name it; also that of its program.
        tried: whether it was seen to work with the agent itself, not only read in its documentation.
        takes_text: the events at which a text that a hook prints is read by the model.
        stop: the event at which the agent would end its turn.
        before_tool: the event before a tool call.
        holds: whether a hook can keep the agent at work when it would stop.
        holds_in_row: how often in a row it is kept at work at most, by the agent's own limit; 0: no limit is known.
        says_held: whether `Notice.stop_hook_active` is true exactly when a hook has kept the agent at work.
        asks: whether a hook can let the user decide on a tool call.
        edits: the tools that change files, as a matcher names them; "": the hook before a call is for all tools, or for
            commands alone.
        ends: whether each session ends with an event. Otherwise the stop of a turn has to do.
        readable: whether its transcripts can be read.
        grows: whether a transcript is only ever added to.
        command: how it is started without a terminal so that it edits files unasked; "" for none.
        packaged: how its package is installed, with `{}` for the folder; "" if it has none.
        plugins: the table of its settings that lists its plug-ins.
        extension: the folder of Mulligan's extension below that of the settings.
        unplugs: the command that takes a plug-in or an extension out.
        logs: the pattern of its transcripts' paths, below `log_folder()`.
        writes: where it keeps sessions and settings, if not in the folder of the settings.
        shells: its tools that run commands. Errors of others are no failures of the project.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    tried: ClassVar[bool] = True
    hooks: ClassVar[tuple[Hook, ...]]
    settings: ClassVar[Settings]
    takes_text: ClassVar[Sequence[str]] = (
        *("SessionStart", "SubagentStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"),
    )
    stop: ClassVar[str] = "Stop"
    before_tool: ClassVar[str] = "PreToolUse"
    holds: ClassVar[bool] = True
    holds_in_row: ClassVar[int] = 0
    says_held: ClassVar[bool] = True
    asks: ClassVar[bool] = False
    edits: ClassVar[str] = ""
    ends: ClassVar[bool] = True
    readable: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    command: ClassVar[str] = ""
    packaged: ClassVar[str] = ""
    plugins: ClassVar[str] = ""
    extension: ClassVar[str] = ""
    unplugs: ClassVar[str] = ""
    logs: ClassVar[str] = ""
    writes: ClassVar[Sequence[str]] = ()
    shells: ClassVar[Sequence[str]] = SHELLS

    # --- hooks --------------------------------------------------------------------------------------------------------

    def notice(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
        """What a payload says; None for an event that means nothing here."""
        raise NotImplementedError

    def _notice(self, payload: Payload, moment: Moment, **other: Any) -> Notice:
        """What a payload says in the fields of Claude Code's. other: what this agent's says in another way."""
        id = text(payload, "agent_id")  # a session of `claude --agent` has a type, but no id
        said: dict[str, Any] = {
            "session": text(payload, "session_id"),
            "folder": text(payload, "cwd"),
            "event": text(payload, "hook_event_name"),
            "transcript": text(payload, "agent_transcript_path" if id else "transcript_path"),
            "source": text(payload, "source"),
            "text": text(payload, "prompt", "last_assistant_message"),
            "tool": text(payload, "tool_name"),
            "command": command_of(fields(payload, "tool_input")),
            "call": text(payload, "tool_use_id"),
            "subagent": text(payload, "agent_type") if id else "",
            "subagent_id": id,
            "stop_hook_active": self.says_held and payload.get("stop_hook_active") is True,
        }
        return Notice(self.name, moment, **{**said, **other})

    def moment(self, event: str) -> Moment | None:
        """What an event of the agent is here; None: nothing."""
        return next((hook.moment for hook in self.hooks if hook.event == event), None)

    def answer(self, notice: Notice, text: str) -> str:
        """What a hook prints so that the model reads the text; "" where the agent takes no text at this event."""
        return self._context(notice, text) if notice.event in self.takes_text else ""

    def hold(self, notice: Notice, reason: str) -> str:
        """What a hook prints so that an agent that would stop goes on for one turn, with this to read; "" where it
        cannot be kept."""
        return self._hold(reason) if self.holds and notice.event == self.stop else ""

    def deny(self, notice: Notice, reason: str) -> str:
        """What a hook prints so that the tool call does not take place; "" where that cannot be said."""
        return self._decide(notice, "deny", reason) if notice.event == self.before_tool else ""

    def ask(self, notice: Notice, reason: str) -> str:
        """What a hook prints so that the user decides on the tool call; "" where the agent cannot ask."""
        return self._decide(notice, "ask", reason) if self.asks and notice.event == self.before_tool else ""

    def _context(self, notice: Notice, text: str) -> str:
        return json.dumps({"hookSpecificOutput": {"hookEventName": notice.event, "additionalContext": text}})

    def _hold(self, reason: str) -> str:
        return json.dumps({"decision": "block", "reason": reason})

    def _decide(self, notice: Notice, decision: str, reason: str) -> str:
        said = {"permissionDecision": decision, "permissionDecisionReason": reason}
        return json.dumps({"hookSpecificOutput": {"hookEventName": notice.event, **said}})

    # --- settings -----------------------------------------------------------------------------------------------------

    def folder(self, environ: Mapping[str, str] = os.environ) -> str:
        """The folder of the agent's settings for this user."""
        chosen = environ.get(self.settings.variable) if self.settings.variable else None
        return os.path.expanduser(chosen or self.settings.folder)

    def entry(self, hook: Hook, command: str) -> dict[str, Any]:
        """A hook as it stands in the settings."""
        return {**self._matcher(hook), "hooks": [{"type": "command", "command": command, **self._limit(hook)}]}

    def _matcher(self, hook: Hook) -> dict[str, Any]:
        return {"matcher": hook.matcher} if hook.matcher else {}

    def _limit(self, hook: Hook, name: str = "timeout") -> dict[str, Any]:
        return {name: hook.timeout} if hook.timeout else {}

    def switched_off(self, settings: Mapping[str, Any]) -> str:
        """What in these settings turns hooks off; "" for nothing."""
        return ""

    # --- transcripts --------------------------------------------------------------------------------------------------

    def recognises(self, text: str) -> bool:
        """Whether a text is a transcript of this agent."""
        return False

    def read(self, text: str, name: str) -> list[Turn]:
        """What was said and done in a transcript. name: its path, or what errors call it."""
        raise NotImplementedError

    def session(self, head: Sequence[Record]) -> str:
        """The id of the session in the first records of a transcript; "" if none of them says it."""
        return ""

    def text(self, transcript: str, session: str) -> str:
        """The transcript of a session. Raises `OSError`, `sqlite3.Error`."""
        with open(transcript, encoding="utf-8", errors="replace") as file:
            return file.read()

    def written(self, transcript: str, session: str) -> float:
        """When a transcript was last written; 0 if there is no such file. Raises `sqlite3.Error`."""
        try:
            found = os.stat(transcript)
        except OSError:
            return 0.0
        return 0.0 if found.st_mode & 0o170000 == 0o010000 else found.st_mtime  # a pipe would keep its reader waiting

    def subagents(self, transcript: str, session: str) -> str:
        """The folder with the transcripts of a session's sub-agents; "" if the agent has no such folder."""
        return ""

    def log_folder(self) -> str:
        """The folder that `logs` stands for."""
        return self.folder()

    def old(self, path: str, at: float, head: Sequence[Record]) -> Iterator[Old]:
        """The sessions in a file of transcripts. at: when it was written. head: its first records."""
        yield Old(self.name, stem(path), path, first(head, "cwd"), at)


NAMES = ("claude", "codex", "gemini", "opencode", "qwen", "cursor", "copilot")


def readable() -> tuple[str, ...]:
    """The agents whose transcripts can be read."""
    return tuple(sorted(name for name in NAMES if agent(name).readable))


def agent(name: str) -> CodingAgent:
    """Raises `KeyError` for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise KeyError(name)
    # Not `import_module`, as `importlib` takes longer to import than all of this.
    return __import__(f"mulligan.sessions.agents.{name}", fromlist=["AGENT"]).AGENT


def is_shell(tool: str, name: str = "") -> bool:
    """Whether a tool runs commands. name: of the agent whose tool it is; any other name stands for all agents."""
    return tool.lower().rpartition(".")[2] in (agent(name).shells if name in NAMES else SHELLS)


def first(records: Sequence[Record], *keys: str) -> str:
    """The first text below these keys in some records."""
    return next((found for one in records if (found := text_at(one, *keys))), "")


def stem(path: str) -> str:
    """The name of a file without its ending."""
    return os.path.splitext(os.path.basename(path))[0]


def text(given: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is text and not empty; "" for none."""
    return next((value for name in names if isinstance(value := given.get(name), str) and value), "")


def fields(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object, or the text of one; empty if it is none."""
    value = given.get(name)
    return as_record(whole(value) if isinstance(value, str) and value.startswith("{") else value)


def items(given: Mapping[str, Any], name: str) -> Sequence[Any]:
    """A field that is a list; empty if it is none."""
    value = given.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else ()


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command line that a tool was called with, else the path of a file, else what it was asked for."""
    return text(
        arguments, "command", "cmd", "file_path", "filePath", "absolute_path", "notebook_path", "path", "url", "pattern"
    )
