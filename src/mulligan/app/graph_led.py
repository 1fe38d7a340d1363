"""Episodes that a LangGraph graph drives: who can go on with them."""

from __future__ import annotations

from typing import NoReturn

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode

ASKED = "ask_graph"
"""What of a record's settings says how a graph database was asked, so that a run can be gone on with."""


def led_by_graph(episode: Episode) -> bool:
    return episode.head.settings.get("led_by") == "langgraph"


def asked_by_name(episode: Episode) -> bool:
    """Whether `mulligan ask-graph` began it, or `ask_graph` with names alone, so that its record says how to go on."""
    return led_by_graph(episode) and ASKED in episode.head.settings


def may_wait(episode: Episode) -> bool:
    """Whether it may wait for a person, or for whoever goes on with its thread, and is not cut off where nobody drives
    it: a graph of a program's own stops where it is told to."""
    return led_by_graph(episode) and "graph" in episode.head.settings


def driver(episode: Episode) -> str:
    """The graph or the agent that drives it, and how far it may go, in a line."""
    told = episode.head.settings
    who = f"the graph {told['graph']}" if "graph" in told else str(told.get("agent", "a graph"))
    parts = [f"driven by {who} (LangGraph)"]
    parts += [f"tool {told['tool']}"] if "tool" in told else []
    parts += [f"at most {told['max_steps']} steps"] if "max_steps" in told else []
    parts += [f"thread {told['thread']}"] if may_wait(episode) and "thread" in told else []
    return ", ".join(parts)


def refuse_resume(episode: Episode) -> NoReturn:
    """Raises `InvalidInput` that says how an episode of a graph is gone on with."""
    run, thread = episode.run, episode.head.settings.get("thread")
    if asked_by_name(episode):
        way = f"mulligan runs resume {run}, or mulligan.langgraph.resume_graph({run!r})"
    elif agent := episode.head.settings.get("agent"):
        way = f"make the same {agent} and call its resume({run!r})"
    elif thread is not None:
        way = f"compile it with the same checkpointer and call invoke(None, config) with the thread_id {thread!r}"
    else:
        way = "it had neither a thread nor a checkpointer, so ask again"
    raise InvalidInput(f"Run {run} is driven by a LangGraph graph, which has to go on with it itself: {way}.")
