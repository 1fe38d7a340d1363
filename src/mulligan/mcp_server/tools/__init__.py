"""The tools that a server offers: a file for each, with the tool as `TOOL`; and how they are selected by name."""

from __future__ import annotations

from collections.abc import Collection

from mulligan.core.errors import InvalidInput

SETS = {
    "reflexion": ("reflexion-thinking", "solve"),
    "memory": ("retrieve_memory", "extract_memory", "memory_task"),
    "scaling": ("memory_group",),
    "hooks": ("hook", "review_lessons"),
    "goals": ("goal",),
}
UNASKED = ("reflexion", "memory")
"""The sets in "all". The others have to be named: few agents run trajectories (design/097), that for hooks is no
tool for models, and that for goals runs a command."""


def select_tools(which: str) -> Collection[str]:
    """The names of the selected tools, in a fixed order.

    Args:
        which: "all", or names of sets and tools, separated by commas.

    Raises:
        InvalidInput: a name is unknown.
    """
    words = {word.strip() for word in which.split(",")} - {""}
    known = [*SETS, "all", *(tool for tools in SETS.values() for tool in tools)]
    for word in words or {which}:
        if word not in known:
            raise InvalidInput(f"{word!r} is not a tool. Use one or more of: {', '.join(known)}.")
    asked = words.union(UNASKED if "all" in words else ())
    return [tool for name, tools in SETS.items() for tool in tools if asked & {name, tool}]


def topics(which: str) -> Collection[str]:
    """What to explain to a model: "memory" and "reflexion", each if the tools it is about are served."""
    tools = set(select_tools(which))
    needed = {"memory": {"retrieve_memory", "extract_memory"}, "reflexion": {"reflexion-thinking"}}
    return [topic for topic, names in needed.items() if names <= tools]
