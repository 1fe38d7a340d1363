"""Forms that one dialect may have, as its vendor documents them: arguments of Python functions, state of graphs, text blocks.

Sources: langfuse-docs, content/integrations/native/opentelemetry.mdx (03c61f3f); LangSmith's docs,
src/langsmith/trace-with-opentelemetry.mdx (02cc7dec); the packages traceloop-sdk, mlflow, langfuse and logfire.
"""

import json
from typing import Any

import pytest
from each_row import each_row
from traced import evaluation, event, lines, request, span

import mulligan
from mulligan.bank.learn.traces.otlp import TraceFile
from mulligan.bank.learn.traces.runs import Run, Spans

Q, A = "Which of the two invoices is overdue?", "The second."
USER = {"role": "user", "content": Q}
CALLS = [
    {"id": id, "type": "function", "function": {"name": "look", "arguments": json.dumps({"no": number})}}
    for number, id in enumerate("ab", 1)
]
ASKS = {"role": "assistant", "content": None, "tool_calls": CALLS}
ASKED = [("user", "", Q), ("assistant", "look", '{"no": 1}'), ("assistant", "look", '{"no": 2}')]
LOOKED = [*ASKED, ("tool", "look", "paid"), ("tool", "look", "due"), ("assistant", "", A)]
SHORT = [("user", "", Q), ("assistant", "", A)]
BOOKS = [("system", "", "You keep the books."), *SHORT]


def python_function(kind: str, given: str, answer: str, model: str) -> list[Any]:
    """A workflow, a call of a model, and two tools that are Python functions, called by name and by position."""
    return [
        span(1, {kind: "chain", given: json.dumps({"args": [Q], "kwargs": {}}), answer: json.dumps(A)}),
        span(2, {kind: model, given: json.dumps([USER]), answer: json.dumps(ASKS)}, parent=1),
        *(
            span(
                number + 2,
                {kind: "tool", given: json.dumps({"args": [number], "kwargs": {}}), answer: json.dumps(got)},
                parent=1,
                at=number,
                name="look",
            )
            for number, got in ((1, "paid"), (2, {"output": {"type": "tool", "content": "due", "tool_call_id": "b"}}))
        ),
    ]


def langchain(text: str, kind: str) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", kind], "kwargs": {"content": text, "type": kind}}


def graph(key: str, value: str, given: str, answer: str) -> list[Any]:
    """A graph whose state begins with a pair of a role and a text, and ends with all messages."""
    state: dict[str, Any] = {"inputs": {"messages": [["user", Q]]}, "tags": [], "metadata": {}}
    after = {"outputs": {"messages": [langchain(Q, "human"), langchain(A, "ai")]}}
    return [span(1, {key: value, given: json.dumps(state), answer: json.dumps(after)})]


def around_an_agent() -> list[Any]:
    """A workflow that only calls an agent, and is judged."""
    about = {
        "traceloop.entity.input": json.dumps({"args": [Q], "kwargs": {}}),
        "traceloop.entity.output": json.dumps(A),
    }
    whole = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "billing", **about}
    return [
        span(1, whole, events=[evaluation("incorrect", "it is the first")]),
        span(2, {"traceloop.span.kind": "agent", "traceloop.entity.name": "clerk", **about}, parent=1),
    ]


def untyped() -> list[Any]:
    """Langfuse's attributes on plain spans: without a type, one with a model is a generation, any other a span."""
    asked = {"langfuse.observation.input": json.dumps([USER]), "langfuse.observation.output": A}
    return [
        span(1, {"langfuse.trace.input": Q, "langfuse.trace.output": A}),
        span(2, {**asked, "langfuse.observation.model.name": "m"}, parent=1),
    ]


def responses() -> list[Any]:
    asked = {"model": "m", "instructions": "You keep the books.", "input": Q}
    said = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]}]}
    about = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps(asked)}
    return [span(1, {**about, "mlflow.spanOutputs": json.dumps(said)})]


