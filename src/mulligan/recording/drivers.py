"""Tell who drives an episode, by its record: our own loop, a benchmark run, an MCP client or a LangGraph graph."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Brief, StepRow
from mulligan.core.records import Episode
from mulligan.text.plain import count

ASKED = "ask_graph"
"""The setting of a record that holds how a graph database was asked, which is needed to resume the run."""
SENTENCE = "answer"
"""The journal step that holds the answer to a question as a sentence."""


def led_by_client(episode: Episode | Brief) -> bool:
    """Whether a client drives it, so that nobody else can resume it."""
    return episode.head.settings.get("led_by") == "client"


def led_by_function(episode: Episode | Brief) -> bool:
    """Whether it is a call of a function of the user's program (`mulligan.retry`)."""
    return episode.head.settings.get("led_by") == "function"


def led_by_goal(episode: Episode | Brief) -> bool:
    """Whether it is the work of a coding agent's session towards a goal."""
    return episode.head.settings.get("led_by") == "goal"


def led_by_graph(episode: Episode | Brief) -> bool:
    return episode.head.settings.get("led_by") == "langgraph"


def asked_by_name(episode: Episode) -> bool:
    """Whether `mulligan ask-graph` started it, or `ask_graph` with names alone. Its record then says how to resume."""
    return led_by_graph(episode) and ASKED in episode.head.settings


def sentence_in(steps: Sequence[StepRow]) -> str:
    """The sentence that answers a question to a graph, from the steps of its episode; "" if there is none."""
    answers = [row.result for row in steps if row.done and row.key.rpartition("/")[2].partition("#")[0] == SENTENCE]
    return str(answers[-1]) if answers else ""


def may_wait(episode: Episode | Brief) -> bool:
    """Whether an episode that nobody drives may be waiting, for a person or its next run, and was not cut off.

    This is so for a program's own graph, which stops where the program wants it to.
    """
    return led_by_graph(episode) and "graph" in episode.head.settings


def driver(episode: Episode) -> str:
    """The graph or agent that drives an episode, with its limits, in one line."""
    settings = episode.head.settings
    who = f"the graph {settings['graph']}" if "graph" in settings else str(settings.get("agent", "a graph"))
    parts = [f"driven by {who} (LangGraph)"]
    parts += [f"tool {settings['tool']}"] if "tool" in settings else []
    parts += [f"at most {count(settings['max_steps'], 'step')}"] if "max_steps" in settings else []
    parts += [f"thread {settings['thread']}"] if may_wait(episode) and "thread" in settings else []
    return ", ".join(parts)


def check_resumable(episode: Episode) -> None:
    """Raises `InvalidInput` if Mulligan's own loop does not drive the episode. The error explains how to resume it."""
    run, settings = episode.run, episode.head.settings
    if led_by_client(episode):
        raise InvalidInput(
            f"Run {run} is controlled by an MCP client: only that client can resume it, by calling"
            f" reflexion-thinking with its episodeId. To see how far it got: mulligan runs show {run}"
        )
    if led_by_goal(episode):
        raise InvalidInput(
            f"Run {run} is a session of {settings.get('coding_agent')} with a goal, and continues in that session."
            f" For new tries: mulligan goal resume, in {settings.get('folder')}"
        )
    if led_by_function(episode):
        raise InvalidInput(
            f"Run {run} is a call to {settings.get('function')}, which your program retries: make the call again "
            f"to continue where it stopped. To see how far it got: mulligan runs show {run}"
        )
    if bench := settings.get("bench"):
        raise InvalidInput(
            f"Episode {episode.id} belongs to a benchmark run, and only that run can resume it: mulligan bench run "
            f"--resume {bench}"
        )
    if not led_by_graph(episode):
        return
    if asked_by_name(episode):
        way = f"mulligan runs resume {run}, or mulligan.langgraph.resume_graph({run!r})"
    elif agent := settings.get("agent"):
        way = f"create the same {agent} and call its resume({run!r})"
    elif (thread := settings.get("thread")) is not None:
        way = f"compile it with the same checkpointer and call invoke(None, config) with the thread_id {thread!r}"
    else:
        way = "it had neither a thread nor a checkpointer, so ask again"
    raise InvalidInput(f"Run {run} is controlled by a LangGraph graph, so only that graph can resume it: {way}.")
