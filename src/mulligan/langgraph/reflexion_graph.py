"""`create_reflexion_graph`: a compiled graph that drafts, executes and revises, for any chat model and any tool.

LangGraph counts super-steps, up to two for each step of the graph. A recursion limit that is too low may come from the
caller's config, from a surrounding graph or from the environment; it is raised for this graph alone.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, PlainValidator
from typing_extensions import TypedDict

from mulligan.graphs.protocol import Graph
from mulligan.langgraph.asking import Draft, Revision, SchemaResponder, answer_in, check_schemas, fields_of, reading_of
from mulligan.langgraph.calling import called, invoke
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.defaults import bank_of, prompts_of, store_of
from mulligan.langgraph.graph_texts import queries_run, record_in, tool_message
from mulligan.langgraph.journalled import journalled, jsonable, models_in
from mulligan.langgraph.judging import RowsJudge
from mulligan.langgraph.nodes import STEPS, Nodes, Parts, ask_person, episode_head
from mulligan.langgraph.pairs import with_pairs
from mulligan.langgraph.querying import ROWS, Querying, Until, check_until, rows_settle
from mulligan.langgraph.working import (
    DRAFT,
    EXECUTE_TOOL,
    REVISE,
    Reading,
    Record,
    Recorder,
    ReflexionInput,
    ReflexionOutput,
    ReflexionState,
    answered,
    check_limits,
    here,
    newest,
)
from mulligan.plugins import BadAnswer, Bank, InvalidInput, Json, MulliganError, QueryError, ToolError
from mulligan.running import Store, blocking, both_ways, finish, portal


def _message(given: Any) -> BaseMessage:
    return convert_to_messages([given])[0]


class ToolInput(BaseModel):
    """The input of a graph as a tool: messages in any of LangGraph's forms."""

    messages: list[Annotated[Any, PlainValidator(_message, json_schema_input_type=AnyMessage)]]


