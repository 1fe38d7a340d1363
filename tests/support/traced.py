"""Spans of agents as OTLP JSON, as short to write as can be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

TRACE = "5b8efff798038103d269b633813fc60c"
AT = 1_700_000_000


def value(one: Any) -> dict[str, Any]:
    """A value in the form of OTLP."""
    if one is None:
        return {}
    if isinstance(one, bool):
        return {"boolValue": one}
    if isinstance(one, int):
        return {"intValue": str(one)}
    if isinstance(one, float):
        return {"doubleValue": one}
    if isinstance(one, str):
        return {"stringValue": one}
    if isinstance(one, Mapping):
        return {"kvlistValue": {"values": pairs(cast("Mapping[str, Any]", one))}}
    return {"arrayValue": {"values": [value(each) for each in one]}}


def pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(one)} for key, one in attributes.items()]


def event(name: str, attributes: Mapping[str, Any] | None = None, at: float = 0) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": str(int((AT + at) * 1e9)), "attributes": pairs(attributes or {})}


def span(
    id: str | int,
    attributes: Mapping[str, Any] | None = None,
    *,
    parent: str | int = "",
    trace: str | int = TRACE,
    at: float = 0,
    events: Sequence[Mapping[str, Any]] = (),
    error: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A span that takes a second. Ids are hexadecimal, or numbers."""
    return {
        "traceId": trace if isinstance(trace, str) else f"{trace:032x}",
        "spanId": id if isinstance(id, str) else f"{id:016x}",
        "parentSpanId": parent if isinstance(parent, str) else f"{parent:016x}",
        "name": "a span",
        "startTimeUnixNano": str(int((AT + at) * 1e9)),
        "endTimeUnixNano": str(int((AT + at + 1) * 1e9)),
        "attributes": pairs(attributes or {}),
        "events": list(events),
        "status": {} if error is None else {"code": 2, "message": error},
        **more,
    }


def record(name: str, body: Any = None, attributes: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A record of a log that is an event."""
    said = {} if body is None else {"body": value(body)}
    return {"timeUnixNano": str(AT * 10**9), "eventName": name, "attributes": pairs(attributes or {}), **said, **more}


def request(*spans: Mapping[str, Any], resource: Mapping[str, Any] | None = None) -> dict[str, Any]:
    about = {"attributes": pairs(resource or {"service.name": "billing"})}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [{"scope": {"name": "t"}, "spans": list(spans)}]}]}


def logs(*records: Mapping[str, Any]) -> dict[str, Any]:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": list(records)}]}]}


def lines(*requests: Mapping[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in requests)


def said(role: str, *parts: str | Mapping[str, Any]) -> dict[str, Any]:
    """A message in the conventions of today."""
    return {
        "role": role,
        "parts": [{"type": "text", "content": part} if isinstance(part, str) else dict(part) for part in parts],
    }


def call(id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def result(id: str, response: Any) -> dict[str, Any]:
    return {"type": "tool_call_response", "id": id, "response": response}


def chat(
    id: str | int,
    given: Sequence[Mapping[str, Any]],
    answer: Sequence[Mapping[str, Any]],
    more: Mapping[str, Any] | None = None,
    **about: Any,
) -> dict[str, Any]:
    """The span of a call of a model, with its messages as JSON texts."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(list(given)),
        "gen_ai.output.messages": json.dumps(list(answer)),
        **(more or {}),
    }
    return span(id, attributes, **about)


def agent(id: str | int, name: str = "biller", more: Mapping[str, Any] | None = None, **about: Any) -> dict[str, Any]:
    return span(id, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **(more or {})}, **about)


def evaluation(label: str = "", why: str = "", name: str = "correctness", score: float | None = None) -> dict[str, Any]:
    has = {"score.value": score, "score.label": label or None, "explanation": why or None}
    known = {f"gen_ai.evaluation.{key}": one for key, one in has.items() if one is not None}
    return event("gen_ai.evaluation.result", {"gen_ai.evaluation.name": name, **known})
