"""Asks a model until its answer is valid, each time with what was wrong; and the schemas of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.runnables import RunnableBinding
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic_core import from_json

from mulligan.langgraph.journalled import as_messages, journalled
from mulligan.langgraph.state import Reading, text_of
from mulligan.langgraph.working import here
from mulligan.pages import answer_of, count, labelled
from mulligan.plugins import BadAnswer, InvalidInput, Json, Prompt
from mulligan.running import parse, portal, read_object

T = TypeVar("T")

TIMES = 3
"""The number of times that a model is asked for a valid answer."""
SHOWN_ARGUMENTS = 300
"""The number of characters of invalid arguments that a model is shown again."""
NO_CALL = "There was no tool call in it."
_INVALID = (ValueError, TypeError, LookupError, AssertionError, BadAnswer)
"""The errors that a check may raise for an invalid answer."""
ANSWERS = ("revised_answer", "revised_query", "answer")
"""The fields that may hold the answer to execute; the first non-empty one counts."""


def score_of(value: Any) -> float | None:
    """Read a score such as "8", 8 or "8/10". Returns None unless it is a number from 0 to 10."""
    try:
        score = float(str(value).partition("/")[0])
    except ValueError:
        return None
    return score if 0 <= score <= 10 else None


def valid_score(value: Any) -> float:
    """Read a score as `score_of` does. Raises `ValueError`."""
    if (score := score_of(value)) is None:
        raise ValueError("a score is a number from 0 to 10")
    return score


class Draft(BaseModel):
    """A first answer, to be executed."""

    answer: str = Field(description="What is to be executed, exactly as it is to be executed.")
    reflection: str = Field(default="", description="What could be wrong with it.")


class Revision(BaseModel):
    """The newest result, looked at; and the next answer."""

    reflection: str = Field(description="What the result shows, and what is wrong with the answer, if anything.")
    score: Annotated[float, BeforeValidator(valid_score)] = Field(
        description="How well the result answers the question, from 0 (not at all) to 10 (fully)."
    )
    revised_answer: str = Field(description="What is to be executed next; the same answer where nothing is wrong.")


def check_schemas(draft: type[BaseModel], revise: type[BaseModel], judged: bool) -> None:
    """Raise `InvalidInput` for schemas that a graph cannot use. judged: whether a `judge` replaces the score."""
    for schema, role in ((draft, "draft"), (revise, "revise")):
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise InvalidInput(f"{role} must be a pydantic model class, not {schema!r}.")
        if not any(name in schema.model_fields for name in ANSWERS):
            raise InvalidInput(f"{schema.__name__} has no field to execute: add one named {' or '.join(ANSWERS)}.")
    if not judged and "score" not in revise.model_fields:
        raise InvalidInput(f"{revise.__name__} has no field 'score', so it cannot be rated: pass judge=….")
    if draft.__name__ == revise.__name__:
        raise InvalidInput(f"Both schemas are named {draft.__name__}. Give them different names.")


def fields_of(message: AIMessage, schema: Mapping[str, Json] | None = None) -> Mapping[str, Any]:
    """Return the arguments of the first tool call; without a call, the JSON object in the text.

    Args:
        schema: The JSON schema of the text, where there is one.

    Raises:
        ValueError: There is no valid JSON object.
    """
    message = repaired(message)
    if message.tool_calls:
        return message.tool_calls[0]["args"]
    for call in message.invalid_tool_calls:
        raise ValueError(f"The arguments are not valid JSON: {call.get('error') or 'they are cut off'}")
    try:
        return parse(message.text, cast(dict[str, Json], schema or {"type": "object"}))
    except ValueError as error:
        raise ValueError(f"The answer must be one JSON object: {error}.") from None


def repaired(message: AIMessage) -> AIMessage:
    """Return the message with those invalid calls made valid whose arguments are nearly JSON: design/119.

    `response_metadata["repairs"]` lists what was wrong with them.
    """
    calls, invalid, repairs = list[ToolCall](), list[InvalidToolCall](), list[str]()
    for call in message.invalid_tool_calls:
        try:
            read = read_object(call["args"] or "")
        except ValueError:
            invalid.append(call)
            continue
        calls.append(ToolCall(name=call["name"] or "", args=read.value, id=call["id"], type="tool_call"))
        repairs += read.repairs
    if not calls:
        return message
    metadata = {**message.response_metadata, "repairs": list(dict.fromkeys(repairs))}
    update = {"tool_calls": [*message.tool_calls, *calls], "invalid_tool_calls": invalid}
    return message.model_copy(update={**update, "response_metadata": metadata})


def reading_of(message: AIMessage) -> Reading:
    """Read a draft or a revision. Text without fields is the answer itself."""
    try:
        fields = fields_of(message)
    except ValueError:
        return Reading(answer_of(message.text))
    return reading_in(fields, answer_in(fields))


def reading_in(fields: Mapping[str, Any], answer: str) -> Reading:
    reflection = answer_of(str(fields.get("reflection") or ""))
    return Reading(answer, reflection, score_of(fields.get("score")))


def answer_in(fields: Mapping[str, Any]) -> str:
    """Return the answer to execute, without the model's thoughts; "" if no field holds one."""
    return next((answer_of(str(fields[name])) for name in ANSWERS if fields.get(name)), "")


