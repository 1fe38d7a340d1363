"""Executes the answers of a Reflexion graph with a function, a tool, a runnable or a graph database."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel

from mulligan.graphs.protocol import Graph
from mulligan.langgraph.asking import answer_in, fields_of, invoke
from mulligan.langgraph.graph_texts import queries_run, record_in, tool_message
from mulligan.langgraph.journalled import jsonable
from mulligan.langgraph.querying import ROWS, Querying
from mulligan.langgraph.state import Reading, answered, newest
from mulligan.langgraph.working import here
from mulligan.plugins import BadAnswer, InvalidInput, Json, MulliganError, QueryError, ToolError
from mulligan.running import portal

CORRECTABLE = (QueryError, ToolError, InvalidInput, BadAnswer)
"""Mulligan's errors that the model can correct. The others end the run."""


class Executing:
    """Takes the messages since the question, executes the newest answer, and returns the tool's message.

    Each call is one step of the journal.

    Args:
        repeatable: Whether the tool may run again after it was interrupted.
        handle_errors: Whether the tool's errors go back to the model as its answer. Otherwise they are raised.
        judged: Whether the rows of a graph database are compared with the question.
        approved: Whether a person approves what is executed, so that a graph database runs nothing besides it.
    """

    both_ways = True  # `finish` can run it: see `mulligan.recording.bridge`

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
        self._tool, self._inputs = tool, _inputs_of(tool, draft, revise)
        self._is_tool = isinstance(tool, BaseTool)
        self._is_runnable = isinstance(tool, Runnable)
        self.name = _name_of(tool)

    async def __call__(self, messages: list[Any]) -> ToolMessage:
        proposal, work = newest(messages, AIMessage), here.get()
        fields = fields_of(proposal)
        answer = answer_in(fields)
        arguments = {name: answer if field == "answer" else fields.get(field) for name, field in self._inputs.items()}
        if self.querying is not None:
            reply = await self._reply(self._queried(self.querying, answer, messages))
        elif work is None or work.entry is None:
            reply = await self._reply(self._run(answer, arguments))
        else:
            reply = await work.journal.step(
                f"tool.{self.name}",
                {"tool": self.name, "input": jsonable(arguments) if self._inputs else answer},
                lambda: self._reply(self._run(answer, arguments)),
                repeatable=self._repeatable,
            )
        return answered(proposal, reply["content"], reply["status"])

    async def _reply(self, running: Awaitable[Any]) -> Json:
        """Wait for the tool. Return its result or its error as the content and status of a message."""
        try:
            return _reply_of(await running)
        except GraphBubbleUp:
            raise
        except Exception as error:
            is_ours = isinstance(error, MulliganError)
            if not self._handle_errors or (is_ours and not isinstance(error, CORRECTABLE)):
                raise
            return {"content": str(error) if is_ours else f"{type(error).__name__}: {error}", "status": "error"}

    async def _queried(self, querying: Querying, answer: str, messages: Sequence[Any]) -> ToolMessage:
        question = messages[0].text
        ask = partial(querying.asked, question=question)
        best = await querying.tried([answer], ask, queries_run(messages), "" if self._approved else question)
        if "error" in best and not self._handle_errors:
            raise QueryError(str(best["error"]), "failed")
        return tool_message(best, {})

    async def _run(self, answer: str, arguments: Mapping[str, Any]) -> Any:
        tool: Any = self._tool
        if self._is_runnable:
            return await invoke(tool, dict(arguments) if self._is_tool else answer)
        return await (portal.call(partial(tool, **arguments)) if self._inputs else portal.call(tool, answer))


def query_answered(reading: Reading, message: ToolMessage) -> str:
    """Return the query whose rows a graph database gave, which may be another than the model's."""
    return str(record_in(message).get("query", reading.answer))


def _reply_of(result: Any) -> Json:
    """Return a tool's result as the content and status of a message: text and blocks as they are, the rest as JSON."""
    if isinstance(result, ToolMessage):
        return {"content": jsonable(result.content), "status": result.status}
    if isinstance(result, BaseModel):
        result = result.model_dump(mode="json")
    if not isinstance(result, str):
        result = json.dumps(result, ensure_ascii=False, default=str)
    return {"content": result, "status": "success"}


def _inputs_of(tool: Any, draft: type[BaseModel], revise: type[BaseModel]) -> Mapping[str, str]:
    """Return the field of the model's answer that each parameter of the tool gets: the one of its name.

    If exactly one required parameter has no field of its name, it gets the answer. Empty: the tool takes the answer as
    its only argument, without a name.
    """
    names, required, takes_a_value = _parameters_of(tool)
    fields = {"answer", *(draft.model_fields.keys() & revise.model_fields.keys())}
    inputs = {name: name for name in names if name in fields}
    unmatched = sorted(required - fields)
    if len(unmatched) > 1 or (unmatched and "answer" in inputs):
        raise InvalidInput(
            f"The tool {_name_of(tool)} needs {', '.join(sorted(required))}; of these, {draft.__name__} and "
            f"{revise.__name__} both have {', '.join(sorted(required & fields)) or 'none'}. Give both of them all "
            "these fields."
        )
    if unmatched or not inputs:
        inputs |= dict.fromkeys(unmatched or names[:1], "answer")
    return {} if takes_a_value and list(inputs.values()) == ["answer"] else inputs


def _parameters_of(tool: Any) -> tuple[Sequence[str], set[str], bool]:
    """Return the parameters that a tool takes by name, the required ones, and whether it takes a value without a name.

    A graph database, a runnable and a built-in function have no parameters: they take the answer as it is.
    """
    if isinstance(tool, BaseTool):
        schema = cast(dict[str, Any], cast(Any, tool).get_input_jsonschema())
        return list(schema.get("properties", ())), set(schema.get("required", ())), False
    if isinstance(tool, Graph | Runnable):
        return (), set(), True
    if not callable(tool):
        raise InvalidInput(f"tool must be a function, a LangChain tool, a runnable or a graph database, not {tool!r}.")
    try:
        signature = inspect.signature(tool)
    except ValueError:  # a built-in function without a signature
        return (), set(), True
    parameters = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = {p.name for p in parameters if p.default is p.empty}
    return [p.name for p in parameters], required, _takes_a_value(signature)


def _takes_a_value(signature: inspect.Signature) -> bool:
    """Whether a function can be called with one value without a name. One with keyword-only parameters may not."""
    try:
        signature.bind("")
    except TypeError:
        return False
    return True


def _name_of(tool: Any) -> str:
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", None) or type(tool).__name__)
