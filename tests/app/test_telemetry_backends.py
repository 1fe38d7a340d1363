"""Our spans as OTLP, sent to an endpoint of ours that stands for Langfuse, Logfire and Phoenix.

It checks what their pages ask for: the path, the headers and the protobuf. Their own servers are not here.
Langfuse: langfuse-docs, content/integrations/native/opentelemetry.mdx (03c61f3f). Logfire: logfire,
docs/how-to-guides/alternative-clients.md (066dca33). Phoenix: arize.com/docs/phoenix, "What is my Phoenix endpoint".
"""

import gzip
import os
import sys
import threading
from base64 import b64encode
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from forked import run_forked
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

LANGFUSE = "Basic " + b64encode(b"pk-lf-1:sk-lf-2").decode()


@dataclass
class Posts:
    """What was posted: the path, the headers and the body of each request."""

    url: str = ""
    all: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[tuple[str, dict[str, str], bytes]])


@contextmanager
def endpoint() -> Generator[Posts]:
    posts = Posts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            posts.all.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        posts.url = f"http://127.0.0.1:{server.server_port}"
        yield posts
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.mark.parametrize(
    ("base", "path", "headers"),
    [
        ("/api/public/otel", "/api/public/otel/v1/traces", f"Authorization={LANGFUSE},x-langfuse-ingestion-version=4"),
        ("", "/v1/traces", "Authorization=a-write-token"),
        ("", "/v1/traces", "Authorization=Bearer an-api-key"),
    ],
    ids=["langfuse", "logfire", "phoenix"],
)
def test_spans_are_posted_as_the_backend_documents(base: str, path: str, headers: str) -> None:
    with endpoint() as posts:
        env = {
            "MULLIGAN_OTEL": "on",
            "OTEL_EXPORTER_OTLP_ENDPOINT": posts.url + base,
            "OTEL_EXPORTER_OTLP_HEADERS": headers,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_RESOURCE_ATTRIBUTES": "openinference.project.name=billing",
        }
        command = [sys.executable, "-m", "mulligan", "memory", "--bank", "billing", "search", "six times seven"]
        ended = run_forked(command, env={**os.environ, **env})
    assert ended.returncode == 0, ended.stderr
    ((asked, sent, body),) = posts.all
    assert asked == path
    assert sent["content-type"] == "application/x-protobuf"
    assert {
        pair.partition("=")[0].lower(): pair.partition("=")[2] for pair in headers.split(",")
    }.items() <= sent.items()
    message = ExportTraceServiceRequest()
    message.ParseFromString(gzip.decompress(body) if sent.get("content-encoding") == "gzip" else body)
    (resource,) = message.resource_spans
    about = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert (about["service.name"], about["openinference.project.name"]) == ("mulligan", "billing")
    (scope,) = resource.scope_spans
    assert (scope.scope.name, scope.schema_url) == (
        "mulligan",
        "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev",
    )
    (span,) = (one for one in scope.spans if one.name == "search_memory")
    facts = {one.key: one.value for one in span.attributes}
    assert facts["gen_ai.operation.name"].string_value == "search_memory"
    assert facts["gen_ai.memory.store.id"].string_value == "billing"
    assert b"six times seven" not in message.SerializeToString()


def test_an_endpoint_that_is_not_there_changes_nothing_of_the_command() -> None:
    with endpoint() as posts:
        gone = posts.url
    env = {"MULLIGAN_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": gone, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    command = [sys.executable, "-m", "mulligan", "memory", "--bank", "billing", "list"]
    with_spans = run_forked(command, env={**os.environ, **env})
    without = run_forked(command, env={**os.environ})
    assert (with_spans.returncode, with_spans.stdout) == (without.returncode, without.stdout)
