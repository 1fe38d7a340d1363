"""Traces from files: every convention, who did what for which task, how it was judged, and what cannot be read."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import pytest
from each_row import each_row
from traced import agent, call, chat, evaluation, event, lines, logs, record, request, result, said, span

import mulligan
from mulligan.app.traces import TraceRun
from mulligan.bank.learn.traces.conventions import Rule
from mulligan.bank.learn.traces.otlp import TraceFile
from mulligan.bank.learn.traces.runs import Run, Spans
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.records import Episode, Feedback

ASK = said("user", "Write the total of 5 and 7.")
LOOK = said("assistant", "I look.", call("c1", "look", {"line": 5}))
FOUND = said("tool", result("c1", {"found": 5}))
DONE = said("assistant", "12")
TURNS = [
    ("user", "", "Write the total of 5 and 7."),
    ("assistant", "", "I look."),
    ("assistant", "look", '{"line": 5}'),
    ("tool", "look", '{"found": 5}'),
    ("assistant", "", "12"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    return tmp_path


def runs(*requests: Mapping[str, Any], rules: tuple[Rule, ...] = ()) -> list[Run]:
    Path("t.jsonl").write_text(lines(*requests))
    with Spans(rules) as spans:
        for one in TraceFile("t.jsonl"):
            spans.add(one)
        return list(spans.runs())


def turns(run: Run) -> list[tuple[str, str, str]]:
    return [(turn.role, turn.tool, turn.text) for turn in run.turns]


# --- conventions -----------------------------------------------------------------------------------------------------

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
USED = {**TOOL, "gen_ai.tool.call.arguments": '{"line":5}', "gen_ai.tool.call.result": '{"found": 5}'}
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"line": 5}'}}
CHAT = {"gen_ai.operation.name": "chat"}


def messages_of_today() -> list[Any]:
    first = chat(2, [ASK], [LOOK], parent=1)
    return [agent(1), first, span(3, USED, parent=1, at=1), chat(4, [ASK, LOOK, FOUND], [DONE], parent=1, at=2)]


def structured() -> list[Any]:
    """Attributes that hold lists and tables, not JSON texts."""
    one = span(1, {**CHAT, "gen_ai.input.messages": [ASK, LOOK, FOUND], "gen_ai.output.messages": [DONE]})
    return [one]


def events_in_spans() -> list[Any]:
    asked = event("gen_ai.user.message", {"content": "Write the total of 5 and 7."}, 0)
    looked = {"content": "I look.", "tool_calls": json.dumps([OPENAI_CALL])}
    chosen = event("gen_ai.choice", {"index": 0, "message": json.dumps(looked | {"tool_calls": [OPENAI_CALL]})}, 1)
    again = [asked, event("gen_ai.assistant.message", looked, 0.1)]
    again.append(event("gen_ai.tool.message", {"id": "c1", "content": '{"found": 5}'}, 0.2))
    again.append(event("gen_ai.choice", {"index": 0, "message": json.dumps({"content": "12"})}, 3))
    return [span(1, CHAT, events=[asked, chosen]), span(2, CHAT, events=again, at=2)]


def numbered_attributes() -> list[Any]:
    given = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Write the total of 5 and 7.",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.content": "I look.",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "look",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"line": 5}',
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.content": '{"found": 5}',
        "gen_ai.prompt.2.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "12",
    }
    return [span(1, {"gen_ai.request.model": "m", **given})]


def openinference() -> list[Any]:
    llm = {"openinference.span.kind": "LLM"}
    asked = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "Write the total of 5 and 7.",
    }
    calls = "message.tool_calls.0.tool_call"

    def looked(prefix: str) -> dict[str, str]:
        return {
            f"{prefix}.message.role": "assistant",
            f"{prefix}.message.content": "I look.",
            f"{prefix}.{calls}.id": "c1",
            f"{prefix}.{calls}.function.name": "look",
            f"{prefix}.{calls}.function.arguments": '{"line": 5}',
        }

    got = {
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": '{"found": 5}',
        "llm.input_messages.2.message.tool_call_id": "c1",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "12",
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"line": 5}'}
    return [
        span(1, {"openinference.span.kind": "AGENT", "agent.name": "biller", "session.id": "s1"}),
        span(2, llm | asked | looked("llm.output_messages.0"), parent=1),
        span(3, {**tool, "output.value": '{"found": 5}'}, parent=1, at=1),
        span(4, llm | asked | looked("llm.input_messages.1") | got, parent=1, at=2),
    ]


def tools_alone() -> list[Any]:
    """A model whose spans say only what it said, and a tool whose call has no id."""
    first = chat(
        2, [ASK], [said("assistant", "I look.", {"type": "tool_call", "name": "look", "arguments": {"line": 5}})]
    )
    used = {key: one for key, one in USED.items() if key != "gen_ai.tool.call.id"}
    last = span(4, {**CHAT, "gen_ai.output.messages": json.dumps([DONE])}, at=3)
    return [first, span(3, used, at=1), last]


@each_row(
    "spans",
    [messages_of_today(), structured(), events_in_spans(), numbered_attributes(), openinference(), tools_alone()],
    ids=["today", "structured", "events", "numbered", "openinference", "tools"],
)
def test_every_convention_gives_the_same_turns(spans: list[Any]) -> None:
    (run,) = runs(request(*spans))
    assert run.error == ""
    assert turns(run) == TURNS
    (reversed_,) = runs(*(request(one) for one in reversed(spans)))
    assert turns(reversed_) == TURNS


def test_events_in_a_log_belong_to_their_spans() -> None:
    about: dict[str, Any] = {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": f"{1:016x}"}
    answer = {"index": 0, "message": {"role": "assistant", "content": "12"}}
    looked = {"content": "I look.", "tool_calls": [OPENAI_CALL]}
    rows = [
        record("gen_ai.user.message", {"content": "Write the total of 5 and 7."}, **about),
        record("gen_ai.assistant.message", looked, **about),
        record("gen_ai.tool.message", {"id": "c1", "content": '{"found": 5}'}, **about),
        record("gen_ai.choice", answer, **about),
        record("gen_ai.evaluation.result", None, {"gen_ai.response.id": "r1", "gen_ai.evaluation.score.label": "fail"}),
        record("a.click"),
    ]
    (run,) = runs(logs(*rows), request(span(1, {**CHAT, "gen_ai.response.id": "r1"})))
    assert turns(run) == TURNS
    assert run.verdict.success is False
    details = {"gen_ai.input.messages": [ASK, LOOK, FOUND], "gen_ai.output.messages": [DONE]}
    one = record("gen_ai.client.inference.operation.details", None, details, **about)
    (run,) = runs(request(span(1, CHAT)), logs(one))
    assert turns(run) == TURNS


def test_what_no_model_says_the_span_around_it_does() -> None:
    plain = {"openinference.span.kind": "AGENT", "input.value": "The total?", "output.value": "12"}
    (run,) = runs(request(span(1, plain), span(2, {"openinference.span.kind": "LLM"}, parent=1)))
    assert turns(run) == [("user", "", "The total?"), ("assistant", "", "12")]
    chain = {"openinference.span.kind": "CHAIN", "input.value": "The total?", "output.value": "12"}
    (run,) = runs(request(span(1, chain), span(2, {"openinference.span.kind": "LLM"}, parent=1)))
    assert turns(run) == [("user", "", "The total?"), ("assistant", "", "12")]


def test_a_tool_that_failed_says_why_and_images_are_named() -> None:
    shown = said(
        "user", "What is it?", {"type": "blob", "modality": "image", "content": "aGk="}, {"type": "uri", "uri": "u"}
    )
    raised = event("exception", {"exception.type": "ValueError", "exception.message": "no line 5"})
    broken = span(3, TOOL, parent=1, at=1, error="x", events=[raised])
    (run,) = runs(request(agent(1, error="stopped"), chat(2, [shown], [LOOK], parent=1), broken))
    assert turns(run)[:3] == [("user", "", "What is it?"), ("user", "", "[image]"), ("user", "", "[uri]")]
    assert turns(run)[-2:] == [("tool", "look", "ValueError: no line 5"), ("tool", "", "stopped")]
    assert [turn.failed for turn in run.turns][-2:] == [True, True]


# --- who did what ----------------------------------------------------------------------------------------------------


def test_agents_of_one_trace_have_runs_of_their_own() -> None:
    spans = [
        agent(1, "boss"),
        chat(2, [said("user", "Plan a trip.")], [said("assistant", call("c1", "delegate", {}))], parent=1),
        span(3, {**TOOL, "gen_ai.tool.name": "delegate"}, parent=1, at=1),
        agent(4, "clerk", parent=3, at=1.1),
        span(5, parent=4, at=1.2),
        chat(6, [said("user", "Find a train.")], [said("assistant", "At noon.")], parent=5, at=1.3),
        chat(7, [said("user", "Plan a trip.")], [said("assistant", "Take the train.")], parent=1, at=3),
    ]
    boss, clerk = runs(request(*spans))
    assert (boss.agent, clerk.agent) == ("boss", "clerk")
    assert turns(clerk) == [("user", "", "Find a train."), ("assistant", "", "At noon.")]
    assert [text for _, _, text in turns(boss)][-1] == "Take the train."
    assert len(boss.spans) + len(clerk.spans) == 6


def test_the_steps_of_a_graph_are_one_run() -> None:
    """As OpenInference's instrumentation of LangGraph has them: each call of the model in an AGENT span of its own."""
    step, tool = {"openinference.span.kind": "AGENT", "output.value": "{}"}, {"openinference.span.kind": "CHAIN"}
    used = {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"line": 5}', "output.value": "{}"}
    spans = [
        span(1, {"openinference.span.kind": "CHAIN", "input.value": '{"messages": []}', "session.id": "s"}),
        span(2, step, parent=1, at=1),
        chat(3, [ASK], [LOOK], parent=2, at=2),
        span(4, tool, parent=1, at=3),
        span(5, used, parent=4, at=4),
        span(6, step, parent=1, at=5),
        chat(7, [ASK, LOOK, FOUND], [DONE], parent=6, at=6),
    ]
    (run,) = runs(request(*spans))
    assert turns(run) == TURNS
    (run,) = runs(request(span(1, {**step, "input.value": "The total?", "output.value": "12"})))
    assert turns(run) == [("user", "", "The total?"), ("assistant", "", "12")]


