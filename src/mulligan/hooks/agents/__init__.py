"""The coding agents whose hooks are understood, one file each. A file is imported when its agent is named."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module

from mulligan.hooks.events import Moment, Notice
from mulligan.hooks.light import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from typing import Any, Literal, Protocol, TypeAlias

Payload: TypeAlias = "Mapping[str, Any]"
"""What an agent hands to a hook, read from JSON."""


Scope: TypeAlias = "Literal['user', 'project', 'local']"


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


class Settings(NamedTuple):
    """Where an agent's hooks stand.

    Attributes:
        folder: of the user's settings, if `variable` is not set.
        variable: the environment variable that names another folder.
        user: the file in that folder; "": the agent has no such file.
        project: the file in a project's folder that a team shares.
        local: the file in a project's folder that stays on this machine.
    """

    folder: str
    variable: str = ""
    user: str = ""
    project: str = ""
    local: str = ""


if TYPE_CHECKING:

    class Agent(Protocol):
        """What a file of this folder holds."""

        NAME: str
        TITLE: str
        TRIED: bool
        """Whether it was seen to work with the agent itself, not only read in its documentation."""
        HOOKS: tuple[Hook, ...]
        SETTINGS: Settings

        def read(self, payload: Payload, environ: Mapping[str, str]) -> Notice | None:
            """None for an event that means nothing here."""
            ...

        def answer(self, notice: Notice, text: str) -> str:
            """What a hook prints so that the model reads the text; "" where the agent takes no text at this event."""
            ...

        def ask(self, notice: Notice, question: str) -> str:
            """What a hook prints so that an agent that would stop goes on for one turn with this question; "" where no
            agent does."""
            ...

        def deny(self, notice: Notice, reason: str) -> str:
            """What a hook prints so that the tool call does not take place; "" where that cannot be said."""
            ...

else:
    Agent = object


NAMES = ("claude", "codex", "gemini", "opencode", "qwen", "cursor", "copilot")


def agent(name: str) -> Agent:
    """Raises `KeyError` for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise KeyError(name)
    return cast("Agent", import_module(f"mulligan.hooks.agents.{name}"))


def text(given: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is text and not empty; "" for none."""
    return next((value for name in names if isinstance(value := given.get(name), str) and value), "")


def fields(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A field that is an object, or the text of one; empty if it is none."""
    value = given.get(name)
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def items(given: Mapping[str, Any], name: str) -> Sequence[Any]:
    """A field that is a list; empty if it is none."""
    value = given.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else ()


def command_of(arguments: Mapping[str, Any]) -> str:
    """The command line that a tool was called with, else the path of a file, else what it was asked for."""
    return text(
        arguments, "command", "cmd", "file_path", "filePath", "absolute_path", "notebook_path", "path", "url", "pattern"
    )


def with_context(event: str, text: str) -> str:
    """The answer of Claude Code that several agents have taken over."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


# What a hook of Claude Code prints, and of the agents that have taken over its hooks.

_TAKES_TEXT = {"SessionStart", "SubagentStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"}


def answer(notice: Notice, text: str) -> str:
    return with_context(notice.event, text) if notice.event in _TAKES_TEXT else ""


def ask(notice: Notice, question: str) -> str:
    return json.dumps({"decision": "block", "reason": question}) if notice.event == "Stop" else ""


def deny(notice: Notice, reason: str) -> str:
    if notice.event != "PreToolUse":
        return ""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return json.dumps({"hookSpecificOutput": {"hookEventName": notice.event, **decision}})


def plain(content: Any) -> str:
    """The text of a result: text, parts with a text, or a list of these."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(plain, cast("list[Any]", content))))
    return (
        content
        if isinstance(content, str)
        else text(cast("Mapping[str, Any]", content), "text")
        if isinstance(content, dict)
        else ""
    )
