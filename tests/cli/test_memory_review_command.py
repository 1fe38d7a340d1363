"""`mulligan learn` of coding agents' sessions, `memory review` and `memory export --to`: a person decides what is kept."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import in_format
from hypothesis import assume, example, given
from hypothesis import strategies as st
from terminals import terminal

from mulligan.bank.exchange.marked_block import BEGIN, END, with_block
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson
from mulligan.hooks.entry import respond
from mulligan.hooks.project import USER, project_id

Run = Callable[..., Any]
STORY: tuple[tuple[Any, ...], ...] = (
    ("user", "Build it."),
    ("sh", "make", "make: *** No rule to make target 'all'.  Stop.", 2),
    ("sh", "make build", "built", 0),
    ("user", "No, use ninja."),
    ("agent", "I will."),
)
CONTENT = "fails: make\n  make: *** No rule to make target 'all'. Stop.\nworks: make build"


@pytest.fixture(autouse=True)
def sessions(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(here / "data"))
    monkeypatch.setenv("HOME", str(here / "home"))
    for name in ("MULLIGAN_STORE", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = here / "home/.claude/projects/p"
    folder.mkdir(parents=True)
    for session in ("s1", "s2"):
        (folder / f"{session}.jsonl").write_text(in_format("claude", STORY, folder=str(here), session=session))


def candidates(mulligan: Run) -> list[str]:
    out = mulligan("memory", "review").out
    return [line.split()[0] for line in out.splitlines() if line and not line.startswith(" ")]


def test_a_transcript_that_is_named_confirms_after_as_many_sessions_as_were_set(mulligan: Run) -> None:
    mulligan("hooks", "set", "needed", "3")
    for session in ("s1", "s2"):
        assert mulligan("learn", f"home/.claude/projects/p/{session}.jsonl").status == 0
    assert len(candidates(mulligan)) == 2


def test_a_session_is_learned_from_without_a_model_and_once(mulligan: Run, here: Path) -> None:
    file = "home/.claude/projects/p/s1.jsonl"
    first = mulligan("learn", file)
    assert first.status == 0, first.err
    assert [line.split("  ", 1)[1] for line in first.out.splitlines()] == [
        "make: *** No rule to make target 'all'. Stop.",
        "The user: No, use ninja.",
    ]
    assert f"the bank is that of {project_id(str(here))}" in first.err
    again = mulligan("learn", file)
    assert (again.status, again.out) == (0, first.out)
    assert len(candidates(mulligan)) == 2
    mined = mulligan("learn", "--since", "30d", "--agent", "claude")  # s1 again, and s2
    assert "2 sessions read with 4 new calls; 0 lessons learned; 2 lessons confirmed" in mined.err
    assert mined.out.splitlines()[1].split(maxsplit=2) == ["2", "2", "make: *** No rule to make target 'all'. Stop."]
    assert mulligan("learn", "--since", "1d").err.startswith("0 sessions read")
    assert candidates(mulligan) == []


def test_a_dry_run_shows_what_is_found_and_keeps_nothing(mulligan: Run) -> None:
    ended = mulligan("learn", "home/.claude/projects/p/s1.jsonl", "--dry-run")
    assert "found: make: *** No rule to make target 'all'. Stop." in ended.out
    assert candidates(mulligan) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "Specify a FILE"),
        (("x", "--since", "1d"), "Specify a FILE"),
        (("--since", "soon"), "not a time span"),
        (("--since", "²d"), "not a time span"),
    ],
)
def test_a_file_or_a_time_is_named(mulligan: Run, arguments: tuple[str, ...], says: str) -> None:
    ended = mulligan("learn", *arguments)
    assert (ended.status, says in ended.err) == (2, True)


def test_candidates_are_kept_or_dropped_by_their_ids_and_written_to_a_file(mulligan: Run, here: Path) -> None:
    (here / "AGENTS.md").write_bytes(before := b"# Mine\r\n\r\nBe brief.\r\n")
    assert "Only lessons from coding agents' sessions" in mulligan("memory", "export", "--to", "AGENTS.md").err
    mulligan("learn", "home/.claude/projects/p/s1.jsonl")
    said = mulligan("memory", "export", "--to", "AGENTS.md").err
    assert "0 kept lessons, nothing changed\n2 candidates to review first: mulligan memory" in said
    assert (here / "AGENTS.md").read_bytes() == before
    keep, drop = candidates(mulligan)
    listed = mulligan("memory", "review")
    assert "    works: make build" in listed.out
    assert "--keep ID" in listed.err
    assert mulligan("memory", "review", "--keep", keep, "--drop", drop).status == 0
    assert candidates(mulligan) == []
    assert mulligan("memory", "export", "--to", "AGENTS.md").status == 0
    text = (here / "AGENTS.md").read_bytes()
    assert text.startswith(before)
    assert b"  > works: make build\r\n" in text
    assert b"ninja" not in text
    (here / "AGENTS.md").write_bytes(text + b"More.")
    assert "nothing changed" in mulligan("memory", "export", "--to", "AGENTS.md").err
    assert mulligan("memory", "review", "--keep", "nothing").status == 2


def banks(mulligan: Run) -> dict[str, list[Any]]:
    """The active lessons of each bank."""
    read = json.loads(mulligan("memory", "export", "--all-agents").out)["agents"]
    return {one["agent_id"]: [each for each in one["lessons"] if each["state"] == "active"] for one in read}


@pytest.mark.slow
def test_a_person_lets_a_lesson_guard_its_command_and_takes_that_back(mulligan: Run, here: Path) -> None:
    mulligan("learn", "home/.claude/projects/p/s1.jsonl")
    pair, said = candidates(mulligan)
    refused = mulligan("memory", "review", "--deny", said)
    assert (refused.status, "in backticks" in refused.err) == (2, True)
    assert "a guard would stop: make" in mulligan("memory", "review").out
    marked = mulligan("memory", "review", "--guard", pair)
    assert (marked.status, "guards make: matching calls are refused" in marked.err) == (0, True)
    assert denied("make all")
    assert not denied("cmake all")
    again = decision("CI=1 make all")
    assert '"ask"' in again, "the agent insists, so the user decides"
    assert "set a guard" in again
    assert mulligan("memory", "undo", pair, "--agent-id", project_id(str(here))).status == 0
    assert not denied("make all", "s4")
    (lesson,) = [one for one in banks(mulligan)[project_id(str(here))] if one["id"] == pair]
    assert (lesson["tags"], lesson["pinned"]) == (["hook"], True)


def denied(command: str, session: str = "s3") -> bool:
    """Whether Claude Code's hook denies this command in this folder."""
    return '"deny"' in decision(command, session)