def test_a_conversation_goes_on_in_another_trace() -> None:
    about = {"gen_ai.conversation.id": "talk"}
    more = said("user", "And of 1 and 2?")
    spans = [
        chat(1, [ASK], [said("assistant", "12")], about, trace=1),
        chat(2, [ASK, said("assistant", "12"), more], [LOOK], about, trace=2, at=10),
        chat(3, [ASK, said("assistant", "12"), more, LOOK, FOUND], [said("assistant", "3")], about, trace=3, at=20),
        chat(
            4, [said("user", "Else?")], [said("assistant", "No.")], {"gen_ai.conversation.id": "other"}, trace=4, at=5
        ),
    ]
    first, second, other = runs(*map(request, spans))
    assert [text for _, _, text in turns(first)] == ["Write the total of 5 and 7.", "12"]
    assert (turns(second)[0][2], turns(second)[-1][2]) == ("And of 1 and 2?", "3")
    assert len(second.spans) == 2
    assert other.conversation == "other"


def test_calls_that_are_alone_in_their_traces_are_one_run_where_each_begins_as_the_one_before() -> None:
    spans = [chat(1, [ASK], [LOOK], trace=1), chat(2, [ASK, LOOK, FOUND], [DONE], trace=2, at=5)]
    again = [chat(3, [ASK], [said("assistant", "13")], trace=3, at=9)]
    one, other = runs(request(*spans, *again))
    assert turns(one) == TURNS
    assert [text for _, _, text in turns(other)] == ["Write the total of 5 and 7.", "13"]


