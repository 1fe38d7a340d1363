"""Spans of OpenTelemetry, kept in memory by the SDK's own exporter."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from wire_client import KEY, running

import mulligan
from mulligan.app.memory import Bank
from mulligan.app.service import Service
from mulligan.app.telemetry import CAPTURE, SCHEMA, traced, traced_as_configured
from mulligan.app.toolbox import ConfiguredTools
from mulligan.bank.learn.traces import runs as traces
from mulligan.core.errors import InvalidInput
from mulligan.core.operations import operation, watched_by
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Episode, Task
from mulligan.functions.tracing import span_of
from mulligan.mcp_server.server import run_tool
from mulligan.mcp_server.tool import Call
from mulligan.mcp_server.tools.retrieve_memory import TOOL as RETRIEVE
from mulligan.sandbox.local import LocalSandbox

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"
TASK = f"What is six times seven? The key is {SECRET}."
MEMORY = {"memory": {"learn_share": 1, "reader": ""}}
LESSON = {"title": "Multiply", "description": "d", "content": "Multiply twice.", "steps": [1]}


class Spans:
    """What was exported. `one` gives the only span of a name."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def parent(self, span: ReadableSpan) -> str:
        """The name of the span around this one; "": there is none."""
        above = span.parent.span_id if span.parent else None
        return next((one.name for one in self.all if one.context and one.context.span_id == above), "")

    def text(self) -> str:
        return "".join(span.to_json() for span in self.all)


@pytest.fixture
def spans() -> Iterator[Spans]:
    kept = Spans()
    yield kept
    kept.provider.shutdown()


