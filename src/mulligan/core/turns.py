"""The one form of what was said and done in a session, whoever recorded it: a transcript, a trace, a framework, a hook.

A named tuple, not a dataclass: the program of hooks imports this. `turn._replace(...)` makes a changed copy.
"""

from __future__ import annotations

from mulligan.core.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Role: TypeAlias = "Literal['user', 'assistant', 'tool', 'system']"


class Turn(NamedTuple):
    """One thing that was said or done.

    user: what a person said. assistant: what the agent said; with `tool`, the arguments that it called this tool with.
    tool: what a tool gave back. system: what stood above the conversation; nothing is learned from it.

    A format gives the call of a tool and what it gave back as two turns. `sessions.pairs.happened` joins them: what
    came back then has `command`, `output` and `subagent`, too.

    Attributes:
        id: of the call that this turn makes or answers; of what was said, where the format has one.
        failed: of what a tool gave back, whether the call failed. None: nobody says.
        at: seconds since the epoch; 0 if unknown.
        folder: the working folder then; "" if unknown.
        command: what the tool was called with: the command line, or the path of a file.
        output: what it gave back, or what an edit took out and put in.
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
        """Whether this is what a tool was called with and gave back."""
        return self.role == "tool"

    @property
    def who(self) -> str:
        """Who said or did this: user, agent, tool or system."""
        return "agent" if self.role == "assistant" else self.role
