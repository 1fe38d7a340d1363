"""Spans of OpenTelemetry for what Mulligan does: episodes, trials, recalls, learning, tools, model calls.

OpenTelemetry is imported only where spans were asked for: by `MULLIGAN_OTEL`, or by `traced`. Names of attributes are
those of the GenAI conventions where these have one, else they begin with `mulligan.`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mulligan.app.model_roles import OWN_KINDS
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.core.operations import Operation, watched_by
from mulligan.core.records import Json
from mulligan.models.provider_client import instrumented_by
from mulligan.text.secrets import mask

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

VARIABLE = "MULLIGAN_OTEL"
MODES = ("off", "on", "content")

_OPERATIONS = {"episode": "invoke_agent", "recall": "retrieval", "tool": "execute_tool", "model": "chat"}
"""The kinds of operations that the GenAI conventions have a name for."""

_ATTRIBUTES = {
    ("episode", "agent"): "gen_ai.agent.name",
    ("episode", "episode"): "gen_ai.conversation.id",
    ("recall", "query"): "gen_ai.retrieval.query.text",
    ("tool", "arguments"): "gen_ai.tool.call.arguments",
    ("tool", "result"): "gen_ai.tool.call.result",
}
"""The facts and texts of operations that the GenAI conventions have a name for."""


@contextmanager
def traced_as_configured() -> Generator[None]:
    """Traces the block if `MULLIGAN_OTEL` is `on` or `content`; spans go where the variables `OTEL_…` say.

    A provider of spans that is there already, such as that of `opentelemetry-instrument`, is used as it is. One that is
    made here is flushed and shut down in the end.

    Raises:
        InvalidInput: the variable has another value, or what it needs is not installed.
    """
    mode = os.environ.get(VARIABLE, "off").strip().lower() or "off"
    if mode not in MODES:
        raise InvalidInput(f"{VARIABLE} must be one of {', '.join(MODES)}, not {mode!r:.40}.")
    if mode == "off":
        yield
        return
    require(f"{VARIABLE}={mode} needs OpenTelemetry", "opentelemetry.sdk", "otel", distribution="opentelemetry-sdk")
    from opentelemetry import trace

    provider: Any = trace.get_tracer_provider()
    if own := isinstance(provider, trace.ProxyTracerProvider):
        provider = _configured()
    try:
        with traced(provider, content=mode == "content"):
            yield
    finally:
        if own:
            provider.shutdown()


@contextmanager
def traced(provider: TracerProvider | None = None, *, content: bool = False) -> Generator[None]:
    """Traces what this process does with Mulligan, until the block ends.

    Args:
        provider: gets the spans; None: the global one.
        content: whether spans hold tasks, queries, arguments, questions and answers, with secrets masked. The spans of
            pydantic-ai never do: they do not go through our masks.

    Raises:
        InvalidInput: OpenTelemetry is not installed.
    """
    require("Traces need OpenTelemetry", "opentelemetry", "otel", distribution="opentelemetry-api")
    from opentelemetry import trace

    provider = provider or trace.get_tracer_provider()
    with watched_by(_Spans(provider, content).watch), instrumented_by(_instrument(provider)):
        yield


def _configured() -> Any:
    """A provider of spans as the variables say. Raises `InvalidInput` for an exporter that is not installed."""
    from importlib.metadata import entry_points

    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if named else {"service.name": "mulligan"}))
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    for name in (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").replace(",", " ").split():
        if name == "none":
            continue
        package = "opentelemetry-exporter-otlp"
        if name == "otlp":
            name = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
            package += name.removeprefix("otlp").replace("_", "-")
        found = tuple(entry_points(group="opentelemetry_traces_exporter", name=name))
        if not found:
            raise InvalidInput(
                f"{VARIABLE}: the exporter {name!r} of spans is not installed. OTEL_TRACES_EXPORTER names it: otlp if "
                f"it is not set, console to look at spans, none. For OTLP:  pip install {package}"
            )
        provider.add_span_processor(BatchSpanProcessor(found[0].load()()))
    return provider


def _instrument(provider: TracerProvider) -> Callable[[Any], Any]:
    """Wraps a model of pydantic-ai so that its requests are spans, without what they say."""

    def instrument(model: Any) -> Any:
        from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

        settings = InstrumentationSettings(
            tracer_provider=provider, include_content=False, include_model_request_parameters=False
        )
        return InstrumentedModel(model, settings)

    return instrument


class _Spans:
    """Makes a span of each operation."""

    def __init__(self, provider: TracerProvider, content: bool) -> None:
        self._tracer, self._content = provider.get_tracer("mulligan"), content

    @contextmanager
    def watch(self, done: Operation) -> Generator[None]:
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, SpanKind, Status, StatusCode, get_current_span

        by_model = done.kind == "model" and done.name.partition(":")[0] in OWN_KINDS
        kind = SpanKind.SERVER if done.kind == "call" else SpanKind.CLIENT if by_model else SpanKind.INTERNAL
        context, links = None, list[Link]()
        if done.kind == "upkeep":  # a background task inherits the context of the call that started it
            before = get_current_span().get_span_context()
            context, links = Context(), [Link(before)] if before.is_valid else []
        with self._tracer.start_as_current_span(
            _name(done, by_model), context, kind, links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            yield
            span.set_attributes(_attributes(done, by_model))
            if self._content:
                span.set_attributes(
                    {
                        _ATTRIBUTES.get((done.kind, name), f"mulligan.{name}"): mask(_text(said))
                        for name, said in done.content.items()
                    }
                )
            if done.error:
                span.set_attribute("error.type", done.error)
                span.set_status(Status(StatusCode.ERROR))


def _text(said: Json) -> str:
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)


def _name(done: Operation, by_model: bool) -> str:
    match done.kind:
        case "episode":
            return " ".join(filter(None, ("invoke_agent", str(done.facts.get("agent", "")))))
        case "trial":
            return f"trial {done.facts['trial']}"
        case "tool":
            return f"execute_tool {done.name}"
        case "call":
            return f"tools/call {done.name}"
        case "model":
            return f"chat {done.name}" if by_model else f"ask {done.facts['role']}"
        case _:
            return " ".join(filter(None, (done.kind, done.name)))


def _attributes(done: Operation, by_model: bool) -> Mapping[str, str | bool | int | float]:
    """by_model: no span of pydantic-ai is below this one, so it is the span of the model call itself."""
    found: dict[str, Json] = {
        _ATTRIBUTES.get((done.kind, name), f"mulligan.{name}"): done.facts[name] for name in done.facts
    }
    if done.kind in _OPERATIONS and (by_model or done.kind != "model"):
        found["gen_ai.operation.name"] = _OPERATIONS[done.kind]
    if done.kind in ("tool", "call"):
        found["gen_ai.tool.name"] = done.name
    if done.kind == "call":
        found["mcp.method.name"] = "tools/call"
    if done.kind == "model":
        usage, prefix = done.usage, "gen_ai" if by_model else "mulligan"
        found |= {f"{prefix}.request.model": done.name, "mulligan.cost": usage.cost}
        found |= {
            f"{prefix}.usage.input_tokens": usage.input_tokens,
            f"{prefix}.usage.output_tokens": usage.output_tokens,
        }
    if by_model:
        found["gen_ai.provider.name"] = done.name.partition(":")[0]
    return {name: value for name, value in found.items() if isinstance(value, str | bool | int | float)}
