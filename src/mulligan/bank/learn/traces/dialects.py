"""Translate what other instrumentations write into the conventions that are read here.

Read are the Vercel AI SDK, the SDKs of Langfuse, MLflow, Logfire and LangSmith, Traceloop's workflows, Google's ADK,
and pydantic-ai before its second version. Each says in one attribute what a span is and in others, as JSON texts, what
went in and what came out. Their sources: the telemetry page of the AI SDK's documentation, and the packages langfuse
(4), mlflow (3), logfire (4), langsmith (0.4, `otel`), traceloop-sdk (0.4), google-adk (1) and pydantic-ai (1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from mulligan.bank.learn.traces.otlp import Span
from mulligan.core.records import Json
from mulligan.sessions.records import as_record


@dataclass(frozen=True)
class Dialect:
    """How an instrumentation writes.

    Attributes:
        kind: the attribute that says what a span is.
        kinds: OpenInference's word for each of its values, in lower case. `CHAIN`: a step, which has no name of an
            agent. A value that is missing is none of these, such as a retrieval.
        input, output: attributes of what went in and came out; the first that is there counts.
        name: attributes of an agent's or a tool's name. "": the span's own name.
        session: the attribute of the conversation.
        call: the attribute of a tool call's id.
        default: the kind of a span that has an input or output and no kind, and names no model; "": it is not read.
    """

    kind: str
    kinds: Mapping[str, str]
    input: tuple[str, ...]
    output: tuple[str, ...]
    name: tuple[str, ...] = ("",)
    session: str = ""
    call: str = ""
    default: str = ""


_COMMON = {"agent": "AGENT", "llm": "LLM", "tool": "TOOL", "evaluator": "EVALUATOR", "chain": "CHAIN"}
_AI_SDK = {
    **dict.fromkeys(("ai.generatetext", "ai.streamtext", "ai.generateobject", "ai.streamobject"), "CHAIN"),
    **dict.fromkeys(("ai.generatetext.dogenerate", "ai.generateobject.dogenerate"), "LLM"),
    **dict.fromkeys(("ai.streamtext.dostream", "ai.streamobject.dostream"), "LLM"),
    "ai.toolcall": "TOOL",
}
_DIALECTS = (
    Dialect(
        "ai.operationId",
        _AI_SDK,
        ("ai.prompt.messages", "ai.prompt", "ai.toolCall.args"),
        ("ai.response", "ai.toolCall.result"),
        ("ai.toolCall.name", "ai.telemetry.functionId"),
        "ai.telemetry.metadata.sessionId",
        "ai.toolCall.id",
    ),
    Dialect(
        "langfuse.observation.type",
        {**_COMMON, "generation": "LLM", "span": "CHAIN"},
        ("langfuse.observation.input", "langfuse.trace.input"),
        ("langfuse.observation.output", "langfuse.trace.output"),
        session="langfuse.session.id",
        default="span",
    ),
    Dialect(
        "mlflow.spanType",
        {**_COMMON, "chat_model": "LLM", "unknown": "CHAIN", "workflow": "CHAIN", "task": "CHAIN"},
        ("mlflow.spanInputs",),
        ("mlflow.spanOutputs",),
    ),
    Dialect(
        "langsmith.span.kind",
        _COMMON,
        ("gen_ai.prompt", "langsmith.entity.input"),
        ("gen_ai.completion", "langsmith.entity.output"),
        ("langsmith.trace.name", ""),
        "langsmith.metadata.session_id",
    ),
    Dialect(
        "traceloop.span.kind",
        {**_COMMON, "workflow": "CHAIN", "task": "CHAIN"},
        ("traceloop.entity.input",),
        ("traceloop.entity.output",),
        ("traceloop.entity.name",),
        "traceloop.association.properties.session_id",
    ),
    Dialect(
        "gcp.vertex.agent.kind",  # which it does not write: a call of a model names the model
        {"generation": "LLM", "tool": "TOOL"},
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.llm_request"),
        ("gcp.vertex.agent.tool_response", "gcp.vertex.agent.llm_response"),
        ("gen_ai.tool.name",),
        "gcp.vertex.agent.session_id",
        "gen_ai.tool.call.id",
        "tool",
    ),
)
_MODELS = ("langfuse.observation.model.name", "gen_ai.request.model", "gen_ai.response.model")
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool", "developer": "system"}
_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("tool_call", "tool-call", "tool_use", "function_call")
_RESULTS = ("tool_call_response", "tool-result", "tool_result", "function_call_output")
_WRAPPED = {
    **dict.fromkeys(("function_call", "functionCall", "toolUse"), "tool_use"),
    **dict.fromkeys(("function_response", "functionResponse", "toolResult"), "tool_result"),
}
"""Parts that are named by their key, as Gemini and Bedrock have them."""
_WRAPPERS = ("inputs", "input", "outputs", "output", "kwargs", "args", "response", "result")


def in_conventions(span: Span) -> Span:
    """The span with the attributes of the conventions beside those of its dialect; itself where it has none."""
    has = span.attributes
    for dialect in _DIALECTS:
        kind = _value(has.get(dialect.kind))
        if kind is None and dialect.default and any(key in has for key in (*dialect.input, *dialect.output)):
            kind = "generation" if any(key in has for key in _MODELS) else dialect.default
        if isinstance(kind, str):
            return _translated(span, dialect, kind.lower())
    return _logfire(_pydantic_ai(span))


def _translated(span: Span, dialect: Dialect, kind: str) -> Span:
    has = span.attributes
    meaning = dialect.kinds.get(kind, "OTHER")
    name = next((found for key in dialect.name if (found := span.text(key) if key else span.name)), "")
    given = next((has[key] for key in dialect.input if has.get(key) is not None), None)
    answer = _ai_answer(span) if "ai.response" in dialect.output else None
    answer = answer or next((has[key] for key in dialect.output if has.get(key) is not None), None)
    more: dict[str, Json] = {"openinference.span.kind": "AGENT" if meaning == "CHAIN" else meaning}
    if meaning == "TOOL":
        more |= {"tool.name": name, "tool_call.id": span.text(dialect.call) if dialect.call else ""}
        more |= {"gen_ai.tool.call.arguments": _arguments(given), "gen_ai.tool.call.result": _outcome(answer)}
    elif meaning in ("AGENT", "CHAIN", "LLM"):
        more |= _said(given, answer)
    if meaning == "AGENT":
        more["gen_ai.agent.name"] = name
    if session := dialect.session and span.text(dialect.session):
        more["session.id"] = session
    failed = span.text("langfuse.observation.level") == "ERROR" and not span.status
    told = span.said or span.text("langfuse.observation.status_message")
    return _with(replace(span, status="error", said=told) if failed else span, more)


def _arguments(given: Json) -> Json:
    """What a tool was called with; of a Python function, without the table around its arguments."""
    given = _value(given)
    table = as_record(given)
    if set(table) != {"args", "kwargs"}:
        return given
    positional = _listed(table["args"])
    if not positional:
        return table["kwargs"]
    return positional[0] if len(positional) == 1 and not table["kwargs"] else given


def _outcome(answer: Json) -> Json:
    """What a tool gave back, without the table or the message around it."""
    answer = _value(answer)
    table = as_record(answer)
    if set(table) in ({"output"}, {"result"}):
        return _outcome(next(iter(table.values())))
    return table["content"] if table.get("type") == "tool" and "content" in table else answer


def _pydantic_ai(span: Span) -> Span:
    """Before version 2 the messages are events in one attribute, and no operation is named."""
    events = _value(span.attributes.get("all_messages_events") or span.attributes.get("events"))
    if not isinstance(events, list) or not _are_events(cast("list[Json]", events)):
        unnamed = "gen_ai.operation.name" not in span.attributes and "tool_arguments" in span.attributes
        tool = unnamed and "gen_ai.tool.name" in span.attributes
        return _with(span, {"openinference.span.kind": "TOOL"}) if tool else span
    given: list[Json] = []
    answer: list[Json] = []
    for event in map(as_record, cast("list[Json]", events)):
        name = str(event["event.name"])
        role = "assistant" if name == "gen_ai.choice" else name.split(".")[1]
        message: Json = {"role": role, **as_record(event.get("message", event))}
        (answer if name == "gen_ai.choice" else given).append(message)
    more = _said(given, answer or span.attributes.get("final_result"))
    return _with(span, more | {"openinference.span.kind": "AGENT" if span.text("agent_name") else "LLM"})


def _are_events(events: list[Json]) -> bool:
    return bool(events) and all(str(as_record(event).get("event.name")).startswith("gen_ai.") for event in events)


def _logfire(span: Span) -> Span:
    """A call of a provider's SDK: the request, and the answer or the text of all its chunks."""
    request = _value(span.attributes.get("request_data"))
    if not isinstance(request, dict) or not any(key in request for key in ("messages", "input", "prompt", "contents")):
        return span
    more = _said(request, span.attributes.get("response_data"))
    return _with(span, more | {"openinference.span.kind": "LLM"})


