"""Agents that run under OpenTelemetry's SDK, exported by its file exporter, and learned from."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.exporter.otlp.json.file import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

import mulligan
from mulligan.app.traces import TraceRun
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson

KEY = "sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD"
WHY = f"no currency behind the total; the key {KEY} does not belong there"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def instrumented(tmp_path: Path) -> Iterator[Callable[..., TracerProvider]]:
    """Lets agents of pydantic-ai record their spans in traces.jsonl, in a version of its format."""

    def begin(version: int = 5, *processors: Any) -> TracerProvider:
        provider = TracerProvider()
        for one in processors or (SimpleSpanProcessor(FileSpanExporter(str(tmp_path / "traces.jsonl"))),):
            provider.add_span_processor(one)
        Agent.instrument_all(InstrumentationSettings(tracer_provider=provider, version=version))  # pyright: ignore[reportArgumentType]
        return provider

    yield begin
    Agent.instrument_all(False)


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse([TextPart("I look."), ToolCallPart("look", {"line": 5, "key": KEY}, "c1")])
    return ModelResponse([TextPart("12")])


def an_agent(name: str = "biller") -> Agent[None, str]:
    agent = Agent(FunctionModel(answer), name=name, system_prompt="Be brief.")

    @agent.tool_plain
    def look(line: int, key: str) -> dict[str, Any]:
        return {"found": line, "with": key}

    return agent


async def run(provider: TracerProvider, task: str, *, evaluation: Mapping[str, Any] | None = None) -> list[Any]:
    """Runs the agent within a span of the program's own, which gets the evaluation. The messages of the agent."""
    provider.get_tracer("app").start_span("GET /health").end()
    with provider.get_tracer("app").start_as_current_span("POST /bill") as span:
        result = await an_agent().run(task)
        if evaluation:
            span.add_event("gen_ai.evaluation.result", dict(evaluation))
    return result.all_messages()


FAILED = {
    "gen_ai.evaluation.name": "correctness",
    "gen_ai.evaluation.score.value": 0.0,
    "gen_ai.evaluation.score.label": "incorrect",
    "gen_ai.evaluation.explanation": WHY,
}


async def lessons_of(agent_id: str) -> list[Lesson]:
    async with mulligan.memory(agent_id) as memory:
        return list(await memory.bank.list(Selection(("active", "quarantined"), limit=None)))


@pytest.mark.light_cases(1)
@pytest.mark.filterwarnings("ignore:.*format versions 2, 3, and 4 are deprecated")
@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
async def test_a_run_that_was_exported_teaches_what_its_messages_teach(
    instrumented: Callable[..., TracerProvider], version: int, tmp_path: Path
) -> None:
    provider = instrumented(version)
    task = f"Write the total of 5 and 7. The key is {KEY}."
    messages = await run(provider, task, evaluation=FAILED)
    provider.shutdown()

    learned = await mulligan.learn_traces("traces.jsonl", bank="traces")
    assert (learned.errors, dict(learned.runs)) == ((), {"new": 1})
    assert learned.spans.others == 1
    async with mulligan.memory("messages") as memory:
        await memory.learn(messages, success=False, why=WHY)
    (one,), (other,) = await lessons_of("traces"), await lessons_of("messages")
    assert (one.title, one.description, one.content) == (other.title, other.description, other.content)
    assert (one.query, one.outcome, one.nature, one.context) == (
        other.query,
        other.outcome,
        other.nature,
        other.context,
    )
    assert "no currency behind the total" in one.content
    assert KEY in (tmp_path / "traces.jsonl").read_text()
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()

    again = await mulligan.learn_traces("traces.jsonl", bank="traces")
    assert (dict(again.runs), again.lessons) == ({"known": 1}, ())
    elsewhere = await mulligan.learn_traces("traces.jsonl", bank=None)
    assert dict(elsewhere.runs) == {"new": 1}
    assert [lesson.content for lesson in await lessons_of("biller")] == [one.content]


# --- in the process of the agent -------------------------------------------------------------------------------------


def no_currency(task: str, answer: str) -> None:
    assert answer.endswith("EUR"), f"no currency in {answer!r}"