def test_what_an_evaluator_asks_a_model_is_no_run() -> None:
    judge = span(5, {"openinference.span.kind": "EVALUATOR"}, parent=9, events=[evaluation("fail", "too short")], at=5)
    asked = chat(6, [said("user", "Is it right?")], [said("assistant", "no")], parent=5, at=6)
    (run,) = runs(request(span(9), agent(1, parent=9), chat(2, [ASK], [DONE], parent=1), judge, asked))
    assert turns(run) == [TURNS[0], TURNS[-1]]
    assert (run.verdict.success, run.verdict.why) == (False, "too short")


# --- verdicts --------------------------------------------------------------------------------------------------------


@each_row(
    ("found", "rule", "success", "source"),
    [
        ({"events": [evaluation("pass", "fine")]}, None, True, "evaluation correctness"),
        ({"events": [evaluation("Incorrect", "no")]}, None, False, "evaluation correctness"),
        ({"events": [evaluation("pass"), evaluation("fail", name="tone")]}, None, False, "evaluation tone"),
        (
            {"events": [evaluation("pass"), evaluation("fail", name="tone")]},
            "correctness",
            True,
            "evaluation correctness",
        ),
        ({"events": [evaluation(score=0.4)]}, None, None, "correctness 0.4"),
        ({"events": [evaluation(score=0.4)]}, "correctness>=0.4", True, "evaluation correctness"),
        ({"events": [evaluation(score=0.4)]}, "correctness <= 0.3", False, "evaluation correctness"),
        ({"events": [evaluation("hallucinated", score=1)]}, None, None, "correctness hallucinated"),
        ({"error": "boom"}, None, False, "status"),
        ({"error": "boom", "events": [evaluation("pass")]}, None, True, "evaluation correctness"),
        ({"status": {"code": 1}}, None, None, ""),
        ({}, None, None, ""),
    ],
)
def test_who_says_whether_it_was_done(found: dict[str, Any], rule: str | None, success: Any, source: str) -> None:
    rules = (Rule.parse(rule),) if rule else ()
    (run,) = runs(request(agent(1, **found), chat(2, [ASK], [DONE], parent=1)), rules=rules)
    assert (run.verdict.success, run.verdict.source) == (success, source)