def _with(span: Span, more: Mapping[str, Json]) -> Span:
    """The span with these attributes where it has none of its own."""
    return replace(span, attributes={**{key: value for key, value in more.items() if value}, **span.attributes})


def _ai_answer(span: Span) -> Json:
    """What the AI SDK's model answered: its text or its object, and its calls of tools."""
    text = span.text("ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object")
    calls = _value(span.attributes.get("ai.response.toolCalls") or span.attributes.get("ai.result.toolCalls"))
    blocks: list[Json] = [{"type": "text", "text": text}] if text else []
    if isinstance(calls, list):
        blocks += [{**call, "type": "tool-call"} for call in cast("list[Json]", calls) if isinstance(call, dict)]
    return {"role": "assistant", "content": blocks} if blocks else None


# --- messages --------------------------------------------------------------------------------------------------------


def _said(given: Json, answer: Json) -> dict[str, Json]:
    asked, said = list(_messages(given, "user")), list(_messages(answer, "assistant"))
    if asked and said[: len(asked)] == asked:  # a graph's state after a step repeats the one before it
        said = said[len(asked) :]
    return {"gen_ai.input.messages": asked, "gen_ai.output.messages": said}


def _messages(value: Json, role: str) -> Iterator[Json]:
    """The messages in a value of any of the forms, with `parts`. `role`: of what names none."""
    value = _value(value)
    if isinstance(value, list):
        several = [_of_pair(one) for one in cast("list[Json]", value)]
        if several and all(as_record(one).get("type") in _TEXTS for one in several):  # the parts of one message
            yield _message({"content": several}, role)
        elif several and all(map(_is_message, several)):
            yield from (_message(as_record(one), role) for one in several)
        elif len(several) == 1 or (several and all(isinstance(one, list) for one in several)):  # a batch: its first
            yield from _messages(several[0], role)
        elif several:
            yield _message({"content": json.dumps(several, ensure_ascii=False)}, role)
    elif isinstance(value, dict):
        table = as_record(value)
        yield from _messages([value], role) if table.get("type") in _TEXTS else _in_table(table, role)
    elif value is not None and value != "":
        yield _message({"content": value if isinstance(value, str) else json.dumps(value)}, role)


