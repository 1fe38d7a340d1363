"""`mulligan learn` with files of traces: what it prints, whose bank, who judges."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from traced import agent, chat, evaluation, lines, logs, record, request, said, span

Run = Callable[..., Any]
KEY = "sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD"


def a_run(n: int, name: str = "biller", *events: Any, answer: str = "12") -> dict[str, Any]:
    asked = [said("user", f"Write the total of {n}, with {KEY}.")]
    inner = chat(2, asked, [said("assistant", answer)], parent=1, trace=n, at=n, events=events)
    return request(agent(1, name, {"gen_ai.conversation.id": f"talk {n}"}, trace=n, at=n), inner, span(3, trace=n))


@pytest.fixture(autouse=True)
def traces(here: Path) -> Path:
    (here / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    failed = evaluation("fail", f"no currency; and {KEY} is a key")
    (here / "t.jsonl").write_text(lines(a_run(1, "biller", failed), a_run(2, "clerk", evaluation(score=0.2))))
    return here


def listed(mulligan: Run, *options: str) -> list[dict[str, Any]]:
    return json.loads(mulligan("memory", "list", "--json", *options).out)


def test_a_dry_run_says_what_would_be_learned_and_keeps_nothing(mulligan: Run) -> None:
    ended = mulligan("learn", "t.jsonl", "--dry-run", "--agent-id", "billing")
    assert ended.status == 0, ended.err
    assert ended.out.splitlines() == [
        "1. biller talk 1: 2 turns, failure (evaluation correctness); new",
        "   task: Write the total of 1, with [secret masked].",
        "   why: no currency; and [secret masked] is a key",
        "   found: no currency; and [secret masked] is a key",
        "2. clerk talk 2: 2 turns, no verdict (correctness 0.2); with nothing to learn yet (no model was named)",
        "   task: Write the total of 2, with [secret masked].",
        "   no model is named, and rules find nothing",
    ]
    assert "Spans of no agent: 2 of 6." in ended.err
    assert listed(mulligan, "--agent-id", "billing") == []


def test_each_run_is_learned_from_once(mulligan: Run) -> None:
    ended = mulligan("learn", "t.jsonl", "--agent-id", "billing")
    assert ended.status == 0, ended.err
    (lesson,) = listed(mulligan, "--agent-id", "billing")
    assert ended.out == f"{lesson['id']}  {lesson['title']}\n"
    assert KEY not in json.dumps(lesson)
    assert "no currency" in mulligan("memory", "search", "Write the total of 5.", "--agent-id", "billing").out
    again = mulligan("learn", "t.jsonl", "--agent-id", "billing", "--judge", "contains:EUR")
    assert again.status == 0
    assert "1 to learn from" in again.err
    assert "1 already learned from" in again.err
    assert len(listed(mulligan, "--agent-id", "billing")) == 2


def test_the_named_evaluation_decides_and_each_agent_has_its_bank(mulligan: Run) -> None:
    assert mulligan("learn", "t.jsonl", "--by-agent", "--evaluation", "correctness>=0.5").status == 0
    assert listed(mulligan, "--agent-id", "biller") == []  # its evaluation has no score
    assert listed(mulligan, "--agent-id", "clerk") == []  # and this one no words, so no fact
    dry = mulligan("learn", "t.jsonl", "--dry-run", "--by-agent", "--evaluation", "correctness>=0.5")
    assert "clerk talk 2: 2 turns, failure (evaluation correctness)" in dry.out
    assert mulligan("learn", "t.jsonl", "--by-agent", "--judge", "contains:EUR").status == 0
    assert len(listed(mulligan, "--agent-id", "biller")) == 1
    assert len(listed(mulligan, "--agent-id", "clerk")) == 1


def test_a_model_of_the_bank_judges_what_nobody_did(mulligan: Run, here: Path) -> None:
    verdict = json.dumps({"reasoning": "It has no currency.", "verdict": "failure"})
    lesson = {"title": "Name it", "description": "In totals.", "content": "Write the currency.", "steps": ["s1"]}
    lessons = json.dumps({"lessons": [lesson], "nothing_because": ""})
    (here / "one.jsonl").write_text(lines(a_run(3)))
    (here / "judge.txt").write_text(f"{verdict}\n---\n{lessons}")
    ended = mulligan("learn", "one.jsonl", "--model", "scripted:judge.txt")
    assert ended.status == 0, ended.err
    assert [(one["title"], one["outcome"]) for one in listed(mulligan)] == [("Name it", "failure")]


def test_a_file_of_logs_beside_the_traces(mulligan: Run, here: Path) -> None:
    (here / "one.jsonl").write_text(lines(a_run(3)))
    about = {"traceId": f"{3:032x}", "spanId": f"{1:016x}"}
    has = {
        "gen_ai.evaluation.name": "x",
        "gen_ai.evaluation.score.label": "fail",
        "gen_ai.evaluation.explanation": "short",
    }
    (here / "logs.jsonl").write_text(lines(logs(record("gen_ai.evaluation.result", None, has, **about))))
    ended = mulligan("learn", "one.jsonl", "logs.jsonl")
    assert (ended.status, len(listed(mulligan))) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("t.jsonl", "chat.json"), "chat.json is not a trace file"),
        (("t.jsonl", "--outcome", "success"), "Omit --outcome: these options are for transcripts"),
        (("chat.json", "--judge", "contains:x"), "Omit --judge: these options are for traces"),
        (("t.jsonl", "--by-agent", "--agent-id", "a"), "--bank or --by-agent"),
        (("t.jsonl", "--evaluation", ">=1"), "is not an evaluation"),
        (("t.jsonl", "--judge", "contans:x"), "contains"),
        (("t.jsonl", "--judge", "model_judge"), "needs a model"),
        (("cut.jsonl",), "cut.jsonl:2: this is not JSON"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_learned(
    mulligan: Run, here: Path, arguments: tuple[str, ...], says: str
) -> None:
    (here / "chat.json").write_text(json.dumps([{"role": "user", "content": "x"}]))
    (here / "cut.jsonl").write_text(lines(a_run(1, "b", evaluation("fail", "x"))) + '{"resourceSpans": [\n')
    ended = mulligan("learn", *arguments)
    assert (ended.status, says in ended.err, ended.out) == (2, True, ""), ended.err
    assert listed(mulligan) == []


def test_a_run_that_cannot_be_read_ends_with_3_and_the_others_are_learned_from(mulligan: Run, here: Path) -> None:
    bad = span(7, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role"'}, trace=9)
    (here / "t.jsonl").write_text(lines(request(bad), a_run(1, "b", evaluation("fail", "no currency"))))
    ended = mulligan("learn", "t.jsonl")
    assert (ended.status, len(listed(mulligan))) == (3, 1)
    assert "t.jsonl:1, span 1: gen_ai.input.messages" in ended.err
