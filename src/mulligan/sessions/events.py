"""What hooks and transcripts report, in one form for every coding agent.

Named tuples, not dataclasses: the program that agents start for each hook imports this file, and `dataclasses` takes
longer to import than all of it. `notice._replace(...)` makes a changed copy.
"""

from __future__ import annotations

from mulligan.core.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

Moment: TypeAlias = (
    "Literal['start', 'prompt', 'before_tool', 'failure', 'success', 'compact', 'stop', 'end', 'subagent_stop']"
)

SHOWN = 200
"""Characters of a command that a lesson keeps."""
KEY = "error:"
"""Begins the key by which the bank's store finds the lessons about an error; the digest of its signature follows."""


QUESTION = """<mulligan-question>
Mulligan asks this once in a session, as the user has set. What was wrong with the last command of this session that
failed and works now, and what fixed it? Answer in one sentence each, and call no tool. Write only "none" if you do not
know, and only "no lesson" if no later session needs to know it.
</mulligan-question>"""
"""What an agent is asked when it stops. Readers of transcripts leave it out, as it stands in tags."""


class Notice(NamedTuple):
    """One call of a hook.

    Attributes:
        folder: the folder that the agent works in.
        event: the agent's own name of the event.
        transcript: the path of the session's transcript; "" if there is none.
        source: why a session starts: startup, resume, compact or clear.
        text: the prompt; at a stop, the agent's last message.
        command: what a tool was called with: the command line, or the path of a file.
        call: the id of the tool call.
        output: what a failed call gave.
        subagent: the type of the sub-agent; "" for the main agent.
        subagent_id: which sub-agent of this session.
        waits: the agent stops only until work of its own in the background has ended.
        stop_hook_active: the agent is in a turn that a stop hook asked for.
    """

    agent: str
    moment: Moment
    session: str
    folder: str
    event: str = ""
    transcript: str = ""
    source: str = ""
    text: str = ""
    tool: str = ""
    command: str = ""
    call: str = ""
    output: str = ""
    subagent: str = ""
    subagent_id: str = ""
    stop_hook_active: bool = False
    waits: bool = False