def _of_pair(value: Json) -> Json:
    """The message of a pair of a role and a text, as LangChain takes it; any other value as it is."""
    match value:
        case [str() as role, str() as text] if role in (*_ROLES, "system", "user", "assistant"):
            return {"role": role, "content": text}
        case _:
            return value


def _in_table(table: Mapping[str, Json], role: str) -> Iterator[Json]:
    first: Json = None
    if any(table.get(key) for key in ("messages", "contents", "prompt", "input")):
        for key in ("system", "instructions", "system_instruction"):
            yield from _messages(table.get(key), "system")
    if listed := _listed(table.get("messages") or table.get("contents")):
        yield from _messages(listed, role)
    elif choices := _listed(table.get("choices") or table.get("candidates") or table.get("generations")):
        first = choices[0]
        while isinstance(first, list) and first:  # LangChain's have a list for each prompt
            first = cast("list[Json]", first)[0]
        yield from _messages(_first_of(as_record(first), ("message", "content", "text")), role)
    elif "parts" in as_record(table.get("content")):  # Gemini's answer
        yield from _messages(table["content"], role)
    elif isinstance(table.get("message"), (dict, str)):
        yield from _messages(table["message"], role)
    elif _is_message(cast(Json, table)):
        yield _message(table, role)
    elif text := table.get("combined_chunk_content") or table.get("prompt"):
        yield from _messages(text, role)
    elif inner := next((table[key] for key in _WRAPPERS if table.get(key)), None):
        yield from _messages(inner, role)
    elif len(texts := [one for one in table.values() if isinstance(one, str) and one]) == 1:
        yield _message({"content": texts[0]}, role)
    elif table:
        yield _message({"content": json.dumps(table, ensure_ascii=False)}, role)


