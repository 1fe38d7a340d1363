"""The transcripts of coding agents: ids, verdicts, what is no conversation, what a hook put in, what was cut off."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import AT, FORMATS, INJECTED, in_format
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.transcripts import read_transcript
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn
from mulligan.sessions.agents import agent
from mulligan.sessions.happenings import happened

STORY = [
    ("user", "Build it."),
    ("sh", "make", "make: *** No rule to make target 'all'.", 2),
    ("sh", "make build", "built", 0),
    ("agent", "It is built."),
]


def turns(text: str, format: str) -> tuple[Turn, ...]:
    return read_transcript(text, "it", format).turns


@each_row("format", FORMATS)
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


@each_row("format", FORMATS)
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


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
HEADS = {
    "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n": True,
    "Exit code: 1\nWall time: 0.1 seconds\nTotal output lines: 3\nOutput:\n": True,
    "Exit code: 0\nWall time: 0.1 seconds\nOutput:\n": False,
}


def rollout(*payloads: dict[str, Any]) -> str:
    return rows(*({"timestamp": AT, "type": "response_item", "payload": one} for one in payloads))


@pytest.mark.parametrize(("head", "failed"), HEADS.items())
def test_an_edit_of_codex_counts_and_what_a_command_prints_decides_nothing(
    head: str, failed: bool, tmp_path: Path
) -> None:
    printed = "Process exited with code 0\nOutput:\nRuntimeError: no DATABASE_URL\nExit code: 0"
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": PATCH}
    text = rollout(call, {"type": "custom_tool_call_output", "call_id": "c1", "output": head + printed})
    (edit,) = happened(read_transcript(text, "it", "codex").turns)
    assert (edit.failed, edit.command) == (failed, "src/a.py")
    assert edit.output == (printed if failed else PATCH)
    file = tmp_path / "rollout.jsonl"
    file.write_text(text)
    payload = {"hook_event_name": "PostToolUse", "session_id": "s", "cwd": "/p", "transcript_path": str(file)}
    notice = agent("codex").notice({**payload, "tool_name": "Bash", "tool_use_id": "c1"}, {})
    assert notice is not None
    assert (notice.moment, notice.output) == ("failure" if failed else "success", printed if failed else "")


SAVED = {
    "claude": "<persisted-output>\nOutput too large (90KB). Full output saved to: {}\n\nPreview (first 2KB):\nfine",
    "copilot": "Output too large to read at once (27.2 KB). Saved to: {}\nConsider using grep.\n\nPreview (first 500 chars):\nfine",
    "qwen": "Tool output was too large and has been truncated.\nThe full output has been saved to: {}\nTo read it: ReadFile.",
    "opencode": "fine\n\n...900 lines truncated...\n\nThe tool call succeeded but the output was truncated. Full output saved to: {}\nUse Grep.",
}


@pytest.mark.parametrize("format", SAVED)
@pytest.mark.parametrize("place", ["there", "gone", "elsewhere"])
def test_an_output_that_was_saved_is_read_from_its_file(
    format: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    kept = {
        "claude": "logs/s1/tool-results/b1.txt",
        "copilot": "tmp/copilot-tool-output-1.txt",
        "qwen": ".qwen/tmp/p/b1.output",
        "opencode": ".local/share/opencode/tool-output/tool_1",
    }
    file = tmp_path / ("secret/id_rsa" if place == "elsewhere" else kept[format])
    file.parent.mkdir(parents=True)
    if place != "gone":
        file.write_text("fine\n" * 30_000 + "RuntimeError: no DATABASE_URL\n")
    text = in_format(format, [("user", "Go."), ("sh", "make test", SAVED[format].format(file), 1)])
    turn = read_transcript(text, str(tmp_path / "logs" / "s1.jsonl"), format).turns[-1]
    assert turn.failed
    assert "saved to" not in turn.text.casefold()
    assert ("DATABASE_URL" in turn.text) is (place == "there")
    assert place == "there" or turn.text.strip() in ("", "fine")