def queries_in(fields: Mapping[str, Any]) -> list[str]:
    """Return the queries of the first field that has any, as the model wrote them, the best one first."""
    for group in ([fields.get("revised_query")], _search_queries(fields), [fields.get("answer")]):
        if queries := [query for query in map(_text, group) if query]:
            return queries
    return []


def every_query_in(fields: Mapping[str, Any]) -> list[str]:
    """Return the distinct queries of all fields, the best one first."""
    written = [fields.get("revised_query"), fields.get("answer"), *_search_queries(fields)]
    queries = (query.rstrip("; \n") for query in map(_text, written))
    return list(dict.fromkeys(query for query in queries if query))


def _search_queries(fields: Mapping[str, Any]) -> list[Any]:
    queries: Any = fields.get("search_queries") or []
    if isinstance(queries, str):
        return [queries]
    return list(cast(Sequence[Any], queries)) if isinstance(queries, list | tuple) else []


def _text(value: Any) -> str:
    return value.encode(errors="replace").decode().strip() if isinstance(value, str) else ""


def merge_calls(message: AIMessage) -> AIMessage:
    """Return the message with only its first tool call, since a revision judges one trial.

    The queries of further calls of the same tool are added to those of the first.
    """
    if len(message.tool_calls) < 2:
        return message
    first, *others = message.tool_calls
    more = [query for call in others if call["name"] == first["name"] for query in queries_in(call["args"])]
    arguments = {**first["args"], "search_queries": list(dict.fromkeys([*queries_in(first["args"]), *more]))}
    content: Any = message.content
    if isinstance(content, list):
        blocks = cast(list[Any], content)
        content = [block for block in blocks if not _is_call(block) or block.get("id") == first["id"]]
    return AIMessage(content, tool_calls=[{**first, "args": arguments}], usage_metadata=message.usage_metadata)


def with_whole_fields(message: AIMessage, schema: type[BaseModel]) -> AIMessage:
    """Return the message with a valid call, if its only call was cut off: a call with the fields that are complete.

    Returns it unchanged if these have no answer to execute, or if a field other than the reflection is missing.
    """
    if message.tool_calls or len(message.invalid_tool_calls) != 1:
        return message
    (call,) = message.invalid_tool_calls
    try:
        arguments: dict[str, Any] = from_json(call["args"] or "", allow_partial=True)
        fields: dict[str, Any] = {"reflection": "", **arguments.get("arguments", arguments)}
        schema.model_validate(fields)
    except (ValueError, TypeError, AttributeError):
        return message
    if not answer_in(fields).strip():
        return message
    whole = ToolCall(name=call["name"] or schema.__name__, args=fields, id=call["id"], type="tool_call")
    return AIMessage(message.content, tool_calls=[whole], usage_metadata=message.usage_metadata)


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and cast(dict[str, Any], block).get("type") in ("tool_use", "tool_call")