def decision(command: str, session: str = "s3") -> str:
    """What Claude Code's hook says before this command in this folder."""
    told = {"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": command}}
    payload = {"session_id": session, "cwd": os.getcwd(), "hook_event_name": "PreToolUse", **told}
    return respond("claude", "", json.dumps(payload).encode())


@pytest.mark.slow
def test_a_person_keeps_a_lesson_for_all_projects_and_takes_that_back(mulligan: Run, here: Path) -> None:
    mulligan("learn", "home/.claude/projects/p/s1.jsonl")
    pair, said = candidates(mulligan)
    mulligan("memory", "review", "--deny", pair)  # it stays marked
    moved = mulligan("memory", "review", "--everywhere", pair)
    assert moved.status == 0
    found = banks(mulligan)
    assert [one["id"] for one in found[project_id(str(here))]] == [said]
    (lesson,) = found[USER]
    assert (lesson["content"], lesson["confirmed"], lesson["pinned"]) == (CONTENT, True, True)
    assert lesson["tags"] == ["hook", "deny"]
    assert denied("make")
    other = here / "other"
    other.mkdir()
    assert "works: make build" in failing(other)
    assert failing(here, "s6").count("works: make build") == 1
    again = mulligan("memory", "review", "--everywhere", lesson["id"], "--agent-id", USER)
    assert (again.status, "already" in again.err) == (2, True)
    for command in moved.err.partition("To undo this: ")[2].strip().split(" && "):
        assert mulligan(*shlex.split(command)[1:]).status == 0
    assert (failing(other, "s8"), "make build" in failing(here, "s5")) == ("", True)
    assert mulligan("memory", "review", "--everywhere", pair).status == 0
    assert "works: make build" in failing(other, "s9")


