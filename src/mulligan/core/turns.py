"""What was said and done in a session, in one form for transcripts, traces, frameworks and hooks.

It is a named tuple and not a dataclass because the program of hooks imports it.
"""

from __future__ import annotations

from mulligan.core.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Role: TypeAlias = "Literal['user', 'assistant', 'tool', 'system']"


class Turn(NamedTuple):
    """One turn of a conversation: something that was said or done.

    The role `user` is for what a person said, `assistant` for what the agent said or, with `tool`, the arguments of its
    call to this tool, `tool` for a tool's result, and `system` for the system prompt, from which nothing is learned.

    A format returns a call and its result as two turns. `sessions.happenings.happened` joins them, so that the result
    also has `command`, `output` and `subagent`.

    Attributes:
        id: the id of the call that this turn makes or answers, or of the message, if the format has ids.
        failed: for a result, whether the call failed. None: unknown.
        at: seconds since the epoch; 0 if unknown.
        folder: the working folder at that time; "" if unknown.
        command: the command line or file path with which the tool was called.
        output: the tool's result, or the lines that an edit removed and added.
        subagent: the type of the sub-agent that made the call; "" for the main agent.
    """

    role: Role
    text: str
    tool: str = ""
    id: str = ""
    failed: bool | None = None
    at: float = 0.0
    folder: str = ""
    command: str = ""
    output: str = ""
    subagent: str = ""

    @property
    def is_call(self) -> bool:
        """Whether this is the result of a tool, joined with its call."""
        return self.role == "tool"

    @property
    def who(self) -> str:
        """Who said or did this: user, agent, tool or system."""
        return "agent" if self.role == "assistant" else self.role