def blocks() -> list[Any]:
    system = [{"type": "text", "text": "You keep the books."}]
    about = {"request_data": json.dumps({"system": system, "messages": [USER], "model": "m", "max_tokens": 9})}
    return [span(1, {**about, "response_data": json.dumps({"message": {"role": "assistant", "content": A}})})]


def failing_tool() -> list[Any]:
    failed = event("exception", {"exception.type": "KeyError", "exception.message": "1"})
    step = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": json.dumps([USER])}
    calls = [{"toolCallId": "a", "toolName": "look", "input": '{"no": 1}'}]
    tool = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "look", "ai.toolCall.id": "a"}
    return [
        span(1, {"ai.operationId": "ai.generateText", "ai.prompt": json.dumps({"prompt": Q}), "ai.response.text": A}),
        span(2, {**step, "ai.response.toolCalls": json.dumps(calls)}, parent=1),
        span(3, {**tool, "ai.toolCall.args": '{"no": 1}'}, parent=1, at=1, error="no such invoice", events=[failed]),
    ]


TRACELOOP = ("traceloop.span.kind", "traceloop.entity.input", "traceloop.entity.output")
LANGFUSE = ("langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output")
FORMS: dict[str, tuple[list[Any], list[tuple[str, str, str]]]] = {
    "arguments of a function, langfuse": (python_function(*LANGFUSE, "generation"), LOOKED),
    "arguments of a function, langsmith": (
        python_function("langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion", "llm"),
        LOOKED,
    ),
    "a graph, traceloop": (graph(TRACELOOP[0], "workflow", *TRACELOOP[1:]), SHORT),
    "a graph, langsmith": (graph("langsmith.span.kind", "chain", "gen_ai.prompt", "gen_ai.completion"), SHORT),
    "a workflow around an agent": (around_an_agent(), SHORT),
    "no type": (untyped(), SHORT),
    "instructions beside the input": (responses(), BOOKS),
    "a system message in blocks": (blocks(), BOOKS),
    "a tool that failed": (failing_tool(), [*ASKED[:2], ("tool", "look", "KeyError: 1"), ("assistant", "", A)]),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')


def runs(text: str) -> list[Run]:
    with open("t.txt", "w") as file:
        file.write(text)
    with Spans() as spans:
        for one in TraceFile("t.txt"):
            spans.add(one)
        return list(spans.runs())


@each_row("form", FORMS)
def test_each_form_is_one_run_with_its_turns(form: str) -> None:
    spans, turns = FORMS[form]
    (run,) = runs(lines(request(*spans)))
    assert not run.error
    assert [(turn.role, turn.tool, turn.text) for turn in run.turns] == turns


async def test_the_judge_of_a_workflow_judges_the_agent_in_it() -> None:
    (run,) = runs(lines(request(*around_an_agent())))
    assert (run.agent, run.verdict.success, run.verdict.why) == ("clerk", False, "it is the first")
    learned = await mulligan.learn_traces("t.txt", bank="b")
    assert (dict(learned.runs), len(learned.lessons)) == ({"new": 1}, 1)


@pytest.mark.parametrize("indent", [4, None])
def test_the_console_exporter_may_print_after_other_output_and_on_one_line(indent: int | None) -> None:
    about = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([USER])}
    printed: dict[str, Any] = {
        "name": "chat",
        "context": {"trace_id": f"0x{1:032x}", "span_id": f"0x{1:016x}", "trace_state": "[]"},
        "parent_id": None,
        "start_time": "2026-11-01T10:00:00.000000Z",
        "end_time": "2026-11-01T10:00:01.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {**about, "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": A}])},
        "events": [],
        "links": [],
        "resource": {"attributes": {}, "schema_url": ""},
    }
    (run,) = runs(f"INFO: started {{}}\n{json.dumps(printed, indent=indent)}\n{A}\n")
    assert [(turn.role, turn.tool, turn.text) for turn in run.turns] == SHORT