def facts(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def answers(folder: Path, *each: Any) -> str:
    (folder / "answers.json").write_text(json.dumps(each))
    return f"scripted:{folder / 'answers.json'}"


async def solved(folder: Path) -> Episode:
    model = answers(folder, "41", "42", {"why": "w", "lessons": [LESSON], "nothing_because": ""})
    return await mulligan.solve(
        TASK, evaluator="contains:42", strategy="last_attempt", model=model, bank="anna", trials=3, settings=MEMORY
    )


async def test_an_episode_with_its_trials_recall_and_lesson(spans: Spans, tmp_path: Path) -> None:
    with traced(spans.provider):
        episode = await solved(tmp_path)
    assert episode.solved
    whole = next(span for span in spans.all if span.name.startswith("invoke_agent"))
    assert facts(whole)["gen_ai.operation.name"] == "invoke_agent"
    assert facts(whole)["gen_ai.conversation.id"] == episode.id
    assert (facts(whole)["mulligan.stop"], facts(whole)["mulligan.trials"]) == ("solved", 2)
    first, second = spans.one("trial 1"), spans.one("trial 2")
    assert [facts(one)["mulligan.passed"] for one in (first, second)] == [False, True]
    recall, learn, keep = spans.one("search_memory"), spans.one("learn"), spans.one("upsert_memory")
    assert {spans.parent(span) for span in (first, second, recall, learn)} == {whole.name}
    assert spans.parent(keep) == "learn"
    assert {facts(one)["gen_ai.memory.store.id"] for one in (recall, keep)} == {"anna"}
    assert [facts(one)["gen_ai.memory.record.count"] for one in (recall, keep)] == [0, 1]
    asked = [span for span in spans.all if span.name.startswith("chat scripted:")]
    assert {spans.parent(span) for span in asked} == {"trial 1", "trial 2", "learn"}
    assert all(facts(span)["gen_ai.provider.name"] == "scripted" for span in asked)
    assert all(facts(span)["gen_ai.usage.input_tokens"] > 0 for span in asked)


async def test_each_change_of_a_bank_has_the_name_of_the_conventions(spans: Spans) -> None:
    with traced(spans.provider):
        async with Bank.open("anna") as bank:
            kept = await bank.add("Multiply", "Multiply twice.")
            assert (await bank.add("Multiply", "Multiply twice.")).id == kept.id
            own = await bank.add("Multiply", "Multiply twice.", fold=False)
            await bank.edit(kept.id, title="Times")
            await bank.retire(own.id, "no use")
            await bank.purge([own.id])
            await bank.purge(None)
    assert [(span.name, facts(span).get("gen_ai.memory.record.id")) for span in spans.all] == [
        ("upsert_memory", kept.id),
        ("upsert_memory", kept.id),
        ("create_memory", own.id),
        ("update_memory", kept.id),
        ("update_memory", own.id),
        ("delete_memory", own.id),
        ("delete_memory_store", None),
    ]
    assert all(facts(span)["gen_ai.operation.name"] == span.name for span in spans.all)
    assert {facts(span)["gen_ai.memory.store.id"] for span in spans.all} == {"anna"}
    assert [facts(span)["mulligan.change"] for span in spans.named("update_memory")] == ["edited", "retired"]
    assert facts(spans.one("delete_memory_store"))["gen_ai.memory.record.count"] == 1
    assert {span.instrumentation_scope and span.instrumentation_scope.schema_url for span in spans.all} == {SCHEMA}
    assert "twice" not in spans.text()


async def test_a_verdict_is_an_event_of_its_trial_and_the_last_one_counts(spans: Spans, tmp_path: Path) -> None:
    with traced(spans.provider):
        await solved(tmp_path)
    events = [event for span in spans.all for event in span.events]
    assert [dict(event.attributes or {}) for event in events] == [
        {
            "gen_ai.evaluation.name": "contains",
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.score.value": n,
        }
        for label, n in (("fail", 0.0), ("pass", 1.0))
    ]
    assert {event.name for event in events} == {"gen_ai.evaluation.result"}
    with traces.Spans() as found:
        for span in spans.all:
            found.add(span_of(span))
        (run,) = found.runs()
    assert run.verdict.success is True


@pytest.mark.parametrize(
    ("value", "shown"), [("", False), ("no_content", False), ("event_only", False), ("true", True)]
)
async def test_the_variable_of_the_conventions_asks_for_content(
    value: str, shown: bool, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, value)
    with traced(spans.provider):
        async with Bank.open("anna") as bank:
            await bank.recall("six times seven")
    assert ("six times seven" in spans.text()) is shown


async def test_content_is_left_out_unless_it_is_asked_for_and_masked_then(spans: Spans, tmp_path: Path) -> None:
    with traced(spans.provider):
        await solved(tmp_path)
    assert "six times seven" not in spans.text()
    shown = Spans()
    with traced(shown.provider, content=True):
        model = answers(tmp_path, "42")
        await mulligan.solve(TASK, evaluator="contains:42", model=model, bank="anna", trials=1, settings=MEMORY)
    shown.provider.shutdown()
    recall = facts(shown.one("search_memory"))
    assert "six times seven" in recall["gen_ai.memory.query.text"]
    (record,) = json.loads(recall["gen_ai.memory.records"])
    assert record["content"] == "Multiply twice."
    assert {"id", "score", "metadata"} < record.keys()
    (event,) = shown.one("trial 1").events
    assert "Found" in str((event.attributes or {})["gen_ai.evaluation.explanation"])
    assert "six times seven" in facts(next(s for s in shown.all if s.name.startswith("chat ")))["mulligan.question"]
    assert SECRET not in spans.text() + shown.text()


@pytest.mark.slow
async def test_spans_of_pydantic_ai_are_below_ours(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    with running("--port", "0") as wire, traced(spans.provider, content=True):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        wire.plays({"answer": "42", "usage": [100, 10]})
        await mulligan.solve(TASK, evaluator="contains:42", model="openai:gpt-4o", trials=1)
    chat = spans.one("chat gpt-4o")
    assert spans.parent(chat) == "ask actor"
    assert spans.parent(spans.one("ask actor")) == "trial 1"
    assert facts(chat)["gen_ai.usage.input_tokens"] == 100
    assert facts(spans.one("ask actor"))["mulligan.usage.output_tokens"] == 10
    assert "gen_ai.usage.input_tokens" not in facts(spans.one("ask actor"))  # or backends would add it twice
    assert "six times seven" not in chat.to_json()
    assert KEY not in spans.text()


async def test_a_tool_that_fails_is_a_span_with_an_error(spans: Spans) -> None:
    tools = ConfiguredTools(LocalSandbox(), tools={"http_hosts": ["docs.python.org"]})
    with traced(spans.provider, content=True):
        async with tools.open(Episode("e.1", Task("t"), "e")) as box:
            assert (await box.call("http_get", "http_get", {"url": "https://example.org/"})).failed
    span = spans.one("execute_tool http_get")
    assert span.status.status_code is StatusCode.ERROR
    assert facts(span)["error.type"] == "ToolError"
    assert facts(span)["gen_ai.tool.name"] == "http_get"
    assert json.loads(facts(span)["gen_ai.tool.call.arguments"]) == {"url": "https://example.org/"}


class Breaks:
    """An evaluator whose error quotes what it judged."""

    expects = "text"

    async def evaluate(self, episode: Episode) -> Any:
        raise InvalidInput(f"cannot judge {episode.task.prompt}")


async def test_an_error_says_its_kind_and_not_its_message(spans: Spans, tmp_path: Path) -> None:
    breaks: Any = Breaks()
    assert isinstance(breaks, Evaluator)
    with traced(spans.provider):
        episode = await mulligan.solve(TASK, evaluator=breaks, model=answers(tmp_path, "42"), trials=1)
        with pytest.raises(InvalidInput):
            await Bank.open("anna").recall("")
    assert episode.stop
    assert episode.stop.reason == "error"
    assert facts(next(s for s in spans.all if s.name.startswith("invoke_agent")))["mulligan.stop"] == "error"
    recall = spans.one("search_memory")
    assert (recall.status.status_code, facts(recall)["error.type"]) == (StatusCode.ERROR, "InvalidInput")
    assert "six times seven" not in spans.text()


async def test_a_watcher_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("no")

    with watched_by(broken), operation("recall") as done:
        done.facts["lessons"] = 1
    assert "an observer could not start" in caplog.text


@pytest.mark.parametrize("value", ["yes", "console"])
def test_a_mode_that_is_none_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_OTEL", value)
    with pytest.raises(InvalidInput, match="off, on, content"), traced_as_configured():
        pass


def test_without_an_exporter_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_OTEL", "on")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    with traced_as_configured(), operation("recall"):
        assert not get_current_span().is_recording()


def mulligan_with(*arguments: str, **env: str) -> Any:
    return run_forked([sys.executable, "-m", "mulligan", *arguments], env={**os.environ, **env})


@pytest.mark.slow
def test_the_command_sends_spans_where_the_variables_say() -> None:
    ended = mulligan_with("memory", "search", "six times seven", MULLIGAN_OTEL="on", OTEL_TRACES_EXPORTER="console")
    assert ended.returncode == 0, ended.stderr
    start = ended.stdout.index('{\n    "name": "search_memory"')
    span, _ = json.JSONDecoder().raw_decode(ended.stdout[start:])
    assert span["resource"]["attributes"]["service.name"] == "mulligan"
    assert "six times seven" not in json.dumps(span)


def test_an_exporter_that_is_not_installed_is_named() -> None:
    ended = mulligan_with("memory", "list", MULLIGAN_OTEL="on", OTEL_TRACES_EXPORTER="zipkin")
    assert ended.returncode == 2
    assert "zipkin" in ended.stderr
    assert "pip install opentelemetry-exporter-otlp" in ended.stderr


@pytest.mark.slow
def test_without_the_variable_nothing_of_opentelemetry_is_imported() -> None:
    code = (
        "import sys; from mulligan.cli.main import cli\n"
        "cli.main(['memory', 'list'], standalone_mode=False)\n"
        "assert not [m for m in sys.modules if m.startswith('opentelemetry')]"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


async def test_a_call_of_the_server_holds_its_recall_and_work_in_the_background_is_linked(spans: Spans) -> None:
    service = Service()
    try:
        with traced(spans.provider):
            assert not (await run_tool(RETRIEVE, {"query": "six times seven"}, Call(service))).error
            assert (await run_tool(RETRIEVE, {"query": ""}, Call(service))).error
            with (
                operation("call", "extract_memory", {"result": "answered"}),
                operation("upkeep", "extract", {"agent": ""}),
            ):
                pass
    finally:
        await service.close()
    answered, refused = spans.named("tools/call retrieve_memory")
    assert (answered.kind, facts(answered)["mulligan.result"]) == (SpanKind.SERVER, "answered")
    assert facts(answered)["mcp.method.name"] == "tools/call"
    assert (facts(refused)["mulligan.result"], facts(refused)["error.type"]) == ("refused", "InvalidInput")
    recall = spans.named("search_memory")[0]
    assert recall.parent
    assert answered.context
    assert recall.parent.span_id == answered.context.span_id
    upkeep, caller = spans.one("upkeep extract"), spans.one("tools/call extract_memory")
    assert upkeep.parent is None
    assert [link.context.span_id for link in upkeep.links] == [caller.context.span_id if caller.context else 0]
