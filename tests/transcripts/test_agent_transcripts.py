"""The transcripts of coding agents: ids, verdicts, what is no conversation, what a hook put in, what was cut off."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import AT, FORMATS, INJECTED, in_format
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.transcripts import read_transcript
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn
from mulligan.sessions.agents import agent

STORY = [
    ("user", "Build it."),
    ("sh", "make", "make: *** No rule to make target 'all'.", 2),
    ("sh", "make build", "built", 0),
    ("agent", "It is built."),
]


def turns(text: str, format: str) -> tuple[Turn, ...]:
    return read_transcript(text, "it", format).turns


@pytest.mark.parametrize("format", FORMATS)
def test_a_call_and_its_result_have_one_id_and_the_result_says_whether_it_failed(format: str) -> None:
    read = turns(in_format(format, STORY, folder="/work"), format)
    done = [(turn.id, turn.failed) for turn in read if turn.role == "tool"]
    assert done == [("s1-1", True), ("s1-2", False)]
    assert [turn.id for turn in read if turn.role == "assistant" and turn.tool] == ["s1-1", "s1-2"]
    assert "No rule to make" in next(turn.text for turn in read if turn.failed)
    assert {turn.folder for turn in read} == ({""} if format == "gemini" else {"/work"})
    assert all(turn.at > 1_700_000_000 for turn in read)
    said = [turn.id for turn in read if not turn.tool]
    assert len(set(said)) == len(said) or format == "codex"  # whose messages need no ids


@pytest.mark.parametrize("format", FORMATS)
def test_what_a_hook_put_in_is_cut_out(format: str) -> None:
    text = in_format(format, STORY)
    assert INJECTED in text
    assert not [turn for turn in turns(text, format) if INJECTED in turn.text]


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "opencode"])
@given(data=st.data())
def test_a_line_that_was_cut_off_is_passed_over(format: str, data: st.DataObject) -> None:
    text = in_format(format, STORY)
    cut = data.draw(st.integers(0, len(text)))
    try:
        read = turns(text[:cut], format)
    except InvalidInput:  # nothing was said by then
        return
    done = [turn.id for turn in read if turn.role == "tool"]
    assert done == ["s1-1", "s1-2"][: len(done)]
    again = turns(text[:cut] + "\n" + text, format)  # the session went on after the cut
    assert {turn.id for turn in again if turn.role == "tool"} == {"s1-1", "s1-2"}


def rows(*several: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row) for row in several)


def test_claude_says_nothing_in_the_users_name() -> None:
    def user(content: Any, **more: Any) -> dict[str, Any]:
        return {"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **more}

    text = rows(
        user("Build it.<system-reminder>Be brief.</system-reminder>"),
        user("Stop hook feedback:\nWhy?"),
        user("<command-name>/compact</command-name>"),
        user("A summary of all.", isCompactSummary=True),
        user("Caveats", isMeta=True),
        user([{"type": "text", "text": "[Request interrupted by user]"}]),
        user([{"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "The user doesn't want to"}]),
        {"type": "summary", "summary": "Build"},
    )
    assert [(turn.role, turn.text, turn.failed) for turn in turns(text, "claude")] == [
        ("user", "Build it.", None),
        ("tool", "The user doesn't want to", None),
    ]


@pytest.mark.parametrize(
    ("output", "shown", "failed"),
    [
        ("Process exited with code 2\nOutput:\nls: no", "ls: no", True),
        (json.dumps({"output": "ls: no", "metadata": {"exit_code": 1}}), "ls: no", True),
        (json.dumps({"output": "a", "metadata": {"exit_code": 0}}), "a", False),
        ([{"type": "input_text", "text": "seen"}], "seen", None),
        (
            "Command blocked by PreToolUse hook: no. Command: ls",
            "Command blocked by PreToolUse hook: no. Command: ls",
            None,
        ),
    ],
)
def test_older_rollouts_of_codex_say_the_exit_code_in_the_output(output: Any, shown: str, failed: bool | None) -> None:
    call = {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c"}
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    text = rows(*({"type": "response_item", "timestamp": AT, "payload": one} for one in (call, answer)))
    assert [(turn.text, turn.failed) for turn in turns(text, "codex")] == [
        ('{"command": ["ls"]}', None),
        (shown, failed),
    ]


def test_of_a_record_that_gemini_writes_again_the_last_counts_and_what_was_taken_back_is_gone() -> None:
    def said(id: str, text: str) -> dict[str, Any]:
        return {"id": id, "type": "user", "timestamp": AT, "content": [{"text": text}]}

    head = {"sessionId": "s", "projectHash": "h"}
    text = rows(
        head, said("a", "one"), said("b", "two"), said("a", "three"), {"$set": {"messages": [said("c", "four")]}}
    )
    assert [turn.text for turn in turns(text, "gemini")] == ["three", "two", "four"]
    assert [turn.text for turn in turns(f'{text}\n{{"$rewindTo": "b"}}', "gemini")] == ["three"]
    older = json.dumps({**head, "messages": [said("a", "one")]}, indent=2)
    assert [turn.text for turn in read_transcript(older, "it").turns] == ["one"]


@pytest.mark.parametrize(("status", "failed"), [("error", True), ("cancelled", None), ("success", False)])
def test_a_call_that_gemini_refused_has_failed(status: str, failed: bool | None) -> None:
    call: dict[str, Any] = {
        "id": "c",
        "name": "read_file",
        "args": {},
        "status": status,
        "result": [{"text": "outside"}],
    }
    row: dict[str, Any] = {"id": "a", "type": "gemini", "timestamp": AT, "content": "", "toolCalls": [call]}
    assert turns(rows({"sessionId": "s", "projectHash": "h"}, row), "gemini")[1].failed is failed


def test_the_store_of_opencode_is_read_as_its_export_is(tmp_path: Path) -> None:
    text = in_format("opencode", STORY, folder="/work")
    session = json.loads(text)
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db, db:
        db.execute("CREATE TABLE session (id text PRIMARY KEY, directory text, parent_id text, time_updated integer)")
        db.execute("CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text)")
        db.execute("CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text)")
        db.execute("INSERT INTO session VALUES ('s1', '/work', NULL, 0)")
        for n, message in enumerate(session["messages"]):
            info = {key: value for key, value in message["info"].items() if key != "id"}
            db.execute("INSERT INTO message VALUES (?, 's1', ?, ?)", (message["info"]["id"], n, json.dumps(info)))
            for part in message["parts"]:
                row = (part["id"], message["info"]["id"], "s1", json.dumps(part))
                db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    stored = agent("opencode").text(str(tmp_path / "opencode.db"), "s1")
    assert read_transcript(stored, "it").turns == read_transcript(text, "it").turns
