"""The nodes and edges of a Reflexion graph, and its recursion limit.

LangGraph counts super-steps, up to two for each step of the graph. A recursion limit that is too low may come from the
caller's config, from a surrounding graph or from the environment; it is raised for this graph alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Annotated, Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, PlainValidator
from typing_extensions import TypedDict

from mulligan.langgraph.nodes import Nodes, Parts, episode_head
from mulligan.langgraph.state import (
    DRAFT,
    EXECUTE_TOOL,
    REVISE,
    Record,
    ReflexionInput,
    ReflexionOutput,
    ReflexionState,
)
from mulligan.langgraph.working import Recorder
from mulligan.plugins import Bank, Json
from mulligan.running import portal

_DEFAULT_LIMIT = "10007"
"""LangGraph's own recursion limit where nobody sets one."""


def _as_message(value: Any) -> BaseMessage:
    return convert_to_messages([value])[0]


class ToolInput(BaseModel):
    """The input of a graph as a tool: messages in any of LangGraph's forms."""

    messages: list[Annotated[Any, PlainValidator(_as_message, json_schema_input_type=AnyMessage)]]


class ReflexionStateGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` of Reflexion. steps: the number of drafts and revisions at most."""

    def __init__(self, steps: int) -> None:
        super().__init__(ReflexionState, input_schema=ReflexionInput, output_schema=ReflexionOutput)
        self.steps = steps

    def compile(self, *args: Any, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Like `StateGraph.compile`, with "reflexion" as the default name."""
        compiled = cast(Any, super()).compile(*args, **{"name": "reflexion", **options})
        compiled.__class__ = ReflexionGraph  # LangGraph always compiles to its own class
        return compiled


class ReflexionGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The result of `ReflexionStateGraph.compile`, with `invoke`, `stream` and the rest of any compiled graph."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        return cast(Any, super()).stream(input, self._with_limit(config), **options)

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        return cast(Any, super()).astream(input, self._with_limit(config), **options)

    def as_tool(self, args_schema: type[BaseModel] | None = None, **options: Any) -> BaseTool:
        """Like any graph's. The input schema that LangChain 1.7 derives would refuse every message."""
        return cast(Any, super()).as_tool(args_schema or ToolInput, **options)

    def _with_limit(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Return the config with a recursion limit for all steps. The limit is never lowered."""
        needed = 2 * cast(ReflexionStateGraph, self.builder).steps + 5
        for setting in (config, self.config, var_child_runnable_config.get()):
            if setting and "recursion_limit" in setting:
                limit = setting["recursion_limit"]
                break
        else:
            limit = int(os.environ.get("LANGGRAPH_DEFAULT_RECURSION_LIMIT", _DEFAULT_LIMIT))
        return config if limit >= needed else {**(config or {}), "recursion_limit": needed}


class Node(Runnable[Any, Any]):
    """A node written as a coroutine that also runs in synchronous code: see `mulligan.recording.bridge`."""

    def __init__(self, name: str, work: Callable[[Any, RunnableConfig], Coroutine[Any, Any, Any]]) -> None:
        self.name = name
        self._work = work

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return portal.finish(self._work(input, config or {}))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        token = portal.blocking.set(False)
        try:
            return await self._work(input, config or {})
        finally:
            portal.blocking.reset(token)


class _RecordState(TypedDict):
    record: Record


def _next_node(state: _RecordState) -> str:
    return state["record"]["next"]


class _NextNode(RunnableLambda[Any, Any]):
    """Reads the next node from the state. It needs neither a thread nor callbacks."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next_node(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next_node(input)


next_node = _NextNode(_next_node)


def state_graph(nodes: Nodes) -> ReflexionStateGraph:
    """Return the nodes and edges as a `StateGraph` that is not compiled yet."""
    graph: Any = ReflexionStateGraph(nodes.steps)
    graph.add_node(DRAFT, Node(DRAFT, nodes.draft))
    graph.add_node(EXECUTE_TOOL, Node(EXECUTE_TOOL, nodes.execute_tool))
    graph.add_edge(START, DRAFT)
    graph.add_conditional_edges(DRAFT, next_node, [EXECUTE_TOOL, END])
    if nodes.steps == 1 and nodes.parts.judge is None:
        graph.add_edge(EXECUTE_TOOL, END)
        return graph
    graph.add_node(REVISE, Node(REVISE, nodes.revise))
    graph.add_edge(EXECUTE_TOOL, REVISE)
    graph.add_conditional_edges(REVISE, next_node, [EXECUTE_TOOL, END])
    return graph


def assemble(
    parts: Parts,
    *,
    recorder: Recorder,
    steps: int,
    models: Mapping[str, Any],
    prompts: Mapping[str, str],
    settings: Mapping[str, Json],
    agent_id: str,
    bank: Bank | None,
    learn: bool,
    name: str,
    files: Mapping[str, str] | None = None,
) -> ReflexionStateGraph:
    """Return the graph of these parts, not compiled. Every agent and graph of this package is built here.

    Args:
        models: Journalled models by role.
        prompts: The texts of the prompts by name.
        settings: The settings that the record keeps.
        files: Further files that the record keeps, by name.
    """
    hashes = {prompt: hashlib.sha256(text.encode()).hexdigest() for prompt, text in prompts.items()}
    head = episode_head(models, hashes, settings)
    record_files = {**{f"prompts/{prompt}.md": text for prompt, text in prompts.items()}, **(files or {})}
    return state_graph(Nodes(parts, recorder, steps, agent_id, head, record_files, bank, learn, name))