def _is_message(value: Json) -> bool:
    table = as_record(value)
    return {"lc", "kwargs"} <= table.keys() or any(key in table for key in ("content", "parts", "tool_calls"))


def _message(table: Mapping[str, Json], role: str) -> Json:
    """A message of the conventions, of one in the form of OpenAI, Anthropic, the AI SDK or LangChain."""
    if "lc" in table:
        table = as_record(table.get("kwargs"))
    said = str(table.get("role") or table.get("type") or role).lower()
    said = _ROLES.get(said, said)
    said = said if said in ("system", "user", "assistant", "tool") else role
    blocks = _listed(table.get("parts", table.get("content")))
    if said == "tool" and not any(as_record(one).get("type") in _RESULTS for one in blocks):
        id = str(_first_of(table, ("tool_call_id", "id")) or "")
        parts: list[Json] = [_result(id, str(table.get("name") or ""), cast(Json, blocks))]
    else:
        parts = [_part(block) for block in blocks]
    parts += [_call(call) for one in _listed(table.get("tool_calls")) if (call := as_record(one))]
    return {"role": said, "parts": parts}


def _listed(value: Json) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else [] if value in (None, "") else [value]


def _part(block: Json) -> Json:
    table = as_record(block)
    if key := next((key for key in _WRAPPED if isinstance(table.get(key), dict)), ""):
        return _part({**as_record(table[key]), "type": _WRAPPED[key]})
    kind = str(_first_of(table, ("type", "kind")) or "text")
    if not table or kind in _TEXTS:
        return {"type": "text", "content": _text(block)}
    if kind in _CALLS:
        return _call(table)
    if kind in _RESULTS:
        got = _first_of(table, ("response", "result", "output", "content"))
        return _result(_id(table), _name(table), _outcome(as_record(got).get("value", got)))
    return {"type": kind}


def _result(id: str, name: str, got: Json) -> Json:
    text = "\n".join(map(_text, cast("list[Json]", got))) if isinstance(got, list) else got
    return {"type": "tool_call_response", "id": id, "name": name, "response": text}


def _call(table: Mapping[str, Json]) -> Json:
    inner = as_record(table.get("function")) or table
    given = _value(_first_of(inner, ("arguments", "args", "input")))
    return {"type": "tool_call", "id": _id(table), "name": _name(inner), "arguments": given}


def _id(table: Mapping[str, Json]) -> str:
    return str(_first_of(table, ("toolCallId", "toolUseId", "tool_use_id", "tool_call_id", "call_id", "id")) or "")


def _name(table: Mapping[str, Json]) -> str:
    return str(_first_of(table, ("toolName", "name")) or "")


def _text(block: Json) -> str:
    text = _first_of(as_record(block), ("text", "content")) if isinstance(block, dict) else block
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def _first_of(table: Mapping[str, Json], keys: Iterable[str]) -> Json:
    return next((table[key] for key in keys if table.get(key) is not None), None)


def _value(value: Json) -> Json:
    """The value of a JSON text; any other value, and a text that is none, as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