async def until_valid(
    ask: Callable[[list[BaseMessage]], Awaitable[Any]],
    messages: Sequence[BaseMessage],
    check: Callable[[Any], T],
    times: int = TIMES,
) -> T:
    """Ask until `check` accepts the answer, and return what it makes of the answer.

    Args:
        ask: Asks the model with these messages.
        messages: The conversation so far. An invalid answer and what is wrong with it are added to a copy.
        check: Raises an error, such as a `ValueError`, for an invalid answer.
        times: The number of times that the model is asked at most.

    Raises:
        BadAnswer: No answer was valid. A subclass, if `check` raised one.
    """
    messages = list(messages)
    problem, kind = "", BadAnswer
    for _ in range(times):
        message = await ask(messages)
        try:
            return check(message)
        except _INVALID as error:
            problem = str(error) or type(error).__name__
            kind = type(error) if isinstance(error, BadAnswer) else BadAnswer
        messages += correction(message, problem)
    raise kind(f"The model gave no valid answer in {count(times, 'attempt')}. Last problem: {problem}")


def correction(message: Any, problem: str) -> list[BaseMessage]:
    """Return the message and what is wrong with it as turns of the conversation. Each tool call gets an answer.

    Arguments that are not JSON are cut to their beginning, since a model that sees its own repetition repeats it again.
    """
    if invalid := getattr(message, "invalid_tool_calls", ()):
        short = [{**call, "args": (call.get("args") or "")[:SHOWN_ARGUMENTS]} for call in invalid]
        message = message.model_copy(update={"invalid_tool_calls": short})
    text = f"That cannot be used. {problem}"
    calls = [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]
    answers = [ToolMessage(text, tool_call_id=call.get("id") or "", status="error") for call in calls]
    return [message, *(answers or [HumanMessage(text)])]


class ResponderWithRetries:
    """Asks a runnable until its answer is valid, at most three times.

    Args:
        runnable: A runnable that takes {"messages": …}.
        validator: A runnable or a function that takes the answer. It raises an exception, such as pydantic's, if the
            answer is invalid.
    """

    TIMES = TIMES

    def __init__(self, runnable: Any, validator: Any) -> None:
        self.runnable, self.validator = runnable, validator

    def respond(self, state: Sequence[BaseMessage]) -> Any:
        """Return a valid answer.

        Raises:
            BadAnswer: there is none.
        """
        return portal.finish(self.arespond(state))

    @portal.both_ways
    async def arespond(self, state: Sequence[BaseMessage]) -> Any:
        """Like `respond`, for async code."""
        return await until_valid(self._ask, state, self._valid, self.TIMES)

    async def _ask(self, messages: list[BaseMessage]) -> Any:
        message = await invoke(self.runnable, {"messages": messages})
        return repaired(message) if isinstance(message, AIMessage) else message

    def _valid(self, message: Any) -> Any:
        """Return the message. Raises an error if it is not valid."""
        for call in getattr(message, "invalid_tool_calls", ()):
            why = call.get("error") or repr(call.get("args"))[:200]
            raise ValueError(f"The arguments of {call.get('name') or 'the tool'} are not valid JSON: {why}")
        if not getattr(self.validator, "invoke", self.validator)(message) and not getattr(message, "tool_calls", ()):
            raise ValueError(f"{NO_CALL} Answer only with a call of the tool.")
        return message


def with_tool(model: Any, tool: Any, name: str, *, needed: bool = False, **options: Any) -> Any:
    """Return the model bound to a call of this tool; None for a model without tools.

    Raises `NotImplementedError` for a model without tools if `needed`.
    """
    try:
        return model.bind_tools([tool], tool_choice=name, **options)
    except NotImplementedError:
        if needed:
            raise
        return None


