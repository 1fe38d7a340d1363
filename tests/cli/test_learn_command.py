"""`mulligan learn` and `mulligan.learn`: from a transcript to lessons, with a scripted model."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank, lessons_of, mind

import mulligan as library
from mulligan.core.errors import InvalidInput

Run = Callable[..., Any]

CHAT = [
    {"role": "user", "content": "Make the tests pass."},
    {"role": "assistant", "content": "I ran pytest, with the key sk-proj-abcdefghijklmnopqrstuvwx1234567890ABCD."},
    {"role": "user", "content": "Here they run with make check."},
    {"role": "assistant", "content": "make check passes."},
]
LESSONS = json.dumps(lessons_of(("Run the tests", "The tests of this project run with make check.")))
VERDICT = json.dumps({"reasoning": "The user had to say how.", "verdict": "failure"})


@pytest.fixture(autouse=True)
def files(here: Path) -> None:
    (here / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    (here / "chat.json").write_text(json.dumps(CHAT))
    (here / "model.txt").write_text(LESSONS)
    (here / "judge.txt").write_text(f"{VERDICT}\n---\n{LESSONS}")


def listed(mulligan: Run, *options: str) -> list[dict[str, Any]]:
    return json.loads(mulligan("memory", "list", "--json", *options).out)


def test_a_pipe_is_refused_and_not_waited_for(mulligan: Run, here: Path) -> None:
    os.mkfifo(here / "pipe.jsonl")
    ended = mulligan("learn", "pipe.jsonl")
    assert ended.status == 2
    assert "mulligan learn - < pipe.jsonl" in ended.err


def test_what_was_learned_is_printed_and_found_again(mulligan: Run) -> None:
    ended = mulligan("learn", "chat.json", "--outcome", "success", "--model", "scripted:model.txt")
    assert ended.status == 0, ended.err
    (lesson,) = listed(mulligan)
    assert ended.out == f"{lesson['id']}  Run the tests\n"
    assert "4 turns read from chat.json (openai)" in ended.err
    assert "1 lesson learned" in ended.err
    assert (lesson["outcome"], lesson["query"]) == ("success", "Make the tests pass.")
    assert "make check" in mulligan("memory", "search", "Make the tests pass.", "--threshold", "0").out
    again = mulligan("learn", "chat.json", "--outcome", "success", "--model", "scripted:model.txt")
    assert (again.status, again.out, len(listed(mulligan))) == (0, ended.out, 1)


def test_without_an_outcome_the_model_judges_first(mulligan: Run) -> None:
    ended = mulligan("learn", "chat.json", "--model", "scripted:judge.txt")
    assert ended.status == 0, ended.err
    assert "judged to be a failure: The user had to say how." in ended.err
    assert [lesson["outcome"] for lesson in listed(mulligan)] == ["failure"]


def test_standard_input_a_task_and_an_agent(mulligan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "User: hello\nAssistant: I ran pytest.\nUser: make check, please\nAssistant: done"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    named = ("--agent-id", "ann", "--task", "Run the tests.", "--outcome", "failure")
    ended = mulligan("learn", "-", *named, "--model", "scripted:model.txt")
    assert ended.status == 0, ended.err
    assert listed(mulligan) == []
    assert [lesson["query"] for lesson in listed(mulligan, "--agent-id", "ann")] == ["Run the tests."]


def test_a_dry_run_prints_the_turns_and_asks_and_keeps_nothing(mulligan: Run) -> None:
    ended = mulligan("learn", "chat.json", "--dry-run")
    assert ended.status == 0
    assert ended.out.splitlines() == [
        "turn  who        what",
        "1     user       Make the tests pass.",
        "2     assistant  I ran pytest, with the key [secret masked].",
        "3     user       Here they run with make check.",
        "4     assistant  make check passes.",
        "task: Make the tests pass.",
    ]
    assert mulligan("memory", "pending", "--json").out == "[]\n"


def test_a_dry_run_shows_the_turns_of_what_cannot_be_learned_from(mulligan: Run, here: Path) -> None:
    (here / "mine.txt").write_text("Assistant: hello")
    ended = mulligan("learn", "mine.txt", "--dry-run")
    assert (ended.status, ended.out) == (2, "turn  who        what\n1     assistant  hello\n")
    assert "no user message states the task" in ended.err


def test_without_a_model_nothing_is_kept_and_the_option_is_named(mulligan: Run) -> None:
    ended = mulligan("learn", "chat.json")
    assert (ended.status, ended.out) == (2, "")
    assert "--model" in ended.err
    assert mulligan("memory", "pending", "--json").out == "[]\n"


PYTEST = """\
User: Write release_tag.
Assistant: I wrote it.
Tool (pytest):
>       assert release_tag("Oak", 3) == "oak~03"
E       AssertionError: assert 'Oak-3' == 'oak~03'
Assistant: I changed the form.
Tool (pytest): 1 passed
"""


@pytest.mark.parametrize(("outcome", "confirmed"), [("success", True), ("failure", False)])
def test_without_a_model_failed_asserts_are_facts(mulligan: Run, here: Path, outcome: str, confirmed: bool) -> None:
    (here / "session.txt").write_text(PYTEST)
    ended = mulligan("learn", "session.txt", "--outcome", outcome)
    assert ended.status == 0, ended.err
    (fact,) = listed(mulligan)
    assert ended.out == f"{fact['id']}  release_tag gives the form oak~03\n"
    assert fact["content"] == 'assert release_tag("Oak", 3) == "oak~03"'
    assert (fact["nature"], fact["confirmed"]) == ("fact", confirmed)
    assert "1 fact learned by rules" in ended.err
    assert mulligan("learn", "session.txt").status == 2  # whether it was done is not known


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("none.json",), "none.json cannot be read"),
        (("bad.json",), "bad.json:2: this is not JSON"),
        (("empty.txt",), "empty.txt is empty"),
        (("chat.json", "--format", "plain"), "chat.json: no line begins with a speaker"),
        (("chat.json", "--format", "opnai"), "openai"),
        (("chat.json", "--task", " "), "query is empty"),
        (("chat.json", "--all-agents"), "--bank NAME"),
    ],
)
def test_bad_input_ends_before_a_model_is_asked(mulligan: Run, here: Path, arguments: Any, says: str) -> None:
    (here / "bad.json").write_text('[{"role": "user",\n"content": }]')
    (here / "empty.txt").write_text("\n")
    ended = mulligan("learn", *arguments, "--model", "scripted:nothing.txt")
    assert (ended.status, ended.out) == (2, "")
    assert says in ended.err


def test_an_answer_that_cannot_be_used_is_reported(mulligan: Run, here: Path) -> None:
    (here / "poor.txt").write_text("no lesson\n---\nno lesson")
    ended = mulligan("learn", "chat.json", "--outcome", "failure", "--model", "scripted:poor.txt")
    assert (ended.status, ended.out) == (3, "")
    assert "nothing was learned" in ended.err


async def test_in_python_from_a_file_and_from_messages(here: Path) -> None:
    learned = await library.learn(here / "chat.json", success=True, model="scripted:model.txt")
    assert len(learned.lessons) == 1
    asked = mind(lambda text: lessons_of(("Seen", text[-500:])))
    async with a_bank(here / "own.db", model=asked) as bank:
        learned = await library.learn({"messages": CHAT}, bank=bank)
        (lesson,) = await bank.list()
    assert learned.lessons == (lesson.id,)
    assert learned.reason == "It looks so."
    assert "abcdefghijklmnopqrstuvwx" not in repr(asked.questions) + lesson.content


async def test_in_python_without_a_model(here: Path) -> None:
    with pytest.raises(InvalidInput, match="model="):
        await library.learn(CHAT, success=False)
    with pytest.raises(InvalidInput, match="the messages: message 2: role"):
        await library.learn([{"role": "user", "content": "x"}, {"role": "judge"}], success=False)