def failing(folder: Path, session: str = "s7") -> str:
    """What Claude Code's hook says to a failure in this folder."""
    told = {"tool_name": "Bash", "tool_use_id": "c1", "error": f"Exit code 2\n{STORY[1][2]}"}
    payload = {"session_id": session, "cwd": str(folder), "hook_event_name": "PostToolUseFailure", **told}
    return respond("claude", "", json.dumps(payload).encode())


@pytest.mark.slow
def test_what_a_forgotten_session_taught_all_projects_goes_with_it(mulligan: Run, here: Path) -> None:
    mulligan("learn", "--since", "30d")
    for file in (here / "home/.claude/projects/p").glob("s1*"):
        file.unlink()
    kept = banks(mulligan)[project_id(str(here))]
    mulligan("memory", "review", "--everywhere", next(one["id"] for one in kept if one["content"] == CONTENT))
    assert mulligan("hooks", "forget", "s1", "--yes").status == 0
    (lesson,) = banks(mulligan)[USER]
    assert [one["session"] for one in lesson["context"]["seen"]] == ["s2"]
    assert mulligan("hooks", "forget", "s2", "--yes").status == 0
    assert USER not in banks(mulligan)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "says"), [(b"g", "guards make"), (b"n", "guards make"), (b"a", "kept for all your projects")]
)
def test_at_a_terminal_a_lesson_is_marked_by_a_key(mulligan: Run, key: bytes, says: str) -> None:
    mulligan("learn", "home/.claude/projects/p/s1.jsonl")
    assert says in typed(lambda said: b"q" if says in said else key)


@pytest.mark.slow
def test_at_a_terminal_each_candidate_takes_one_key(mulligan: Run, here: Path) -> None:
    mulligan("learn", "home/.claude/projects/p/s1.jsonl")
    said = typed(lambda said: b"r" if "kept" in said else b"k")
    assert ("kept" in said, "dropped" in said, candidates(mulligan)) == (True, True, [])
    kept = json.loads(mulligan("memory", "list", "--json", "--agent-id", project_id(str(here))).out)
    assert [(one["content"], one["confirmed"], one["pinned"]) for one in kept] == [(CONTENT, True, True)]


def typed(key: Callable[[str], bytes]) -> str:
    """What `memory review` says at a terminal where these keys are pressed. key: the next one, by what was said."""
    command = [sys.executable, "-m", "mulligan", "memory", "review"]
    with (
        terminal() as (person, program),
        subprocess.Popen(command, stdin=program, stdout=program, stderr=subprocess.PIPE) as process,
    ):
        assert process.stderr is not None
        said = ""
        for _ in range(200):
            if process.stderr in select.select([process.stderr], [], [], 0.5)[0]:
                said += (part := os.read(process.stderr.fileno(), 4096).decode())
                if not part:
                    break
            elif "q quit" in said:  # what is typed before the key is waited for is lost
                os.write(person, key(said))
        assert process.wait(timeout=60) == 0
    return said


def lesson(title: str, content: str = "x") -> Lesson:
    return Lesson(title, title, content, "success")


@given(before=st.binary(max_size=60), after=st.binary(max_size=60), titles=st.lists(st.text(max_size=20), max_size=3))
@example(before=b"", after=b"", titles=["\r", "one\r\ntwo"])
def test_what_stands_around_the_block_stays_byte_for_byte(before: bytes, after: bytes, titles: list[str]) -> None:
    assume(b"mulligan:" not in before + after)
    lessons = [lesson(title, f"{title}\n{END}") for title in titles]
    file = with_block(before, [lesson("first")], "AGENTS.md")
    assert file.startswith(before)
    file += after
    new = with_block(file, lessons, "AGENTS.md")
    assert new.startswith(before)
    assert new.endswith(END.encode() + file.partition(END.encode())[2])
    assert with_block(new, lessons, "AGENTS.md") == new
    assert with_block(new, [lesson("first")], "AGENTS.md") == file


def test_a_new_skill_gets_its_head_and_broken_marks_are_refused() -> None:
    assert with_block(b"", [lesson("a")], "SKILL.md").startswith(b"---\nname: ")
    assert with_block(b"", [], "SKILL.md") == b""
    for text in (BEGIN, f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(InvalidInput, match="the block's markers"):
            with_block(text.encode(), [], "AGENTS.md")