class SchemaResponder(ResponderWithRetries):
    """Asks a chat model for the fields of a schema: by a tool call, or in JSON if the model does not support tools.

    Args:
        prompt: Rendered before the messages, with the lessons that the bank recalled.
        values: Returns further values of the prompt.
        options: Sampling options to bind to the model, such as max_tokens; without them, the model's own.

    Attributes:
        needs_tools: Whether a model without tools is refused, with the `NotImplementedError` of `bind_tools`.
        may_be_empty: Whether an answer without anything to execute is valid.
    """

    needs_tools = may_be_empty = False

    def __init__(
        self,
        model: Any,
        schema: type[BaseModel],
        prompt: Prompt,
        values: Callable[[], Mapping[str, str]],
        **options: Any,
    ) -> None:
        self._schema, self._prompt, self._values = schema, prompt, values
        bound = with_tool(model, schema, schema.__name__, needed=self.needs_tools, **options)
        self._tools = bound is not None
        self.model: Any = journalled(bound if self._tools else model.bind(**options) if options else model)
        super().__init__(self.model, self._checked_fields)
        self._inner, self._options = self.model, dict[str, Any]()
        binding: object = self.model
        if isinstance(binding, RunnableBinding) and not cast(Any, binding).config:  # call the bound model itself
            self._inner, self._options = cast(Any, binding).bound, cast(Any, binding).kwargs
        self._rendered: dict[str, list[BaseMessage]] = {}

    async def _ask(self, messages: list[BaseMessage]) -> Any:
        if not self._tools:
            messages = [
                HumanMessage(labelled("Result", text_of(m))) if isinstance(m, ToolMessage) else m for m in messages
            ]
        return repaired(await invoke(self._inner, [*self._system(recalled()), *messages], **self._options))

    def _system(self, lessons: str) -> list[BaseMessage]:
        cache = self._rendered  # replaced as a whole: another thread may ask with other lessons at the same time
        if lessons not in cache:
            tool = self._schema.__name__ if self._tools else ""
            schema = "" if self._tools else json.dumps(self._schema.model_json_schema(), ensure_ascii=False)
            messages = self._prompt.render(**self._values(), tool=tool, schema=schema, lessons=lessons)
            cache = self._rendered = {lessons: as_messages(messages)}
        return cache[lessons]

    def _checked_fields(self, message: AIMessage) -> bool:
        name = self._schema.__name__
        if self._tools and [call["name"] for call in message.tool_calls] != [name]:
            wrong = next((call["name"] for call in message.tool_calls if call["name"] != name), "")
            problem = f"There is no tool {wrong!r}. " if wrong else "" if message.tool_calls else f"{NO_CALL} "
            raise ValueError(f"{problem}Answer with one call of the tool {name}.")
        fields = fields_of(message)
        try:
            self._schema.model_validate(fields)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc'])) or name}: {e['msg']}" for e in error.errors()[:5]]
            raise ValueError("; ".join(problems)) from None
        if not (self.may_be_empty or answer_in(fields).strip() or "score" in self._schema.model_fields):
            raise ValueError("The answer is empty.")
        return True


async def invoke(runnable: Any, value: Any, **options: Any) -> Any:
    """Return the result of a runnable. In a loop, one without `ainvoke` runs in a thread."""
    if portal.blocking.get():
        return runnable.invoke(value, **options)
    if not hasattr(runnable, "ainvoke"):
        return await asyncio.to_thread(runnable.invoke, value, **options)
    return await runnable.ainvoke(value, **options)


def recalled() -> str:
    """Return the lessons that the bank recalled for the node that is running, as text; "" for none."""
    work = here.get()
    recall = work.episode.recall if work else None
    return recall.formatted_prompt if recall else ""


async def recorded(name: str, request: Json, do: Callable[[], Awaitable[Json]]) -> Json:
    """Return the result of `do`. Inside a node it is a step of the journal, so that it is not done twice."""
    work = here.get()
    return await (do() if work is None else work.journal.step(name, request, do))