def test_annotations_of_a_span_or_of_its_trace_say_it() -> None:
    for begin in ("annotations.0.annotation", "trace.evaluations.3.evaluation", "eval.correctness"):
        has = {f"{begin}.label": "incorrect", f"{begin}.explanation": "no currency"}
        root = span(9, {"openinference.span.kind": "CHAIN", **has, f"{begin}.name": "correctness"})
        (run,) = runs(request(root, agent(1, parent=9), chat(2, [ASK], [DONE], parent=1)))
        assert (run.verdict.success, run.verdict.why, run.verdict.source) == (
            False,
            "no currency",
            "evaluation correctness",
        )


@pytest.mark.parametrize("text", ["", ">=1", "a>=b", "a>=nan", "a<0.5"])
def test_a_rule_that_names_no_evaluation_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an evaluation"):
        Rule.parse(text)


# --- files -----------------------------------------------------------------------------------------------------------

ONE = request(agent(1), chat(2, [ASK], [DONE], parent=1, events=[evaluation("fail", "no currency")]))


async def dry(*files: str, **options: Any) -> tuple[Any, list[TraceRun]]:
    found: list[TraceRun] = []
    done = await mulligan.learn_traces(files, dry_run=True, progress=found.append, **options)
    return done, found


@pytest.mark.parametrize("form", ["lines", "whole", "list", "gz", "bom", "base64", "older"])
async def test_files_of_every_form(here: Path, form: str) -> None:
    text = {"lines": "\n" + lines(ONE), "whole": json.dumps(ONE, indent=1), "list": json.dumps([ONE])}.get(
        form, lines(ONE)
    )
    if form == "older":
        text = text.replace("scopeSpans", "instrumentationLibrarySpans")
    if form == "base64":
        for id in {
            row[key] for row in ONE["resourceSpans"][0]["scopeSpans"][0]["spans"] for key in ("traceId", "spanId")
        }:
            text = text.replace(id, base64.b64encode(bytes.fromhex(id)).decode())
    raw = text.encode("utf-8-sig" if form == "bom" else "utf-8")
    (here / "t.x").write_bytes(gzip.compress(raw) if form == "gz" else raw)
    done, (run,) = await dry("t.x")
    assert (run.success, run.why, run.state) == (False, "no currency", "new")
    assert (done.spans.spans, done.errors) == (2, ())


