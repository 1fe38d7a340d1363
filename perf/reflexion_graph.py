"""What the reflexion graph costs beside a bare LangGraph graph of the same shape, with the same fake chat model.

One run, the variants in turns: bare, ours with recording off, ours with recording on (SQLite), each by invoke and by
ainvoke. A run drafts once and revises `--revisions` times, so it has 2 x revisions + 1 nodes. Aim: recording off within
1.2 x bare. Other work on the machine only makes a round slower: read the best of the rounds.

    python perf/reflexion_graph.py [--rounds 15] [--runs 20] [--revisions 3]

The file is not called langgraph.py, which every script of this folder would import in the place of the library.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from mulligan.langgraph.asking import Draft, Revision
from mulligan.langgraph.reflexion_graph import create_reflexion_graph
from mulligan.langgraph.scripted import ScriptedChat
from mulligan.store.sqlite import SqliteStore

QUESTION = {"messages": [("user", "Which genes does EOMES regulate? " * 10)]}
SYSTEM = SystemMessage("Answer the question; mend the answer by what came of it. " * 20)


def chat(revisions: int) -> ScriptedChat:
    """The score of a revision is good enough when it is the last one."""

    def answer(messages: list[BaseMessage]) -> Any:
        tried = sum(isinstance(message, ToolMessage) for message in messages)
        if not tried:
            return {"answer": "first", "reflection": "may be wrong"}
        score = 9 if tried == revisions else 3
        return {"reflection": "not all of them", "score": score, "revised_answer": f"answer {tried}"}

    return ScriptedChat(answer)


def tool(answer: str) -> str:
    return f'{{"query": "{answer}", "result": [{{"gene": "TBX21"}}, {{"gene": "IFNG"}}]}}'


async def atool(answer: str) -> str:
    return tool(answer)


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def bare(revisions: int, asynchronous: bool) -> Any:
    """As one would write it by hand: three nodes, a conditional edge, no rules but the score's."""
    model = chat(revisions)
    drafting = model.bind_tools([Draft], tool_choice="Draft")
    revising = model.bind_tools([Revision], tool_choice="Revision")

    def draft(state: State) -> Any:
        return {"messages": [drafting.invoke([SYSTEM, *state["messages"]])]}

    def execute_tool(state: State) -> Any:
        newest = state["messages"][-1]
        assert isinstance(newest, AIMessage)
        call = newest.tool_calls[0]
        answer = tool(call["args"].get("revised_answer") or call["args"]["answer"])
        return {"messages": [ToolMessage(answer, tool_call_id=call["id"])]}

    def revise(state: State) -> Any:
        return {"messages": [revising.invoke([SYSTEM, *state["messages"]])]}

    async def adraft(state: State) -> Any:
        return {"messages": [await drafting.ainvoke([SYSTEM, *state["messages"]])]}

    async def aexecute_tool(state: State) -> Any:
        return execute_tool(state)

    async def arevise(state: State) -> Any:
        return {"messages": [await revising.ainvoke([SYSTEM, *state["messages"]])]}

    def goes_on(state: State) -> str:
        newest = state["messages"][-1]
        assert isinstance(newest, AIMessage)
        return END if newest.tool_calls[0]["args"]["score"] >= 7 else "execute_tool"

    async def agoes_on(state: State) -> str:
        return goes_on(state)

    graph: Any = StateGraph(State)
    for name, now, later in (("draft", draft, adraft), ("execute_tool", execute_tool, aexecute_tool)):
        graph.add_node(name, later if asynchronous else now)
    graph.add_node("revise", arevise if asynchronous else revise)
    graph.add_edge(START, "draft")
    graph.add_edge("draft", "execute_tool")
    graph.add_edge("execute_tool", "revise")
    graph.add_conditional_edges("revise", agoes_on if asynchronous else goes_on, ["execute_tool", END])
    return graph.compile()


def ours(revisions: int, asynchronous: bool, store: Any) -> Any:
    return create_reflexion_graph(chat(revisions), atool if asynchronous else tool, store=store)


def seconds(runs: int, work: Callable[[], Any]) -> tuple[float, float]:
    """Wall and CPU seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(runs):
        work()
    return (time.perf_counter() - wall) / runs, (time.process_time() - cpu) / runs


async def aseconds(runs: int, work: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(runs):
        await work()
    return (time.perf_counter() - wall) / runs, (time.process_time() - cpu) / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--revisions", type=int, default=3)
    asked = parser.parse_args()
    nodes = 2 * asked.revisions + 1
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "perf.db")
        kinds = {"bare": None, "recording off": False, "recording on": store}
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for way in ("invoke", "ainvoke"):
            later = way == "ainvoke"
            graphs = {
                kind: bare(asked.revisions, later) if kind == "bare" else ours(asked.revisions, later, where)
                for kind, where in kinds.items()
            }
            for kind in [*graphs, *(list(graphs) * asked.rounds)]:  # the first round is warm-up
                graph = graphs[kind]
                if later:
                    took = asyncio.run(aseconds(asked.runs, lambda graph=graph: graph.ainvoke(QUESTION)))
                else:
                    took = seconds(asked.runs, lambda graph=graph: graph.invoke(QUESTION))
                found.setdefault((way, kind), []).append(took)
        asyncio.run(store.close())
    print(f"{nodes} nodes a run, {asked.rounds} rounds of {asked.runs} runs; load {os.getloadavg()[0]:.1f}")
    for (way, kind), rounds in found.items():
        walls, cpus = zip(*rounds[1:], strict=True)
        base_wall, base_cpu = (min(part) for part in zip(*found[way, "bare"][1:], strict=True))
        print(
            f"{way:8} {kind:14} wall: best {min(walls) * 1e3:6.2f}, median {statistics.median(walls) * 1e3:6.2f} ms; "
            f"CPU: best {min(cpus) * 1e3:6.2f} ms, a node {min(cpus) * 1e6 / nodes:5.0f} µs; "
            f"beside bare: {min(walls) / base_wall:.2f} x wall, {min(cpus) / base_cpu:.2f} x CPU"
        )


if __name__ == "__main__":
    main()
