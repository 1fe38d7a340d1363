"""For tests of `create_reflexion_graph`: scripts for its model, one way to run a graph by each of LangGraph's calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage, ToolMessage

from mulligan.core.records import Episode
from mulligan.langgraph import ScriptedChat, create_reflexion_graph
from mulligan.store.sqlite import SqliteStore

QUESTION = "Which genes does EOMES regulate?"
WAYS = ("invoke", "ainvoke", "stream", "astream")

Run: TypeAlias = Callable[..., dict[str, Any]]


def drafted(answer: str = "first") -> dict[str, Any]:
    return {"answer": answer, "reflection": "may be wrong"}


def revised(score: float | str, answer: str = "next", reflection: str = "not all of them") -> dict[str, Any]:
    return {"reflection": reflection, "score": score, "revised_answer": answer}


def scored(*scores: float) -> list[dict[str, Any]]:
    """A draft "answer 1", and a revision for each score, which proposes "answer 2", "answer 3", …"""
    return [
        drafted("answer 1"),
        *(revised(score, f"answer {n}", f"lesson {n - 1}") for n, score in enumerate(scores, 2)),
    ]


def by_messages(*scores: float) -> Callable[[list[BaseMessage]], Any]:
    """The same as a function of the messages, so that it goes on in another process."""
    return lambda messages: scored(*scores)[sum(isinstance(message, ToolMessage) for message in messages)]


def echo(answer: str) -> str:
    return f"ran {answer}"


def a_graph(model: Any, tool: Any = echo, **given: Any) -> Any:
    """Recording nowhere unless a store is given."""
    options: dict[str, Any] = {"store": False, **given}
    return create_reflexion_graph(model, tool, **options)


def asking(question: str = QUESTION, **given: Any) -> dict[str, Any]:
    from langchain_core.messages import HumanMessage

    return {"messages": [HumanMessage(question, **given)]}


def on_thread(thread: str = "t", **given: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, **given}


def run(way: str, graph: Any, given: Any, config: Any = None) -> dict[str, Any]:
    """The final state of the graph, by this of LangGraph's four calls."""
    if way == "invoke":
        return graph.invoke(given, config)
    if way == "stream":
        return [*graph.stream(given, config, stream_mode="values")][-1]
    if way == "ainvoke":
        return asyncio.run(graph.ainvoke(given, config))

    async def last() -> dict[str, Any]:
        return [values async for values in graph.astream(given, config, stream_mode="values")][-1]

    return asyncio.run(last())


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    """What each message says: its text, or the answer in its tool call."""
    said: list[str] = []
    for message in messages:
        calls = getattr(message, "tool_calls", ())
        said.append(next((str(v) for c in calls for k, v in c["args"].items() if "answer" in k), message.text))
    return said


@contextmanager
def a_store(folder: Path) -> Generator[SqliteStore]:
    """For graphs that are run by code that is not async."""
    store = SqliteStore(folder / "mulligan.db")
    try:
        yield store
    finally:
        asyncio.run(store.close())


@asynccontextmanager
async def an_open_store(folder: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(folder / "mulligan.db")
    try:
        yield store
    finally:
        await store.close()


def recorded(folder: Path) -> list[Episode]:
    """The episodes of this folder's store, oldest first."""

    async def read() -> list[Episode]:
        async with an_open_store(folder) as store:
            return [*reversed(await store.list())]

    return asyncio.run(read())


def steps_of(folder: Path, episode: str) -> list[Any]:
    """The journal of an episode."""

    async def read() -> list[Any]:
        async with an_open_store(folder) as store:
            return [*await store.steps(episode)]

    return asyncio.run(read())


def chat(*scores: float) -> ScriptedChat:
    return ScriptedChat(scored(*scores))
