"""Spans of OpenTelemetry for what Mulligan does: episodes, trials, memory, learning, tools, model calls.

OpenTelemetry is imported only where spans were asked for: by `MULLIGAN_OTEL`, or by `traced`. Names of attributes are
those of the GenAI conventions at `SCHEMA` where these have one, else they begin with `mulligan.`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mulligan.app.model_roles import OWN_KINDS
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.core.operations import Operation, watched_by
from mulligan.core.records import Json, Lesson
from mulligan.models.provider_client import instrumented_by
from mulligan.text.secrets import mask

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

VARIABLE = "MULLIGAN_OTEL"
MODES = ("off", "on", "content")
SCHEMA = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""The version of the GenAI conventions that the spans follow. It is in development: see design/147."""
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which instrumentations for generative AI are asked for content."""

_OPERATIONS = {
    "episode": "invoke_agent",
    "recall": "search_memory",
    "keep": "upsert_memory",
    "create": "create_memory",
    "change": "update_memory",
    "purge": "delete_memory",
    "clear": "delete_memory_store",
    "tool": "execute_tool",
    "model": "chat",
}
"""The kinds of operations that the GenAI conventions have a name for."""

_MEMORY = ("recall", "keep", "create", "change", "purge", "clear")
_ATTRIBUTES = {
    ("episode", "agent"): "gen_ai.agent.name",
    ("episode", "episode"): "gen_ai.conversation.id",
    **{(kind, "bank"): "gen_ai.memory.store.id" for kind in _MEMORY},
    **{(kind, "lesson"): "gen_ai.memory.record.id" for kind in _MEMORY},
    **{(kind, "lessons"): "gen_ai.memory.record.count" for kind in _MEMORY},
    **{(kind, "records"): "gen_ai.memory.records" for kind in _MEMORY},
    ("recall", "query"): "gen_ai.memory.query.text",
    ("tool", "arguments"): "gen_ai.tool.call.arguments",
    ("tool", "result"): "gen_ai.tool.call.result",
}
"""The facts and texts of operations that the GenAI conventions have a name for."""


@contextmanager
def traced_as_configured() -> Generator[None]:
    """Traces the block if `MULLIGAN_OTEL` is `on` or `content`; the variables `OTEL_…` say where spans go.

    A provider of spans that exists already, such as that of `opentelemetry-instrument`, is used unchanged. One that is
    created here is flushed and shut down at the end.

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
        provider = _configured_provider()
    if provider is None:
        yield
        return
    try:
        with traced(provider, content=mode == "content" or None):
            yield
    finally:
        if own:
            provider.shutdown()


@contextmanager
def traced(provider: TracerProvider | None = None, *, content: bool | None = None) -> Generator[None]:
    """Traces what this process does with Mulligan until the block ends.

    Args:
        provider: gets the spans; None: the global one.
        content: whether spans contain tasks, queries, lessons, arguments, questions, answers and verdicts, with secrets
            masked; None: as the variable `CAPTURE` says, by default not. The spans of pydantic-ai never do, because we
            cannot mask them.

    Raises:
        InvalidInput: OpenTelemetry is not installed.
    """
    require("Traces need OpenTelemetry", "opentelemetry", "otel", distribution="opentelemetry-api")
    from opentelemetry import trace

    provider = provider or trace.get_tracer_provider()
    if content is None:
        content = os.environ.get(CAPTURE, "").strip().lower() in ("true", "span_only", "span_and_event")
    with watched_by(_Spans(provider, content).watch), instrumented_by(_instrument(provider)):
        yield


def _configured_provider() -> Any:
    """A provider of spans as the environment variables configure it; None without an exporter. Raises `InvalidInput`
    for an exporter that is not installed."""
    from importlib.metadata import entry_points

    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    has_name = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    exporters: list[Any] = []
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
                f"{VARIABLE}: the span exporter {name!r} is not installed. OTEL_TRACES_EXPORTER selects it: otlp "
                f"(the default), console (prints the spans) or none. For OTLP:  pip install {package}"
            )
        exporters.append(found[0].load()())
    if not exporters:
        return None
    provider = TracerProvider(resource=Resource.create({} if has_name else {"service.name": "mulligan"}))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _instrument(provider: TracerProvider) -> Callable[[Any], Any]:
    """Wraps a model of pydantic-ai so that its requests are spans, without content."""

    def instrument(model: Any) -> Any:
        from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

        settings = InstrumentationSettings(
            tracer_provider=provider, include_content=False, include_model_request_parameters=False
        )
        return InstrumentedModel(model, settings)

    return instrument


