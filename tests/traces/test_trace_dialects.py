"""Spans as other instrumentations write them, and as the console exporter prints them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from traced import evaluation, lines, request, span

import mulligan
from mulligan.app.traces import are_traces
from mulligan.bank.learn.traces.conventions import call_of, input_and_output, kind_of, messages_of
from mulligan.bank.learn.traces.dialects import in_conventions
from mulligan.bank.learn.traces.otlp import Span, TraceFile
from mulligan.bank.learn.traces.runs import Run, Spans
from mulligan.core.errors import InvalidInput

Q, A = "Write the total of 5 and 7.", "12"
ASKED: dict[str, Any] = {"role": "user", "content": Q}
USED = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"line": 5}'}}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [USED]}
GOT: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": "found 5"}
DONE: dict[str, Any] = {"role": "assistant", "content": A}
TURNS = [("user", "", Q), ("assistant", "look", '{"line": 5}'), ("tool", "look", "found 5"), ("assistant", "", A)]


def ai_sdk() -> list[Any]:
    called = {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {"line": 5}}
    got = {**called, "type": "tool-result", "output": {"type": "text", "value": "found 5"}}
    asked = {"role": "user", "content": [{"type": "text", "text": Q}]}
    again = [asked, {"role": "assistant", "content": [called]}, {"role": "tool", "content": [got]}]
    step = {"ai.operationId": "ai.streamText.doStream", "gen_ai.system": "openai", "gen_ai.request.model": "m"}
    tool = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "ai.toolCall.id": "c1"}
    return [
        span(1, {"ai.operationId": "ai.streamText", "ai.prompt": json.dumps({"prompt": Q}), "ai.response.text": A}),
        span(
            2,
            {
                **step,
                "ai.prompt.messages": json.dumps([asked]),
                "ai.response.toolCalls": json.dumps(
                    [{"toolCallId": "c1", "toolName": "look", "args": '{"line": 5}', "toolCallType": "function"}]
                ),
            },
            parent=1,
        ),
        span(3, {**tool, "ai.toolCall.args": '{"line":5}', "ai.toolCall.result": '"found 5"'}, parent=1, at=1),
        span(4, {**step, "ai.prompt.messages": json.dumps(again), "ai.response.text": A}, parent=1, at=2),
    ]


def ai_sdk_object() -> list[Any]:
    outer = {
        "ai.operationId": "ai.generateObject",
        "ai.prompt": json.dumps({"system": "You bill.", "messages": [ASKED]}),
    }
    return [span(1, {**outer, "ai.response.object": '{"total":12}'})]


def of_io(kind: str, kinds: tuple[str, str, str], given: str, answer: str, quoted: bool) -> list[Any]:
    """An agent, its calls of a model, and a tool, in a dialect with one attribute for what went in and one for what
    came out."""
    word: Callable[[str], str] = json.dumps if quoted else str
    agent, model, tool = (word(one) for one in kinds)
    return [
        span(1, {kind: agent, given: json.dumps({"question": Q}), answer: json.dumps(A)}, name="biller"),
        span(2, {kind: model, given: json.dumps([ASKED]), answer: json.dumps(CALLED)}, parent=1),
        span(3, {kind: tool, given: '{"line": 5}', answer: json.dumps("found 5")}, parent=1, at=1, name="look"),
        span(
            4,
            {
                kind: model,
                given: json.dumps({"messages": [ASKED, CALLED, GOT], "model": "m"}),
                answer: json.dumps({"choices": [{"index": 0, "message": DONE}]}),
            },
            parent=1,
            at=2,
        ),
    ]


def langfuse() -> list[Any]:
    return of_io(
        "langfuse.observation.type",
        ("agent", "generation", "tool"),
        "langfuse.observation.input",
        "langfuse.observation.output",
        False,
    )


def mlflow() -> list[Any]:
    kinds = ("AGENT", "CHAT_MODEL", "TOOL")
    return of_io("mlflow.spanType", kinds, "mlflow.spanInputs", "mlflow.spanOutputs", True)


def langsmith() -> list[Any]:
    return of_io("langsmith.span.kind", ("chain", "llm", "tool"), "gen_ai.prompt", "gen_ai.completion", False)


def langsmith_of_langchain() -> list[Any]:
    def message(kind: str, **more: Any) -> dict[str, Any]:
        return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": more}

    asked = message("HumanMessage", content=Q, type="human")
    called = {"id": "c1", "name": "look", "args": {"line": 5}}
    looked = message("AIMessage", content="", type="ai", tool_calls=[called])
    got = message("ToolMessage", content="found 5", type="tool", tool_call_id="c1", name="look")
    done = {"generations": [[{"text": A, "message": message("AIMessage", content=A, type="ai")}]]}
    about = {"langsmith.span.kind": "llm", "gen_ai.prompt": json.dumps({"messages": [[asked, looked, got]]})}
    return [span(1, {**about, "gen_ai.completion": json.dumps(done)})]


def traceloop() -> list[Any]:
    inputs = json.dumps({"args": [Q], "kwargs": {}})
    step = {"traceloop.span.kind": "tool", "traceloop.entity.name": "look"}
    step |= {"traceloop.entity.input": '{"line": 5}', "traceloop.entity.output": '"found 5"'}
    whole = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "w", "traceloop.entity.input": inputs}
    called = {"gen_ai.request.model": "m", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": Q}
    called |= {"gen_ai.completion.0.tool_calls.0.name": "look", "gen_ai.completion.0.tool_calls.0.id": "c1"}
    called |= {"gen_ai.completion.0.tool_calls.0.arguments": '{"line": 5}'}
    return [
        span(1, {**whole, "traceloop.entity.output": json.dumps(A)}),
        span(2, called, parent=1),
        span(3, step, parent=1, at=1),
        span(4, {"gen_ai.request.model": "m", "gen_ai.completion.0.content": A}, parent=1, at=2),
    ]


def pydantic_ai() -> list[Any]:
    def said(event: str, **more: Any) -> dict[str, Any]:
        return {"event.name": f"gen_ai.{event}", "gen_ai.message.index": 0, **more}

    asked, looked = said("user.message", **ASKED), said("choice", index=0, message=CALLED)
    got = said("tool.message", content="found 5", role="tool", id="c1", name="look")
    history = [asked, said("assistant.message", **CALLED), got]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    tool = {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1", "tool_arguments": '{"line":5}'}
    done = said("choice", index=0, message=DONE)
    agent = {"agent_name": "biller", "final_result": A}
    all_said = json.dumps([*history, said("assistant.message", **DONE)])
    return [
        span(1, {**agent, "all_messages_events": all_said}),
        span(2, {**chat, "events": json.dumps([asked, looked])}, parent=1),
        span(3, {**tool, "tool_response": "found 5"}, parent=1, at=1),
        span(4, {**chat, "events": json.dumps([*history, done])}, parent=1, at=2),
    ]


def logfire() -> list[Any]:
    about = {"gen_ai.request.model": "m", "logfire.msg_template": "Chat Completion with {request_data[model]!r}"}
    return [
        span(1, {"logfire.msg": "answer"}),
        span(
            2,
            {
                **about,
                "request_data": json.dumps({"messages": [ASKED], "model": "m"}),
                "response_data": json.dumps({"message": CALLED, "usage": None}),
            },
            parent=1,
        ),
        span(
            3,
            {
                **about,
                "request_data": json.dumps({"messages": [ASKED, CALLED, GOT], "stream": True}),
                "response_data": json.dumps({"combined_chunk_content": A, "chunk_count": 2}),
            },
            parent=1,
            at=2,
        ),
    ]


def logfire_of_anthropic() -> list[Any]:
    used = {"type": "tool_use", "id": "c1", "name": "look", "input": {"line": 5}}
    got = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "found 5"}]}
    messages = [ASKED, {"role": "assistant", "content": [used]}, {"role": "user", "content": [got]}]
    asked = json.dumps({"messages": messages, "model": "claude", "max_tokens": 9})
    return [span(1, {"request_data": asked, "response_data": json.dumps({"message": DONE})})]


def google_adk() -> list[Any]:
    asked = {"role": "user", "parts": [{"text": Q}]}
    called = {"role": "model", "parts": [{"function_call": {"id": "c1", "name": "look", "args": {"line": 5}}}]}
    response = {"id": "c1", "name": "look", "response": {"result": "found 5"}}
    again = [asked, called, {"role": "user", "parts": [{"function_response": response}]}]
    prefix = "gcp.vertex.agent."
    model = {"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "m", f"{prefix}session_id": "s"}

    def step(contents: list[Any], content: Any) -> dict[str, Any]:
        request: dict[str, Any] = {"model": "m", "config": {}, "contents": contents}
        answer = {"content": content, "partial": False}
        return {**model, f"{prefix}llm_request": json.dumps(request), f"{prefix}llm_response": json.dumps(answer)}

    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
    tool |= {f"{prefix}llm_request": "{}", f"{prefix}llm_response": "{}"}
    tool |= {f"{prefix}tool_call_args": '{"line": 5}', f"{prefix}tool_response": '{"result": "found 5"}'}
    return [
        span(1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "biller"}),
        span(2, step([asked], called), parent=1),
        span(3, tool, parent=1, at=1),
        span(4, step(again, {"role": "model", "parts": [{"text": A}]}), parent=1, at=2),
    ]


FULL = (
    google_adk,
    ai_sdk,
    langfuse,
    mlflow,
    langsmith,
    langsmith_of_langchain,
    traceloop,
    pydantic_ai,
    logfire,
    logfire_of_anthropic,
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("mulligan.toml").write_text('[memory]\nembedder = "none"\n')


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


def runs(text: str) -> list[Run]:
    Path("t.txt").write_text(text)
    with Spans() as spans:
        for one in TraceFile("t.txt"):
            spans.add(one)
        return list(spans.runs())


@each_row("dialect", FULL)
def test_a_run_reads_the_same_in_every_dialect(dialect: Callable[[], list[Any]]) -> None:
    (run,) = runs(lines(request(*dialect())))
    assert not run.error
    assert [(turn.role, turn.tool, turn.text) for turn in run.turns] == TURNS


def test_an_object_that_a_model_answered_is_its_answer() -> None:
    (run,) = runs(lines(request(*ai_sdk_object())))
    assert [(turn.role, turn.text) for turn in run.turns] == [("user", Q), ("assistant", '{"total":12}')]


@pytest.mark.parametrize("dialect", FULL, ids=lambda one: one.__name__)
async def test_the_judge_of_a_run_teaches_in_every_dialect(dialect: Callable[[], list[Any]]) -> None:
    first, *rest = dialect()
    judged = {**first, "events": [*first["events"], evaluation("incorrect", "no currency behind the total")]}
    write("t.jsonl", lines(request(judged, *rest)))
    learned = await mulligan.learn_traces("t.jsonl", bank="b")
    assert learned.runs == {"new": 1}
    assert len(learned.lessons) == 1


def test_an_agent_has_its_name_and_a_step_has_none() -> None:
    names = {one.__name__: runs(lines(request(*one())))[0].agent for one in FULL}
    assert {name for name, agent in names.items() if agent == "biller"} == {
        "google_adk",
        "langfuse",
        "mlflow",
        "pydantic_ai",
    }
    assert set(names.values()) == {"biller", ""}


def test_an_observation_of_langfuse_that_failed_is_a_failure() -> None:
    about = {"langfuse.observation.type": "agent", "langfuse.observation.input": json.dumps(Q)}
    failed = {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "no price list"}
    (run,) = runs(lines(request(span(1, {**about, **failed, "langfuse.observation.output": json.dumps(A)}))))
    assert (run.verdict.success, run.turns[-1].text) == (False, "no price list")


FIELDS = (
    *("messages", "role", "content", "parts", "tool_calls", "choices", "message", "generations", "kwargs", "lc"),
    *("type", "text", "function", "name", "arguments", "inputs", "event.name", "prompt", "system"),
)
KEYS = (
    *("ai.operationId", "ai.prompt", "ai.response.toolCalls", "langfuse.observation.type", "traceloop.span.kind"),
    *("langfuse.observation.input", "mlflow.spanType", "mlflow.spanOutputs", "request_data", "response_data"),
    *("all_messages_events", "events", "gen_ai.prompt", "langsmith.span.kind", "traceloop.entity.input"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
VALUES = JSON | JSON.map(json.dumps) | st.sampled_from(["agent", "tool", "llm", "ai.toolCall", "ai.generateText"])


@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5))
def test_a_span_of_any_content_is_read_or_refused(attributes: dict[str, Any]) -> None:
    one = in_conventions(Span("1" * 32, "1" * 16, attributes=attributes, at="t:1, span 1"))
    assert all(one.attributes[key] == value for key, value in attributes.items())
    kind_of(one)
    with contextlib.suppress(InvalidInput):
        messages_of(one)
        input_and_output(one)
        call_of(one)


# --- the console exporter --------------------------------------------------------------------------------------------


def printed() -> str:
    """What the exporter of OpenTelemetry's SDK prints of a run, among what the program itself prints."""
    with Path("console.txt").open("w") as out:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        tracer = provider.get_tracer("t")
        with tracer.start_as_current_span("answer", attributes={"gen_ai.operation.name": "invoke_agent"}):
            about = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASKED])}
            with tracer.start_as_current_span("chat", attributes=about) as one:
                one.set_attribute("gen_ai.output.messages", json.dumps([DONE]))
                label = {"gen_ai.evaluation.score.label": "incorrect", "gen_ai.evaluation.explanation": "no currency"}
                one.add_event("gen_ai.evaluation.result", label)
            out.write("12 is the answer\n")
    return Path("console.txt").read_text()


def test_what_the_console_exporter_prints_is_read() -> None:
    (run,) = runs(printed())
    assert [(turn.role, turn.text) for turn in run.turns] == [("user", Q), ("assistant", A)]
    assert (run.verdict.success, run.verdict.why) == (False, "no currency")
    assert are_traces("t.txt")
    assert len(run.spans) == 2


def test_a_span_that_is_cut_off_is_left_for_the_next_time() -> None:
    Path("t.txt").write_text(printed()[:-20])
    file = TraceFile("t.txt")
    assert (len(list(file)), file.torn) == (1, True)


def test_a_printed_span_that_cannot_be_read_is_named_by_its_line() -> None:
    Path("t.txt").write_text(printed().replace('"trace_id": "0x', '"trace_id": "0xZ'))
    with pytest.raises(InvalidInput, match=r"t\.txt:1: traceId must be 32"):
        list(TraceFile("t.txt"))
