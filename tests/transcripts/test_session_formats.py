"""Sessions in forms that hold no chat messages: they are recognised, and the rules learn from them."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_formats import ERROR, KNOWN, MORE, STREAMS

from mulligan.app.plugins import build, names, parse_spec
from mulligan.app.transcripts import read_transcript, read_transcripts
from mulligan.core.errors import InvalidInput
from mulligan.sessions.happenings import happened

EACH = [*MORE.items(), *STREAMS.items()]


@pytest.mark.parametrize(("name", "text"), EACH)
def test_a_session_is_recognised_by_its_format_alone_and_read(name: str, text: str) -> None:
    readers = {one: build("transcripts", parse_spec("transcripts", one), {}) for one in names("transcripts")}
    assert [one for one, reader in readers.items() if reader.recognises(text)] == [name]
    read = read_transcript(text, "it")
    events = list(happened(read.turns))
    calls = [(one.command, one.failed) for one in events if one.is_call]
    verdicts = (True, False) if name in KNOWN else (None, None)
    assert calls == [("node test.js", verdicts[0]), ("pnpm test", verdicts[1])]
    assert next(one.text for one in events if one.who == "user") == "Run the tests."
    assert next(one for one in events if one.is_call).output == ERROR or name == "claude"


@pytest.mark.parametrize("name", KNOWN)
def test_the_rules_learn_from_it(name: str) -> None:
    found = read_transcript({**MORE, **STREAMS}[name], "it").found()
    assert any("use pnpm in this repository" in one.content for one in found if one.correction)


def test_the_parts_of_an_answer_of_gemini_are_one() -> None:
    turns = read_transcript(STREAMS["gemini"], "it").turns
    assert [turn.text for turn in turns if turn.role == "assistant" and not turn.tool] == ["I run them."]


def test_a_stream_knows_its_session_and_folder() -> None:
    assert [read_transcript(STREAMS[name], "it").session for name in ("claude", "gemini")] == ["st-1", "gm-1"]
    assert {turn.folder for turn in read_transcript(STREAMS["claude"], "it").turns} == {"/p"}


def test_a_command_of_openhands_that_still_runs_is_unknown() -> None:
    events = json.loads(MORE["openhands"])
    events[2]["extras"]["metadata"]["exit_code"] = -1
    assert next(one for one in happened(read_transcript(json.dumps(events), "it").turns) if one.is_call).failed is None
    lines = "".join(json.dumps(one) + "\n" for one in events)
    assert read_transcript(lines, "it").format == "openhands"
    assert read_transcript(json.dumps({"instance_id": "x", "history": events}), "it").format == "openhands"


def flat(task: str) -> dict[str, Any]:
    """A conversation of STATE-Bench, whose calls stand flat with their results."""
    call = {"name": "get_booking", "arguments": {"id": "B1"}, "result": {"error": "no such booking"}}
    said = {"role": "assistant", "content": "Done.", "tool_calls": [call, {**call, "result": {"id": "B1"}}]}
    return {"file": "1.json", "conversation": [{"role": "user", "content": task}, said]}


def test_flat_calls_have_their_results() -> None:
    (one,) = read_transcripts(json.dumps(flat("Cancel.")), "it")
    assert one.format == "openai"
    calls = [turn for turn in happened(one.turns) if turn.is_call]
    assert [(turn.tool, json.loads(turn.output), turn.failed) for turn in calls] == [
        ("get_booking", {"error": "no such booking"}, True),
        ("get_booking", {"id": "B1"}, False),
    ]


def test_each_line_may_hold_a_conversation() -> None:
    text = "\n".join(json.dumps(flat(task)) for task in ("Cancel.", "Book."))
    assert [(one.name, one.turns[0].text) for one in read_transcripts(text, "f")] == [
        ("f:1", "Cancel."),
        ("f:2", "Book."),
    ]
    torn = text + '\n{"conversation": ['
    with pytest.raises(InvalidInput, match="f:3"):
        read_transcripts(torn, "f")
    messages = "\n".join(json.dumps(one) for one in flat("Cancel.")["conversation"])
    assert len(read_transcripts(messages, "f")) == 1


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "type",
    "id",
    "parentId",
    "message",
    "action",
    "observation",
    "source",
    "args",
    "cause",
    "extras",
    "role",
    "content",
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(KEYS), VALUES | st.sampled_from(["message", "run", "session"])), max_size=4
)


@given(name=st.sampled_from([*MORE, *STREAMS]), rows=ROWS, cut=st.integers(0, 2000))
def test_whatever_the_records_hold_is_read_or_refused(name: str, rows: list[dict[str, Any]], cut: int) -> None:
    text = {**MORE, **STREAMS}[name]
    for torn in (text[:cut], text + "\n".join(map(json.dumps, rows)), json.dumps(rows)):
        with suppress(InvalidInput):
            list(happened(read_transcript(torn, "it", name).turns))
