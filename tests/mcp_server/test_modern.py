"""What revision 2026-07-28 adds: how long an answer may be kept and by whom, and the client's trace."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mulligan.app.service import ServerOptions, Service
from mulligan.app.telemetry import traced
from mulligan.mcp_server.server import make_server, one_connection


@asynccontextmanager
async def connected(mode: str = "auto") -> AsyncGenerator[Client]:
    service = Service(ServerOptions(agent_id="a"))
    try:
        async with Client(make_server(service, "memory", lambda _: one_connection("a")), mode=mode) as client:
            yield client
    finally:
        await service.close()


async def test_only_what_is_the_same_for_all_may_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected() as client:
        session = client.session
        told = await session.discover()
        templates, tools = await session.list_resource_templates(), await session.list_tools()
        prompts, resources = await session.list_prompts(), await session.list_resources()
    assert [(one.cache_scope, one.ttl_ms > 0) for one in (told, templates)] == [("public", True)] * 2
    assert [(one.cache_scope, one.ttl_ms > 0) for one in (tools, prompts)] == [("private", True)] * 2
    assert (resources.cache_scope, resources.ttl_ms) == ("private", 0)


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("meta", "trace"),
    [
        ({"traceparent": PARENT, "tracestate": "vendor=1"}, "4bf92f3577b34da6a3ce929d0e0e4736"),
        ({"traceparent": PARENT, "tracestate": [1]}, "4bf92f3577b34da6a3ce929d0e0e4736"),
        ({"traceparent": "00-zz", "tracestate": "vendor=1"}, None),
        ({"traceparent": {"a": 1}}, None),
        ({"traceparent": 7}, None),
    ],
)
async def test_the_spans_of_a_call_belong_to_the_client_s_trace(meta: Any, trace: str | None) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with traced(provider):
        async with connected() as client:
            assert not (await client.call_tool("retrieve_memory", {"query": "VAT"}, meta=meta)).is_error
    provider.shutdown()
    (call,) = [span for span in exporter.get_finished_spans() if "retrieve_memory" in span.name]
    assert call.context
    assert (f"{call.context.trace_id:032x}" == trace) is (trace is not None)
    assert (call.parent is not None) is (trace is not None)