async def test_a_last_line_that_was_cut_off_is_left_for_the_next_time(here: Path) -> None:
    text = lines(ONE, request(agent(5, trace=7), chat(6, [ASK], [DONE], parent=5, trace=7)))
    (here / "t.jsonl").write_text(text[:-40])
    done, found = await dry("t.jsonl")
    assert len(found) == 1
    assert "last line of t.jsonl is cut off" in done.notes[0]
    (here / "t.jsonl").write_text(text[:-40] + "\n")
    with pytest.raises(InvalidInput, match=r"t\.jsonl:2: this is not JSON"):
        await dry("t.jsonl")


BAD: dict[str, dict[str, Any]] = {
    "trace id": {"traceId": "xyz"},
    "no id": {"spanId": ""},
    "time": {"startTimeUnixNano": "soon"},
    "status": {"status": 3},
    "value": {"attributes": [{"key": "a", "value": {"textValue": "x"}}]},
    "number": {"attributes": [{"key": "a", "value": {"intValue": "x"}}]},
    "event": {"events": ["x"]},
}


@pytest.mark.parametrize("what", BAD)
async def test_a_broken_span_is_an_error_with_its_line_and_number(here: Path, what: str) -> None:
    (here / "t.jsonl").write_text(lines(ONE, request(span(1), {**span(1), **BAD[what]})))
    with pytest.raises(InvalidInput, match=r"t\.jsonl:2, span 2"):
        await dry("t.jsonl")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x28\xb5\x2f\xfd rest", "compressed with zstd.*zstd -d t.x"),
        (gzip.compress(lines(ONE).encode())[:-20], "cannot be unpacked"),
        (b'{"resourceSpans": 7}', "resourceSpans must be a list, not int"),
        (b'{"traces": []}', "has no resourceSpans or resourceLogs"),
        (b"7", "must be an object, not int"),
        (b'{"resourceSpans": [\n\n}', "t.x:3: this is not JSON"),
        (lines(ONE).encode() + b"\xff\xfe\n", "t.x:2: not valid UTF-8"),
    ],
)
async def test_a_file_that_cannot_be_read_is_refused_before_anything_is_learned(
    here: Path, content: bytes, says: str
) -> None:
    (here / "t.x").write_bytes(content)
    with pytest.raises(InvalidInput, match=says):
        await mulligan.learn_traces("t.x")
    assert not (here / "home" / "traces.db").exists() or "traces" not in says


