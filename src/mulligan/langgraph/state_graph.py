"""A compiled graph whose recursion limit is never reached before its step limit, and nodes for both kinds of code.

LangGraph counts super-steps: up to two for each step of ours. A limit that is too low may come from the caller's
config, from a graph around this one, or from the environment; each of them is raised for this graph alone.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Annotated, Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, PlainValidator
from typing_extensions import TypedDict

from mulligan.langgraph.bridge import blocking, finish
from mulligan.langgraph.nodes import Nodes
from mulligan.langgraph.state import (
    DRAFT,
    EXECUTE_TOOL,
    REVISE,
    Record,
    ReflexionInput,
    ReflexionOutput,
    ReflexionState,
)


def _message(given: Any) -> BaseMessage:
    return convert_to_messages([given])[0]


class ToolInput(BaseModel):
    """What a graph takes as a tool: messages in each of LangGraph's forms."""

    messages: list[Annotated[Any, PlainValidator(_message, json_schema_input_type=AnyMessage)]]


class ReflexionStateGraph(StateGraph[Any, Any, Any, Any]):
    """`steps`: drafts and revisions at most."""

    def __init__(self, steps: int) -> None:
        super().__init__(ReflexionState, input_schema=ReflexionInput, output_schema=ReflexionOutput)
        self.steps = steps

    def compile(self, *args: Any, **named: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """As `StateGraph.compile`; the name is "reflexion" unless another is given."""
        compiled = cast(Any, super()).compile(*args, **{"name": "reflexion", **named})
        compiled.__class__ = ReflexionGraph  # LangGraph makes its own class, whatever graph it compiles
        return compiled


class ReflexionGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """What `ReflexionStateGraph.compile` gives: `invoke`, `stream` and the rest as of any compiled graph."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Iterator[Any]:
        return cast(Any, super()).stream(input, self._roomy(config), **named)

    def astream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> AsyncIterator[Any]:
        return cast(Any, super()).astream(input, self._roomy(config), **named)

    def as_tool(self, args_schema: type[BaseModel] | None = None, **named: Any) -> BaseTool:
        """As of any graph. The input that LangChain makes of a graph's own refuses every message (1.7)."""
        return cast(Any, super()).as_tool(args_schema or ToolInput, **named)

    def _roomy(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """The config, with room for all steps. What runs inside, such as a graph as a tool, has no less than before."""
        needed = 2 * cast(ReflexionStateGraph, self.builder).steps + 5
        given = (config, self.config, var_child_runnable_config.get())
        limits = [found["recursion_limit"] for found in given if found and "recursion_limit" in found]
        limit = limits[0] if limits else int(os.environ.get("LANGGRAPH_DEFAULT_RECURSION_LIMIT", "10007"))
        return config if limit >= needed else {**(config or {}), "recursion_limit": needed}


class Node(Runnable[Any, Any]):
    """A node that is written once, as a coroutine: see `mulligan.langgraph.bridge`."""

    def __init__(self, name: str, work: Callable[[Any, RunnableConfig], Coroutine[Any, Any, Any]]) -> None:
        self.name = name
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return finish(self._work(input, config or {}))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        token = blocking.set(False)
        try:
            return await self._work(input, config or {})
        finally:
            blocking.reset(token)


class _Place(TypedDict):
    record: Record


def _next(state: _Place) -> str:
    return state["record"]["next"]


class _Way(RunnableLambda[Any, Any]):
    """Where to go on, read from the state. No thread, no callbacks: it is a look at one key."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next(input)


way = _Way(_next)


def wired(nodes: Nodes) -> ReflexionStateGraph:
    """The nodes in their order, as a `StateGraph` that is not compiled yet."""
    graph: Any = ReflexionStateGraph(nodes.steps)
    graph.add_node(DRAFT, Node(DRAFT, nodes.draft))
    graph.add_node(EXECUTE_TOOL, Node(EXECUTE_TOOL, nodes.execute_tool))
    graph.add_edge(START, DRAFT)
    graph.add_conditional_edges(DRAFT, way, [EXECUTE_TOOL, END])
    if nodes.steps == 1:
        graph.add_edge(EXECUTE_TOOL, END)
        return graph
    graph.add_node(REVISE, Node(REVISE, nodes.revise))
    graph.add_edge(EXECUTE_TOOL, REVISE)
    graph.add_conditional_edges(REVISE, way, [EXECUTE_TOOL, END])
    return graph
