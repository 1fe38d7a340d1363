"""Executes what a draft or a revision proposes: a function, a LangChain tool, any runnable, or a graph database."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel

from mulligan.core.errors import BadAnswer, InvalidInput, MulliganError, QueryError, ToolError
from mulligan.core.records import Json
from mulligan.graphs.protocol import Graph
from mulligan.langgraph.bridge import blocking, called, portal
from mulligan.langgraph.messages import jsonable
from mulligan.langgraph.schemas import answer_in, fields_of
from mulligan.langgraph.state import newest
from mulligan.langgraph.working import here

ROWS = 30
"""Rows of a graph database that a model is shown."""

MENDABLE = (QueryError, ToolError, InvalidInput, BadAnswer)
"""What of our own errors the model can do something about. The others end the run."""


class Executing:
    """Given the messages since the question, the tool's message: what executing the newest answer gave.

    Each call is one step of the journal. repeatable: whether it may be run again after it was cut off. handle_errors:
    what the tool raises goes back to the model as its answer; else it is raised.
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
    ) -> None:
        self._repeatable, self._handle_errors = repeatable, handle_errors
        self._tool, self._inputs = tool, _inputs(tool, draft, revise)
        self._is_tool, self._is_graph = isinstance(tool, BaseTool), isinstance(tool, Graph)
        self._is_runnable = isinstance(tool, Runnable)
        self.name = _name(tool)

    async def __call__(self, messages: list[Any]) -> ToolMessage:
        proposal, work = newest(messages, AIMessage), here.get()
        given = fields_of(proposal)
        answer = answer_in(given)
        named = {name: _field(given, field, answer) for name, field in self._inputs.items()}
        if work is None or work.entry is None:
            told = await self._told(answer, named)
        else:
            request = {"tool": self.name, "input": jsonable(named) if self._inputs else answer}
            told = await work.journal.step(
                f"tool.{self.name}", request, lambda: self._told(answer, named), repeatable=self._repeatable
            )
        call = proposal.tool_calls[0] if proposal.tool_calls else {"id": "", "name": None}
        return ToolMessage(told["content"], tool_call_id=call["id"] or "", name=call["name"], status=told["status"])

    async def _told(self, answer: str, named: Mapping[str, Any]) -> Json:
        """What the tool gave, or what was wrong, as JSON."""
        try:
            return _told(await self._run(answer, named))
        except GraphBubbleUp:
            raise
        except Exception as error:
            if not self._handle_errors or (isinstance(error, MulliganError) and not isinstance(error, MENDABLE)):
                raise
            kind = "" if isinstance(error, MulliganError) else f"{type(error).__name__}: "
            return {"content": f"{kind}{error}", "status": "error"}

    async def _run(self, answer: str, named: Mapping[str, Any]) -> Any:
        tool = self._tool
        if self._is_graph:
            return await portal.within(_rows(tool, answer))
        if self._is_runnable:
            return await _invoked(tool, dict(named) if self._is_tool else answer)
        function = cast(Callable[..., Any], tool)
        return await (called(_with(function, named)) if self._inputs else called(function, answer))


def _field(given: Mapping[str, Any], field: str, answer: str) -> Any:
    return answer if field == "answer" else given.get(field)


async def _invoked(tool: Any, given: Any) -> Any:
    return tool.invoke(given) if blocking.get() else await tool.ainvoke(given)


async def _rows(graph: Graph, query: str) -> Json:
    """As `KGQueryReflexionAgent` tells a model: {"query", "result"}, and "truncated"."""
    rows = await graph.run(query, rows=ROWS)
    more = {"truncated": f"only the first {ROWS} rows"} if rows.truncated else {}
    return {"query": query, "result": [dict(row) for row in rows.rows], **more}


def _with(function: Callable[..., Any], named: Mapping[str, Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        async def later() -> Any:
            return await function(**named)

        return later
    return lambda: function(**named)


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
        raise InvalidInput(f"tool is a function, a LangChain tool, a runnable or a graph database, not {tool!r}.")
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