async def test_a_processor_learns_in_the_background_and_each_span_once(
    instrumented: Callable[..., TracerProvider], tmp_path: Path
) -> None:
    told: list[TraceRun] = []
    processor = mulligan.LearningSpanProcessor(judge=no_currency, learned=told.append)
    provider = instrumented(5, processor, SimpleSpanProcessor(FileSpanExporter(str(tmp_path / "traces.jsonl"))))
    await run(provider, "Write the total of 5 and 7.")
    await run(provider, "Write the total of 1 and 2.", evaluation=FAILED)
    assert provider.force_flush()
    assert [(one.success, one.source) for one in told] == [
        (False, "no_currency"),
        (False, "evaluation correctness"),
    ]
    assert (processor.dropped, processor.failed) == (0, 0)
    (one, other) = sorted(await lessons_of("biller"), key=lambda lesson: lesson.query)
    assert "no currency in '12'" in other.content
    assert "no currency behind the total" in one.content
    assert KEY not in one.content
    provider.shutdown()
    again = await mulligan.learn_traces("traces.jsonl", bank=None, judge="contains:EUR")
    assert dict(again.runs) == {"known": 2}


async def test_what_learning_itself_asks_models_teaches_nothing(instrumented: Callable[..., TracerProvider]) -> None:
    told: list[TraceRun] = []

    async def asks(answer: str) -> tuple[bool, str]:
        said = await an_agent("judge").run(f"Is {answer} right?")
        return False, f"the judge says {said.output}"

    provider = instrumented(5, mulligan.LearningSpanProcessor(judge=asks, learned=told.append))
    await run(provider, "Write the total of 5 and 7.")
    assert provider.force_flush()
    assert [(one.agent, one.why) for one in told] == [("biller", "the judge says 12")]
    provider.shutdown()
    assert len(told) == 1


async def test_what_there_is_no_room_for_is_counted_and_logged_once(
    instrumented: Callable[..., TracerProvider], caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def waits(answer: str) -> bool:
        begun.set()
        return go_on.wait(30)

    processor = mulligan.LearningSpanProcessor("a", judge=waits, queue=1)
    provider = instrumented(5, processor)
    await run(provider, "Task 0.")
    assert begun.wait(30)
    for n in range(1, 4):  # one more waits, two find no room
        await run(provider, f"Task {n}.")
    assert processor.dropped == 10
    assert not processor.force_flush(10)
    assert [record.levelname for record in caplog.records if record.name == "mulligan.tracing"] == ["WARNING"]
    go_on.set()
    assert processor.force_flush()
    provider.shutdown()


async def test_a_judge_with_a_bug_is_logged_and_the_agent_goes_on(
    instrumented: Callable[..., TracerProvider], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(answer: str) -> bool:
        return undefined  # pyright: ignore # noqa: F821

    processor = mulligan.LearningSpanProcessor("a", judge=broken)
    provider = instrumented(5, processor)
    await run(provider, "Task.")
    provider.shutdown()
    assert processor.failed == 1
    assert "the judge broken has a bug: NameError" in caplog.text
    with pytest.raises(InvalidInput, match="takes no argument"):
        mulligan.LearningSpanProcessor("a", judge=lambda: True)  # pyright: ignore[reportArgumentType]


def test_two_requests_of_one_trace_are_learned_from_apart() -> None:
    told: list[TraceRun] = []
    provider = TracerProvider()
    provider.add_span_processor(mulligan.LearningSpanProcessor("a", learned=told.append, judge="contains:EUR"))
    tracer = provider.get_tracer("app")
    from_elsewhere = NonRecordingSpan(SpanContext(7, 8, True, TraceFlags(1)))
    parents = [tracer.start_span("request", trace_api.set_span_in_context(from_elsewhere)) for _ in range(2)]
    for n, parent in enumerate(parents):
        said = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([{"role": "user", "content": f"{n}"}]),
        }
        said["gen_ai.output.messages"] = "an answer"
        tracer.start_span("chat", trace_api.set_span_in_context(parent), attributes=said).end()
    for parent in parents:
        parent.end()
    provider.shutdown()
    assert [(one.task, one.success) for one in told] == [("0", False), ("1", False)]


FORKED = """
import json, os, mulligan
from opentelemetry.sdk.trace import TracerProvider

def run(task):
    with provider.get_tracer("app").start_as_current_span("chat") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.input.messages", json.dumps([{"role": "user", "content": task}]))
        span.set_attribute("gen_ai.output.messages", "12")

provider = TracerProvider()
told = []
processor = mulligan.LearningSpanProcessor("a", judge="contains:EUR", learned=lambda run: told.append(run.task))
provider.add_span_processor(processor)
run("first")
assert processor.force_flush()
child = os.fork()
run("child" if child == 0 else "parent")
assert processor.force_flush()
assert told == ["first", "child" if child == 0 else "parent"], told
if child == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.slow
def test_a_process_that_was_forked_learns_too() -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