class _Spans:
    """Makes a span for each operation."""

    def __init__(self, provider: TracerProvider, content: bool) -> None:
        self._tracer, self._content = provider.get_tracer("mulligan", version("mulligan"), SCHEMA), content

    @contextmanager
    def watch(self, done: Operation) -> Generator[None]:
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, SpanKind, Status, StatusCode, get_current_span

        by_model = done.kind == "model" and done.name.partition(":")[0] in OWN_KINDS
        kind = SpanKind.SERVER if done.kind == "call" else SpanKind.CLIENT if by_model else SpanKind.INTERNAL
        context, links = None, list[Link]()
        if done.kind == "upkeep":  # a background task inherits the context of the call that started it
            current = get_current_span().get_span_context()
            context, links = Context(), [Link(current)] if current.is_valid else []
        operation_name = _operation(done, by_model)  # set at the start, for samplers
        attributes = {"gen_ai.operation.name": operation_name} if operation_name else {}
        with self._tracer.start_as_current_span(
            _name(done, by_model),
            context,
            kind,
            attributes,
            links=links,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield
            if not span.is_recording():
                return
            span.set_attributes(_attributes(done, by_model))
            if done.kind == "trial" and (verdict := self._verdict(done)):
                span.add_event("gen_ai.evaluation.result", verdict)
            if self._content:
                span.set_attributes(
                    {
                        _ATTRIBUTES.get((done.kind, name), f"mulligan.{name}"): mask(_as_text(value))
                        for name, value in done.content.items()
                        if (done.kind, name) != ("trial", "verdict")
                    }
                )
            if done.error:
                span.set_attribute("error.type", done.error)
                span.set_status(Status(StatusCode.ERROR))

    def _verdict(self, done: Operation) -> Mapping[str, str | float]:
        """The attributes of the event for the trial's verdict; empty if it was not judged."""
        passed, score = done.facts.get("passed"), done.facts.get("score")
        if passed is None and score is None:
            return {}
        return {
            "gen_ai.evaluation.name": str(done.facts["evaluator"] or "verdict"),
            **({} if passed is None else {"gen_ai.evaluation.score.label": "pass" if passed else "fail"}),
            **({"gen_ai.evaluation.score.value": score} if isinstance(score, int | float) else {}),
            **({"gen_ai.evaluation.explanation": mask(done.content["verdict"])} if self._content else {}),
        }


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_memory_record)


def _memory_record(value: Any) -> Json:
    """A lesson as a memory record of the conventions."""
    if not isinstance(value, Lesson):
        return str(value)
    score = {} if value.score is None else {"score": value.score}
    return {"id": value.id, "content": value.content, "metadata": {"title": value.title, "state": value.state}, **score}


def _operation(done: Operation, by_model: bool) -> str:
    return _OPERATIONS.get(done.kind, "") if by_model or done.kind != "model" else ""


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
            return _OPERATIONS.get(done.kind) or " ".join(filter(None, (done.kind, done.name)))


def _attributes(done: Operation, by_model: bool) -> Mapping[str, str | bool | int | float]:
    """The attributes of a span. by_model: it is the span of the model call itself, because pydantic-ai makes none."""
    known: dict[str, Json] = {
        _ATTRIBUTES.get((done.kind, name), f"mulligan.{name}"): done.facts[name] for name in done.facts
    }
    if done.kind in ("tool", "call"):
        known["gen_ai.tool.name"] = done.name
    if done.kind == "call":
        known["mcp.method.name"] = "tools/call"
    if done.kind == "model":
        usage, prefix = done.usage, "gen_ai" if by_model else "mulligan"
        known |= {f"{prefix}.request.model": done.name, "mulligan.cost": usage.cost}
        known |= {
            f"{prefix}.usage.input_tokens": usage.input_tokens,
            f"{prefix}.usage.output_tokens": usage.output_tokens,
        }
    if by_model:
        known["gen_ai.provider.name"] = done.name.partition(":")[0]
    return {name: fact for name, fact in known.items() if isinstance(fact, str | bool | int | float) and fact != ""}