class ReflexionStateGraph(StateGraph[Any, Any, Any, Any]):
    """A `StateGraph` of Reflexion. steps: the number of drafts and revisions at most."""

    def __init__(self, steps: int) -> None:
        super().__init__(ReflexionState, input_schema=ReflexionInput, output_schema=ReflexionOutput)
        self.steps = steps

    def compile(self, *args: Any, **named: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Like `StateGraph.compile`, with "reflexion" as the default name."""
        compiled = cast(Any, super()).compile(*args, **{"name": "reflexion", **named})
        compiled.__class__ = ReflexionGraph  # LangGraph always compiles to its own class
        return compiled


class ReflexionGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The result of `ReflexionStateGraph.compile`, with `invoke`, `stream` and the rest of any compiled graph."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> Iterator[Any]:
        return cast(Any, super()).stream(input, self._with_limit(config), **named)

    def astream(self, input: Any, config: RunnableConfig | None = None, **named: Any) -> AsyncIterator[Any]:
        return cast(Any, super()).astream(input, self._with_limit(config), **named)

    def as_tool(self, args_schema: type[BaseModel] | None = None, **named: Any) -> BaseTool:
        """Like any graph's. The input schema that LangChain 1.7 derives would refuse every message."""
        return cast(Any, super()).as_tool(args_schema or ToolInput, **named)

    def _with_limit(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Return the config with a recursion limit for all steps. The limit is never lowered."""
        needed = 2 * cast(ReflexionStateGraph, self.builder).steps + 5
        given = (config, self.config, var_child_runnable_config.get())
        limits = [found["recursion_limit"] for found in given if found and "recursion_limit" in found]
        limit = limits[0] if limits else int(os.environ.get("LANGGRAPH_DEFAULT_RECURSION_LIMIT", "10007"))
        return config if limit >= needed else {**(config or {}), "recursion_limit": needed}


class Node(Runnable[Any, Any]):
    """A node written as a coroutine that also runs in synchronous code: see `mulligan.recording.bridge`."""

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


class _RecordState(TypedDict):
    record: Record


def _next(state: _RecordState) -> str:
    return state["record"]["next"]


class _NextNode(RunnableLambda[Any, Any]):
    """Reads the next node from the state. It needs neither a thread nor callbacks."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return _next(input)


next_node = _NextNode(_next)


def wired(nodes: Nodes) -> ReflexionStateGraph:
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


def assembled(
    parts: Parts,
    recorder: Recorder,
    steps: int,
    models: Mapping[str, Any],
    texts: Mapping[str, str],
    settings: Mapping[str, Json],
    agent_id: str,
    bank: Bank | None,
    learn: bool,
    name: str,
    files: Mapping[str, str] | None = None,
) -> ReflexionStateGraph:
    """Return the graph of these parts, not compiled: what every agent and graph of ours is made by.

    Args:
        models: Journalled models by role.
        texts: The texts of the prompts by name.
        settings: What the record says of the settings.
        files: What the record keeps besides the prompts, by name.
    """
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    kept = {**{f"prompts/{name}.md": text for name, text in texts.items()}, **(files or {})}
    head = episode_head(models, hashes, settings)
    return wired(Nodes(parts, recorder, steps, agent_id, head, kept, bank, learn, name))


MENDABLE = (QueryError, ToolError, InvalidInput, BadAnswer)
"""What of our own errors the model can do something about. The others end the run."""


class Executing:
    """Given the messages since the question, the tool's message: what executing the newest answer gave.

    Each call is one step of the journal. repeatable: whether it may be run again after it was cut off. handle_errors:
    what the tool raises goes back to the model as its answer; else it is raised. approved: a person approves what is
    executed, so that a graph database runs nothing besides it.
    """

    both_ways = True

    def __init__(
        self,
        tool: Any,
        draft: type[BaseModel],
        revise: type[BaseModel],
        *,
        repeatable: bool = True,
        handle_errors: bool = True,
        judged: bool = False,
        approved: bool = False,
    ) -> None:
        self.querying = None
        if isinstance(tool, Graph):
            self.querying = Querying(tool, lambda query: portal.within(tool.run(query, rows=ROWS)), judged=judged)
        self._approved = approved
        self._repeatable, self._handle_errors = repeatable, handle_errors
        self._tool, self._inputs = tool, _inputs(tool, draft, revise)
        self._is_tool = isinstance(tool, BaseTool)
        self._is_runnable = isinstance(tool, Runnable)
        self.name = _name(tool)

    async def __call__(self, messages: list[Any]) -> ToolMessage:
        proposal, work = newest(messages, AIMessage), here.get()
        given = fields_of(proposal)
        answer = answer_in(given)
        named = {name: answer if field == "answer" else given.get(field) for name, field in self._inputs.items()}
        if self.querying is not None:
            told = await self._told(self._queried(self.querying, answer, messages))
        elif work is None or work.entry is None:
            told = await self._told(self._run(answer, named))
        else:
            request = {"tool": self.name, "input": jsonable(named) if self._inputs else answer}
            told = await work.journal.step(
                f"tool.{self.name}",
                request,
                lambda: self._told(self._run(answer, named)),
                repeatable=self._repeatable,
            )
        return answered(proposal, told["content"], told["status"])

    async def _told(self, running: Awaitable[Any]) -> Json:
        """What the tool gave, or what was wrong, as JSON."""
        try:
            return _told(await running)
        except GraphBubbleUp:
            raise
        except Exception as error:
            if not self._handle_errors or (isinstance(error, MulliganError) and not isinstance(error, MENDABLE)):
                raise
            kind = "" if isinstance(error, MulliganError) else f"{type(error).__name__}: "
            return {"content": f"{kind}{error}", "status": "error"}

    async def _queried(self, querying: Querying, answer: str, messages: Sequence[Any]) -> ToolMessage:
        question = messages[0].text
        ask, words = partial(querying.asked, question=question), "" if self._approved else question
        found = await querying.tried([answer], ask, queries_run(messages), words)
        if "error" in found and not self._handle_errors:
            raise QueryError(str(found["error"]), "failed")
        return tool_message(found, {})

    async def _run(self, answer: str, named: Mapping[str, Any]) -> Any:
        tool: Any = self._tool
        if self._is_runnable:
            return await invoke(tool, dict(named) if self._is_tool else answer)
        return await (called(partial(tool, **named)) if self._inputs else called(tool, answer))


def query_answered(reading: Reading, message: ToolMessage) -> str:
    """Return the query whose rows a graph database gave, which may be another than the model's."""
    return str(record_in(message).get("query", reading.answer))


def _told(result: Any) -> Json:
    """What a tool gave, as a message to the model: text and blocks as they are, everything else as JSON."""
    if isinstance(result, ToolMessage):
        return {"content": jsonable(result.content), "status": result.status}
    if isinstance(result, BaseModel):
        result = result.model_dump(mode="json")
    if not isinstance(result, str):
        result = json.dumps(result, ensure_ascii=False, default=str)
    return {"content": result, "status": "success"}


def _inputs(tool: Any, draft: type[BaseModel], revise: type[BaseModel]) -> Mapping[str, str]:
    """The tool's parameters, each with the field that it is given; nothing where it takes the answer, whatever it calls
    it. The one parameter that it needs and no field is called like gets the answer."""
    if isinstance(tool, BaseTool):
        schema = cast(dict[str, Any], cast(Any, tool).get_input_jsonschema())
        names, needed = list(schema.get("properties", ())), set(schema.get("required", ()))
    elif isinstance(tool, Graph | Runnable):
        return {}
    elif callable(tool):
        try:
            found = list(inspect.signature(tool).parameters.values())
        except ValueError:  # built in
            return {}
        found = [p for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        names, needed = [p.name for p in found], {p.name for p in found if p.default is p.empty}
    else:
        raise InvalidInput(f"tool must be a function, a LangChain tool, a runnable or a graph database, not {tool!r}.")
    fields = {"answer", *(draft.model_fields.keys() & revise.model_fields.keys())}
    inputs = {name: name for name in names if name in fields}
    lacking = sorted(needed - fields)
    if len(lacking) > 1 or (lacking and "answer" in inputs):
        raise InvalidInput(
            f"The tool {_name(tool)} wants {', '.join(sorted(needed))}; of these, {draft.__name__} and "
            f"{revise.__name__} both have {', '.join(sorted(needed & fields)) or 'none'}. Give them these fields."
        )
    if lacking or not inputs:
        inputs |= dict.fromkeys(lacking or names[:1], "answer")
    return inputs if isinstance(tool, BaseTool) or len(inputs) > 1 else {}


def _name(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)


GOOD_SCORE = 7.0
"""The default score, of 10, from which an answer is good enough."""

Judge: TypeAlias = Callable[[Reading, ToolMessage], "bool | Awaitable[bool | None] | None"]
"""Returns whether the executed answer is good enough, given the revision and the tool's message; None: unknown."""


def create_reflexion_graph(
    model: Any,
    tool: Any,
    *,
    instructions: str = "",
    draft: type[BaseModel] = Draft,
    revise: type[BaseModel] = Revision,
    judge: Judge | None = None,
    until: Until | None = None,
    max_steps: int = STEPS,
    good_score: float = GOOD_SCORE,
    store: Store | bool | None = None,
    agent_id: str = "",
    bank: Bank | str | None = None,
    learn: bool = False,
    checkpointer: Any = None,
    interrupt_before: Sequence[str] | None = None,
    interrupt_after: Sequence[str] | None = None,
    approve: bool = False,
    handle_errors: bool = True,
    repeatable: bool = True,
    prompts: str | os.PathLike[str] | None = None,
    name: str = "reflexion",
) -> ReflexionGraph:
    """Return a compiled graph with the nodes draft, execute_tool and revise.

    Run it with `graph.invoke({"messages": [("user", "…")]})`.

    Args:
        model: A LangChain chat model, retries or fallbacks over some, or a name as in docs/models.md.
        tool: Executes an answer: a function (also async), a LangChain tool or a runnable, which gets the answer or the
            fields of the schemas that its parameters name; or a graph database (`mulligan.graphs.Graph`).
        instructions: What the answer must be, for the draft and the revision.
        draft, revise: What the model is asked for, as pydantic models; see `mulligan.langgraph.asking`.
        judge: Decides whether an answer is good enough; None: a score of good_score or more does.
        until: Over a graph database without a judge: "judged" (None is the same), the rows must answer the question, as
            far as rules and the model can tell; "rows", the first rows with a value end the run.
        max_steps: The number of drafts and revisions at most.
        good_score: The score, 0 to 10, from which an answer is good enough.
        store: Where runs are recorded; None: the store that `mulligan runs` reads; False: nowhere.
        agent_id: The owner of the records.
        bank: Lessons are recalled from it before the draft; a bank, or an agent_id.
        learn: Whether the bank learns from each run that ends.
        checkpointer, interrupt_before, interrupt_after: As for `StateGraph.compile`.
        approve: Whether a person approves, edits or refuses each answer before it is executed. Needs a checkpointer.
        handle_errors: Whether the tool's errors go back to the model. Otherwise they are raised.
        repeatable: Whether the tool may run again after it was interrupted.
        prompts: A folder with prompts that replace the default ones.
        name: The name of the graph and of its runs.

    Raises:
        InvalidInput: A value is out of range, or the parts do not fit together.
    """
    check_limits(max_steps, good_score)
    if max_steps < 1:
        raise InvalidInput(f"max_steps must be at least 1, not {max_steps}. It limits drafts and revisions.")
    if learn and bank is None:
        raise InvalidInput("learn=True needs a bank: give bank=…")
    if until is not None:
        check_until(until)
        if judge is not None or not isinstance(tool, Graph):
            raise InvalidInput("'until' is only for a graph database without a judge of your own: leave it out.")
    judged = isinstance(tool, Graph) and judge is None and until != "rows"
    check_schemas(draft, revise, judge is not None or judged)
    model = chat_model(model) if isinstance(model, str) else model
    if not models_in(journalled(model)):
        raise InvalidInput(f"model must be a LangChain chat model, or a chain of them, not {type(model).__name__}.")
    texts = prompts_of(prompts)
    drafter, reviser = (
        SchemaResponder(
            model, schema, texts.get(f"reflexion_graph.{role}").check(*SLOTS), lambda: {"instructions": instructions}
        )
        for role, schema in (("draft", draft), ("revise", revise))
    )
    executing = Executing(
        tool, draft, revise, repeatable=repeatable, handle_errors=handle_errors, judged=judged, approved=approve
    )
    rows_judge = (
        RowsJudge(journalled(model), texts, executing.querying, good_score) if executing.querying and judged else None
    )
    parts = Parts(
        drafter.arespond,
        executing,
        reviser.arespond,
        reading_of,
        query_answered if executing.querying else lambda reading, message: reading.answer,
        both_ways(partial(called, judge)) if judge else lambda reading, message: reading.passes(good_score),
        settles=rows_settle if until == "rows" else lambda message: "",
        judge=rows_judge,
        approve=ask_person if approve else None,
    )
    settings = {"tool": executing.name, "good_score": None if judge else good_score, "approve": approve}
    settings |= {"until": until or "judged"} if judged or until else {}
    settings |= {"graph": name, "max_steps": max_steps, "instructions": instructions}
    own_bank = with_pairs(bank_of(bank), executing.querying) if executing.querying else bank_of(bank)
    models, record = {"draft": drafter.model, "revise": reviser.model}, Recorder(store_of(store))
    graph = assembled(parts, record, max_steps, models, texts.texts, settings, agent_id, own_bank, learn, name)
    before, after = _names(interrupt_before), _names(interrupt_after)
    compiled = graph.compile(checkpointer=checkpointer, interrupt_before=before, interrupt_after=after, name=name)
    return cast(ReflexionGraph, compiled)


SLOTS = ("tool", "schema", "instructions", "lessons")


def _names(given: Sequence[str] | None) -> Any:
    """Return the nodes to interrupt at, as `StateGraph.compile` takes them: "*" for all."""
    return given if given == "*" else list(given or ())
