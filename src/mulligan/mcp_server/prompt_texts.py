"""The texts that tell agents how to use the server, from Mulligan's prompt files or the user's.

Does not import the SDK.
"""

from __future__ import annotations

import json
import re

from mulligan.app.prompts import FilePrompts
from mulligan.app.service import Service
from mulligan.core.prompts import Prompt
from mulligan.mcp_server.tools import topics
from mulligan.text.formatting import fenced

TRIALS = 3
"""Trials of a task where nobody names a number: as many as reflections are shown by default."""

UNNAMED = (
    "a name that stays the same: the one you were given, else that of the program you run in, such as `claude-code`"
)
"""Stands for the agent_id where nobody has named one."""

NO_TASK = "The task is the one that the user has given you, or gives you next."
"""Stands for the task where the prompt was requested without one."""


def instructions(service: Service, which: str) -> str:
    """What a client is told when it connects. Raises `InvalidInput` for an invalid file of the user's."""
    files, agent = FilePrompts.of(service.config), quote_name(service.served.agent_id)
    prompts = [files.get(f"instructions.{part}") for part in (*topics(which), "server")]
    return "\n\n".join(_render(prompt.check("agent_id"), agent_id=agent) for prompt in prompts)


def memory_rules(files: FilePrompts, agent_id: str | None = None) -> str:
    """Tells an agent when and how to use the memory. Raises `InvalidInput` for an invalid file of the user's."""
    return _render(files.get("prompts.memory_rules").check("agent_id"), agent_id=quote_name(agent_id))


def reflexion(files: FilePrompts, task: str | None = None, trials: int = TRIALS) -> str:
    """Tells an agent how to make second tries. Raises `InvalidInput` for an invalid file of the user's."""
    prompt = files.get("prompts.reflexion").check("task", "max_trials")
    text = f"The task:\n\n{fenced(task, 'text')}" if task else NO_TASK
    return _render(prompt, task=text, max_trials=str(trials))


def _render(prompt: Prompt, **values: str) -> str:
    return "\n\n".join(message.text for message in prompt.render(**values))


def quote_name(agent_id: str | None) -> str:
    """The name as Markdown code that nothing in it can end."""
    if not agent_id:
        return UNNAMED
    shown = agent_id if agent_id.isprintable() else json.dumps(agent_id)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"