async def test_what_one_run_says_wrongly_is_its_error_and_the_others_are_learned_from(here: Path) -> None:
    bad = span(7, {**CHAT, "gen_ai.input.messages": '[{"role": "user", "par'}, trace=9)
    worse = chat(8, [said("user", "x"), {"role": "judge", "parts": []}], [DONE], trace=10)
    silent = span(9, CHAT, trace=11)
    (here / "t.jsonl").write_text(lines(request(bad, worse, silent), ONE))
    done = await mulligan.learn_traces("t.jsonl")
    assert dict(done.runs) == {"error": 2, "silent": 1, "new": 1}
    assert "t.jsonl:1, span 1: gen_ai.input.messages" in done.errors[0]
    assert "t.jsonl:1, span 2: gen_ai.input.messages, message 2: role must be" in done.errors[1]
    assert any("CAPTURE_MESSAGE_CONTENT" in note for note in done.notes)


class Passes:
    """A judge that lets every run pass, and counts them."""

    name = "passes"
    expects: Literal["text"] = "text"

    def __init__(self) -> None:
        self.asked = 0

    async def evaluate(self, episode: Episode) -> Feedback:
        self.asked += 1
        return Feedback(True, "")


async def test_a_judge_is_asked_about_a_run_once(here: Path) -> None:
    (here / "t.jsonl").write_text(lines(request(agent(1), chat(2, [ASK], [DONE], parent=1))))
    judge = Passes()
    assert dict((await mulligan.learn_traces("t.jsonl", judge=judge, dry_run=True)).runs) == {"nothing": 1}
    assert dict((await mulligan.learn_traces("t.jsonl")).runs) == {"nothing": 1}
    assert dict((await mulligan.learn_traces("t.jsonl", judge=judge)).runs) == {"nothing": 1}
    assert dict((await mulligan.learn_traces("t.jsonl", judge=judge)).runs) == {"known": 1}
    assert judge.asked == 1


async def test_a_bank_of_the_paper_learns_nothing_from_traces_by_rules(here: Path) -> None:
    refused = [
        said("assistant", call("a", "fly", {"to": "SFO"})),
        said("tool", result("a", "Error: unknown airport")),
        said("assistant", call("b", "fly", {"to": "LAX"})),
        said("tool", result("b", "ok")),
    ]
    (here / "t.jsonl").write_text(lines(request(agent(1), chat(2, [ASK, *refused], [DONE], parent=1))))
    assert (await dry("t.jsonl"))[1][0].drawn, "rules find something in it"
    (here / "mulligan.toml").write_text('[memory]\npreset = "paper"\nembedder = "none"\n')
    for dry_run in (True, False):
        done = await mulligan.learn_traces("t.jsonl", dry_run=dry_run)
        assert (dict(done.runs), done.errors) == ({"nothing": 1}, ())


async def test_a_damaged_record_of_what_was_learned_is_an_error_that_names_it(here: Path) -> None:
    (here / "t.jsonl").write_text(lines(ONE))
    await mulligan.learn_traces("t.jsonl")
    with closing(sqlite3.connect(here / "home" / "traces.db")) as db:
        db.executescript("DROP TABLE learned; CREATE VIEW learned AS SELECT 1 AS other")
    with pytest.raises(StoreError, match=r"traces\.db"):
        await mulligan.learn_traces("t.jsonl")


async def test_a_run_whose_end_was_not_exported_yet_is_left_for_the_next_time(here: Path) -> None:
    now = time.time() - 1_700_000_000
    inner = chat(2, [ASK], [DONE], parent=1, at=now, flags=0x100, events=[evaluation("fail", "no currency")])
    (here / "t.jsonl").write_text(lines(request(inner)))
    done = await mulligan.learn_traces("t.jsonl")
    assert dict(done.runs) == {"unfinished": 1}
    with (here / "t.jsonl").open("a") as file:
        file.write(lines(request(agent(1, at=now))))
    done = await mulligan.learn_traces("t.jsonl")
    assert dict(done.runs) == {"new": 1}
    remote = chat(3, [ASK], [DONE], parent=1, at=now, flags=0x300, trace=5, events=[evaluation("fail", "x")])
    (here / "t.jsonl").write_text(lines(request(remote)))
    assert dict((await mulligan.learn_traces("t.jsonl")).runs) == {"new": 1}
