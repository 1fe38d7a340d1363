"""Traces of any shape, in any order, in any number: the same runs, each once, and never any error but the documented."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traced import agent, chat, evaluation, lines, request, result, said, span, value

import mulligan
from mulligan.app.traces import TraceRun
from mulligan.bank.learn.traces.otlp import TraceFile, looks_like_traces
from mulligan.bank.learn.traces.runs import Run, Spans
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.lessons import Selection


def story(n: int, steps: int, *, nested: bool = False, padding: str = "") -> list[dict[str, Any]]:
    """The spans of one trace: a request around an agent that asks a model a few times, and perhaps another agent."""
    at, task = n * 100.0, said("user", f"Write the total of {n}.{padding}")
    spans = [span(1, trace=n, at=at), agent(2, trace=n, parent=1, at=at + 0.1)]
    before: list[dict[str, Any]] = [task]
    for k in range(steps):
        call = said("assistant", {"type": "tool_call", "id": f"c{k}", "name": "look", "arguments": {"line": k}})
        spans.append(chat(10 + k, before, [call], trace=n, parent=2, at=at + 1 + k))
        before = [*before, call, said("tool", result(f"c{k}", f"line {k}"))]
    why = evaluation("incorrect", f"no currency behind {n}")
    spans.append(chat(90, before, [said("assistant", str(n))], trace=n, parent=2, at=at + 50, events=[why]))
    if nested:
        spans += [agent(60, "clerk", trace=n, parent=2, at=at + 40)]
        spans += [chat(61, [said("user", f"Find {n}.")], [said("assistant", "here")], trace=n, parent=60, at=at + 41)]
    return spans


def facts_of(runs: list[Run]) -> set[tuple[Any, ...]]:
    return {(run.agent, run.turns, run.verdict, frozenset(run.spans)) for run in runs}


def runs_of(requests: list[Any]) -> list[Run]:
    with Spans() as spans:
        for one in _read(lines(*requests).encode()):
            spans.add(one)
        return list(spans.runs())


def _read(raw: bytes) -> Iterator[Any]:
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.seek(0)
        yield from TraceFile("", "t").read(file)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_order_and_requests_do_not_matter(shapes: list[tuple[int, bool]], random: random.Random) -> None:
    traces = [story(n, steps, nested=nested) for n, (steps, nested) in enumerate(shapes, 1)]
    spans = [one for trace in traces for one in trace]
    expected = facts_of(runs_of([request(*spans)]))
    assert len(expected) == len(shapes) + sum(nested for _, nested in shapes)
    mixed = [*spans, *random.choices(spans, k=3)]
    random.shuffle(mixed)
    requests: list[Any] = []
    while mixed:
        size = random.randint(1, len(mixed))
        requests.append(request(*mixed[:size]))
        mixed = mixed[size:]
    found = runs_of(requests)
    assert facts_of(found) == expected
    assert sorted(span for run in found for span in run.spans) == sorted(
        f"{one['traceId']}/{one['spanId']}" for one in spans if one["spanId"] != f"{1:016x}"
    )


PLAIN: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3), max_leaves=6
)
WORDS = st.sampled_from(
    [
        *(
            "role",
            "user",
            "assistant",
            "tool",
            "system",
            "text",
            "tool_call",
            "tool_call_response",
            "chat",
            "LLM",
            "fail",
        ),
        *(
            "invoke_agent",
            "execute_tool",
            "AGENT",
            "TOOL",
            "EVALUATOR",
            "a",
            "[",
            "{",
            '{"role": "user"',
            "7",
            "\ud800",
        ),
    ]
)
PARTS = st.dictionaries(
    st.sampled_from(["type", "content", "id", "name", "arguments", "response", "text"]), WORDS | VALUES, max_size=4
)
MESSAGES = st.lists(
    st.dictionaries(
        st.sampled_from(["role", "parts", "content", "tool_calls", "tool_call_id"]),
        WORDS | st.lists(PARTS, max_size=3) | VALUES,
        max_size=4,
    ),
    max_size=3,
)
KEYS = st.sampled_from(
    [
        *("gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.input.messages"),
        *("gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.name", "gen_ai.tool.call.id"),
        *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "openinference.span.kind", "input.value"),
        *("output.value", "gen_ai.prompt.0.role", "gen_ai.prompt.0.content", "gen_ai.completion.0.tool_calls.0.name"),
        *("llm.input_messages.0.message.role", "llm.input_messages.0.message.contents.1.message_content.text"),
        *("llm.input_messages.0", "llm.input_messages.x.message.role", "annotations.0.annotation.label"),
        *("gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value", "pydantic_ai.all_messages", "content"),
        *("gen_ai.event.content", "message", "gen_ai.response.id", "exception.message", "eval.x.score"),
    ]
)
ATTRIBUTES = st.dictionaries(KEYS, WORDS | MESSAGES | MESSAGES.map(json.dumps) | VALUES, max_size=6)
EVENTS = st.sampled_from(
    [
        *("gen_ai.user.message", "gen_ai.choice", "gen_ai.tool.message", "gen_ai.evaluation.result", "exception"),
        *("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "other"),
    ]
)


def _pairs(attributes: dict[str, Any]) -> list[Any]:
    return [{"key": key, "value": value(one)} for key, one in attributes.items()]


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    return {"name": draw(EVENTS), "attributes": _pairs(draw(ATTRIBUTES))}


@st.composite
def any_spans(draw: st.DrawFn) -> dict[str, Any]:
    parent = draw(st.integers(1, 6) | st.none())
    return span(
        draw(st.integers(1, 6)),
        draw(ATTRIBUTES),
        parent=parent or "",
        trace=draw(st.integers(1, 2)),
        events=draw(st.lists(events(), max_size=3)),
        error=draw(st.none() | st.just("it broke")),
    )


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    about = {"traceId": f"{1:032x}", "spanId": f"{draw(st.integers(1, 6)):016x}"}
    said = {"attributes": _pairs(draw(ATTRIBUTES)), "body": value(draw(MESSAGES | VALUES))}
    return {"eventName": draw(EVENTS), **about, **said}


@st.composite
def any_requests(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(st.lists(records(), max_size=3))
    spans = draw(st.lists(any_spans(), max_size=8))
    return {**request(*spans), "resourceLogs": [{"scopeLogs": [{"logRecords": rows}]}]}


def _cut(at: int, between: str) -> bytes:
    text = lines(request(*story(1, 1)))
    return (text[:at] + between + text[at:]).encode("utf-8", "replace")


def _torn(raw: bytes) -> bytes:
    return gzip.compress(raw)[:-3]


@pytest.mark.slow
@given(st.lists(any_requests(), min_size=1, max_size=3))
def test_spans_of_any_content_give_runs(requests: list[Any]) -> None:
    for run in runs_of(requests):
        assert run.spans
        assert not run.error or run.error.startswith("t:")


NAMES = ["resourceSpans", "scopeSpans", "spans", "resource", "attributes", "key", "value", "stringValue", "traceId"]
JSON: st.SearchStrategy[Any] = st.recursive(
    PLAIN,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(NAMES), v, max_size=4),
    max_leaves=12,
)


@given(
    JSON.map(json.dumps).map(str.encode)
    | st.binary(max_size=60)
    | st.binary(max_size=60).map(_torn)
    | st.builds(_cut, st.integers(0, 2000), st.text(max_size=2))
)
def test_any_bytes_give_runs_or_the_documented_error(raw: bytes) -> None:
    looks_like_traces(raw)
    with Spans() as spans, suppress(InvalidInput):
        for one in _read(raw):
            spans.add(one)
        list(spans.runs())


# --- killed, and gone on ---------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    return tmp_path


class Stopped(BaseException):
    """Ends learning from outside, as a signal does."""


async def learned_in(bank: str) -> list[str]:
    async with mulligan.Bank.open(bank) as opened:
        return sorted(lesson.content for lesson in await opened.list(Selection(("active",), limit=None)))


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("after", [1, 3, 5])
async def test_what_was_stopped_goes_on_and_each_span_is_learned_from_once(here: Path, after: int) -> None:
    traces = [request(*story(n, 1)) for n in range(1, 7)]
    (here / "t.jsonl").write_text(lines(*traces[:4]))
    left = after

    def stop(run: TraceRun) -> None:
        nonlocal left
        left -= run.state == "new"
        if not left:
            raise Stopped

    while True:  # each time a few more, until nothing stops it
        try:
            done = await mulligan.learn_traces("t.jsonl", bank="killed", progress=stop)
            break
        except Stopped:
            (here / "t.jsonl").write_text(lines(*traces))  # and the file has grown
            left = after
    assert sum(done.runs.values()) == len(traces if after < 4 else traces[:4])
    done = await mulligan.learn_traces("t.jsonl", bank="killed")
    (here / "t.jsonl").write_text(lines(*traces))
    await mulligan.learn_traces("t.jsonl", bank="killed")
    await mulligan.learn_traces("t.jsonl", bank="whole")
    assert await learned_in("killed") == await learned_in("whole")
    assert len(await learned_in("whole")) == 6


LEARN = """
import asyncio, sys, mulligan
async def main():
    done = await mulligan.learn_traces(sys.argv[1], bank="b", dry_run=sys.argv[2] == "dry", progress=told)
    with open("/proc/self/status") as status:  # what getrusage gives counts the process that started this one, too
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(dict(done.runs), done.spans.spans, peak)
def told(run):
    if sys.argv[2] != "dry":
        print(run.task, flush=True)
asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_that_is_killed_learns_nothing_twice(here: Path) -> None:
    (here / "t.jsonl").write_text(lines(*(request(*story(n, 1)) for n in range(1, 41))))
    command = [sys.executable, "-c", LEARN, "t.jsonl", "learn"]
    for n in range(1, 9):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(n):
                process.stdout.readline()
            os.kill(process.pid, signal.SIGKILL)
            process.wait(60)
    done = asyncio.run(mulligan.learn_traces("t.jsonl", bank="b"))
    assert sum(done.runs.values()) == 40
    asyncio.run(mulligan.learn_traces("t.jsonl", bank="other"))
    found = asyncio.run(learned_in("b"))
    assert found == asyncio.run(learned_in("other"))
    assert len(found) == 40


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(here: Path) -> None:
    """The most memory that a process takes for 10 MB and for 100 MB, where spans of one trace lie far apart."""
    peaks: dict[int, int] = {}
    padding = " Here are the lines." + " 12.50 EUR for paper, pens and ink;" * 200
    for size in (10, 100):
        with (here / f"{size}.jsonl").open("w") as file:
            n = 0
            late: list[Any] = []
            while file.tell() < size * 1_000_000:
                n += 1
                *early, last = story(n, 4, padding=padding)
                file.write(lines(request(*early)))
                late.append(last)
                if len(late) == 50:
                    file.write(lines(*map(request, late)))
                    late = []
            file.write(lines(*map(request, late)))
        ran = subprocess.run(
            [sys.executable, "-c", LEARN, f"{size}.jsonl", "dry"],
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        assert f"{{'new': {n}}} {n * 7} " in ran.stdout
        peaks[size] = int(ran.stdout.split()[-1])
    print(peaks)
    assert peaks[100] < peaks[10] + 30_000, peaks


async def test_nothing_but_the_documented_error_leaves_learning(here: Path) -> None:
    for content in (b'{"resourceSpans": [{"scopeSpans": [{"spans": [7]}]}]}', b"{", b'{"resourceSpans"'):
        (here / "t.jsonl").write_bytes(content)
        with pytest.raises(MulliganError):
            await mulligan.learn_traces("t.jsonl")
