"""The texts that agents are told by, from the files beside this one or the user's own. Imports nothing of the SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path

from mulligan.app.config import Config, prompts_folder
from mulligan.app.prompts import FilePrompts
from mulligan.core.prompts import Prompt
from mulligan.text.formatting import fenced

TRIALS = 3
"""Trials of a task where the prompt's user names no number: as many as its reflections are shown by default."""

UNNAMED = (
    "a name that stays the same: the one you were given, else that of the program you run in, such as `claude-code`"
)
"""What stands for the agent_id where nobody has named one."""


GIVEN_OTHERWISE = "The task is the one that the user has given you, or gives you next."
"""What stands for the task where the prompt was asked for without one."""


def files_of(config: Config) -> FilePrompts:
    """The user's own prompt files first. Raises `InvalidInput` for a folder that is not there."""
    folder = prompts_folder(config)
    return FilePrompts([Path(folder)] if folder else [])


def memory_rules(files: FilePrompts, agent_id: str | None = None) -> str:
    """What an agent is told so that it uses the memory. Raises `InvalidInput` for a wrong file of the user's."""
    return rendered(files.get("prompts.memory_rules").check("agent_id"), agent_id=name_of(agent_id))


def reflexion(files: FilePrompts, task: str | None = None, trials: int = TRIALS) -> str:
    """What an agent is told so that it makes second tries, at this task or at the one that the user names otherwise.
    Raises `InvalidInput` as above.
    """
    prompt = files.get("prompts.reflexion").check("task", "max_trials")
    said = f"The task:\n\n{fenced(task, 'text')}" if task else GIVEN_OTHERWISE
    return rendered(prompt, task=said, max_trials=str(trials))


def rendered(prompt: Prompt, **values: str) -> str:
    return "\n\n".join(message.text for message in prompt.render(**values))


def name_of(agent_id: str | None) -> str:
    """As code that nothing in it can end."""
    if not agent_id:
        return UNNAMED
    shown = agent_id if agent_id.isprintable() else json.dumps(agent_id)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"
