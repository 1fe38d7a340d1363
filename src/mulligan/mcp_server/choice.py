"""Which tools a server has: sets of them, or single ones by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mulligan.core.errors import InvalidInput

SETS: Mapping[str, Mapping[str, str]] = {
    "reflexion": {"reflexion-thinking": "reflexion_thinking", "solve": "solve"},
    "memory": {
        "retrieve_memory": "retrieve_memory",
        "extract_memory": "extract_memory",
        "memory_task": "memory_task",
    },
}
"""The files of `tools/` by the names of their tools, by set."""


def chosen(which: str) -> Mapping[str, str]:
    """The tools that are named, in our order: "all", sets and tools, separated by commas. Raises `InvalidInput`."""
    words = {word.strip() for word in which.split(",")} - {""}
    known = [*SETS, "all", *(tool for tools in SETS.values() for tool in tools)]
    for word in words or {which}:
        if word not in known:
            raise InvalidInput(f"There are no tools {word!r}. Name one or several of: {', '.join(known)}.")
    return {tool: file for name, tools in SETS.items() for tool, file in tools.items() if words & {"all", name, tool}}


def topics(which: str) -> Collection[str]:
    """What there is to explain: "reflexion" and "memory", each where all the tools that it speaks of are served."""
    tools = chosen(which).keys()
    needed = {"memory": {"retrieve_memory", "extract_memory"}, "reflexion": {"reflexion-thinking"}}
    return [topic for topic, names in needed.items() if names <= tools]
