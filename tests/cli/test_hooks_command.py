"""What `mulligan hooks status`, `pause`, `resume`, `rebind`, `set` and `forget` do, seen by what a hook answers then."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import FORMATS, in_format

from mulligan.hooks.entry import respond
from mulligan.hooks.journal import Journal, swallow
from mulligan.hooks.project import project_id
from mulligan.sessions.events import Notice

Run = Callable[..., Any]
ERROR = "make: *** No rule to make target 'all'.  Stop."
STORY = (("user", "Build it."), ("sh", "make", ERROR, 2), ("sh", "make build", "built", 0), ("agent", "Done."))
LESSON = "works: make build"


@pytest.fixture(autouse=True)
def place(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, which is the working folder, with a home of its own."""
    monkeypatch.setenv("MULLIGAN_HOME", str(here / "data"))
    monkeypatch.setenv("HOME", str(here / "home"))
    for name in ("MULLIGAN_STORE", "MULLIGAN_MODEL", "CLAUDE_PROJECT_DIR", "CLAUDE_CONFIG_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    project = here / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


def learned(mulligan: Run, session: str, folder: Path) -> None:
    """A session of Claude Code in this folder, which Mulligan learns from."""
    file = Path.home() / ".claude/projects/p" / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(in_format("claude", STORY, folder=str(folder), session=session))
    assert mulligan("learn", "--since", "30d", "--all-projects").status == 0


def failing(folder: Path, session: str, call: str = "c1") -> str:
    """What Claude Code's hook says to the model at a failure in this folder."""
    told = {"tool_name": "Bash", "tool_use_id": call, "error": f"Exit code 2\n{ERROR}"}
    payload = {"session_id": session, "cwd": str(folder), "hook_event_name": "PostToolUseFailure", **told}
    return respond("claude", "", json.dumps(payload).encode())


def status(mulligan: Run, *options: str) -> Any:
    return json.loads(mulligan("hooks", "status", "--json", *options).out)


@pytest.mark.slow
def test_status_says_what_was_seen_learned_and_shown_and_whether_the_error_came_again(
    mulligan: Run, place: Path
) -> None:
    before = mulligan("hooks", "status").out
    assert "none yet" in before
    assert "not known yet" in before
    learned(mulligan, "s1", place)
    assert LESSON in failing(place, "s2")
    failing(place, "s2", "c2")
    assert LESSON in failing(place, "s3")
    swallow("claude", "Stop", "ValueError: it is broken")
    page = mulligan("hooks", "status").out
    rows = {line[:18].strip(): line[18:].strip() for line in page.splitlines()}
    assert rows["project"] == project_id(str(place))
    assert rows["bank"] == "the project's own"
    assert rows["sessions"] == "3 of claude"
    assert rows["lessons"] == "0 kept, 1 candidate"
    assert rows["shown"] == "2 at failure"
    assert rows["same error again"] == "1 of 1 lesson shown"
    assert rows["unread sessions"] == "0"
    assert rows["hooks in"] == "no agent yet: mulligan hooks install"
    assert "4 times, 3 sessions: make: *** No rule to make target 'all'. Stop." in page
    assert "claude Stop: ValueError: it is broken" in page
    read = status(mulligan)
    assert [one["session"] for one in read["sessions"]] == ["s1", "s2", "s3"]
    assert (read["kept"], read["candidates"], read["trouble"]) == (0, 1, "")
    other = status(mulligan, "--folder", str(place.parent))
    assert (other["project"], other["sessions"], other["candidates"]) == (project_id(str(place.parent)), [], 0)


@pytest.mark.slow
def test_status_names_the_agents_that_have_hooks_or_a_plug_in(mulligan: Run, place: Path) -> None:
    codex = Path.home() / ".codex" / "config.toml"
    codex.parent.mkdir(parents=True)
    codex.write_text('[plugins."mulligan@mulligan"]\nenabled = true\n')
    mulligan("hooks", "install", "claude", "--yes")
    assert "Claude Code, Codex CLI" in mulligan("hooks", "status").out
    assert status(mulligan)["installed"] == ["claude", "codex"]
    mulligan("hooks", "uninstall", "--yes")
    assert "Codex CLI has Mulligan's plug-in" in mulligan("hooks", "uninstall").err


def test_what_was_learned_and_is_kept_already_is_listed_elsewhere(mulligan: Run, place: Path) -> None:
    learned(mulligan, "s1", place)
    assert "make" in mulligan("memory", "review").out
    learned(mulligan, "s2", place)
    said = mulligan("memory", "review").err
    assert f"1 lesson kept: mulligan memory --bank {project_id(str(place))} list" in said


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("arguments", [("pause",), ("set", "needed", "3"), ("forget", "s1"), ("doctor", "claude")])
def test_a_home_that_cannot_be_used_is_named(
    mulligan: Run, place: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    mulligan("hooks", "install", "claude", "--yes")
    monkeypatch.setenv("MULLIGAN_HOME", "/proc/mulligan")
    ended = mulligan("hooks", *arguments)
    assert ended.status == 3
    assert "The hooks' records in /proc/mulligan cannot be used" in ended.err
    assert "MULLIGAN_HOME" in ended.err
    assert "The hooks' records in /proc/mulligan cannot be used" in mulligan("learn", "--since", "30d").err
    assert "is full" not in mulligan("hooks", "status").out


@pytest.mark.slow
def test_status_names_what_keeps_hooks_from_their_work(mulligan: Run, place: Path) -> None:
    assert mulligan("hooks", "status").status == 0
    (place.parent / "data/hooks.db").write_bytes(b"no database" * 100)
    ended = mulligan("hooks", "status")
    assert (ended.status, "nothing is shown or learned" in ended.out) == (0, True)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("written", ["relative", "absolute"])
def test_a_pause_holds_in_its_folder_and_below_until_it_is_taken_back(mulligan: Run, place: Path, written: str) -> None:
    learned(mulligan, "s1", place)
    below = place / "below"
    below.mkdir()
    named = "." if written == "relative" else str(place)
    assert str(place) in mulligan("hooks", "pause", named).out
    assert (failing(place, "s2"), failing(below, "s3")) == ("", "")
    assert str(place) in mulligan("hooks", "status").out
    assert [one["session"] for one in status(mulligan)["sessions"]] == ["s1"], "nothing is noted"
    beside = place.parent / "project2"
    beside.mkdir()
    learned(mulligan, "s4", beside)
    assert LESSON in failing(beside, "s5")
    refused = mulligan("hooks", "resume")
    assert (refused.status, str(place) in refused.err) == (2, True)
    assert mulligan("hooks", "resume", named).out == "Hooks are active again.\n"
    assert LESSON in failing(place, "s6")
    assert mulligan("hooks", "resume", named).status == 2


@pytest.mark.slow
def test_a_pause_without_a_folder_holds_everywhere(mulligan: Run, place: Path) -> None:
    learned(mulligan, "s1", place)
    mulligan("hooks", "pause", str(place))
    assert "everywhere" in mulligan("hooks", "pause").out
    assert failing(place, "s2") == ""
    ended = mulligan("hooks", "resume").out
    assert ended == f"The pause everywhere has ended. Paused in {place}: mulligan hooks resume FOLDER ends the pause.\n"
    assert failing(place, "s2") == ""
    mulligan("hooks", "resume", str(place))
    assert LESSON in failing(place, "s2")


@pytest.mark.slow
def test_a_project_reads_and_fills_the_bank_that_it_is_bound_to(mulligan: Run, place: Path) -> None:
    old = place.parent / "old"
    old.mkdir()
    learned(mulligan, "s1", old)
    assert failing(place, "s2") == ""
    bank = project_id(str(old))
    ended = mulligan("hooks", "rebind", bank)
    assert "Lessons in it: 0 kept, 1 candidate" in ended.out
    assert failing(place, "s2", "c2") == "", "a session stays with the bank it began with"
    assert LESSON in failing(place, "s3")
    assert status(mulligan)["bank"] == bank
    learned(mulligan, "s4", place)
    assert [status(mulligan)[kind] for kind in ("kept", "candidates")] == [1, 0]
    assert "its own bank" in mulligan("hooks", "rebind").out
    assert failing(place, "s5") == ""
    assert LESSON in failing(old, "s6")


@pytest.mark.slow
def test_an_address_is_a_project_and_another_folder_can_be_named(
    mulligan: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = place.parent / "other"
    other.mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\ny\n"))
    refused = mulligan("hooks", "rebind", "github.com/a/b", "--folder", str(other))
    assert "There is no bank project:github.com/a/b here yet" in refused.err
    assert refused.status != 0
    assert status(mulligan, "--folder", str(other))["bank"] == project_id(str(other))
    said = mulligan("hooks", "rebind", "github.com/a/b", "--folder", str(other)).out
    assert said.startswith(f"{project_id(str(other))} uses project:github.com/a/b ")
    assert status(mulligan, "--folder", str(other))["bank"] == "project:github.com/a/b"
    assert status(mulligan)["bank"] == project_id(str(place))


@pytest.mark.slow
def test_what_is_set_is_listed_and_holds(mulligan: Run, place: Path) -> None:
    assert mulligan("hooks", "set").out.splitlines()[:2] == ["needed = 2", "withhold = 0"]
    assert mulligan("hooks", "set", "why").out == "why = none\n"
    assert mulligan("hooks", "set", "needed", "1").out == "needed = 1\n"
    assert "needed = 1" in mulligan("hooks", "set").out
    learned(mulligan, "s1", place)
    assert status(mulligan)["kept"] == 1, "one session is enough"
    mulligan("hooks", "set", "withhold", "0.5")
    withheld = [session for session in map(str, range(40)) if not failing(place, session)]
    assert 5 < len(withheld) < 35
    assert sum(one["way"] == "withheld" for one in status(mulligan)["shown"]) == len(withheld)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("pause", "claude"), "claude is not a folder"),
        (("status", "--folder", "gone"), "'gone' does not exist"),
        (("rebind", "--folder", "gone"), "'gone' does not exist"),
        (("set", "wish"), "wish"),
        (("install", "claude", "--trust", "--yes"), "--trust is for Codex hooks"),
        (("prove", "--draft", "t.toml", "--agent", "claude", "--repeats", "2"), "omit --agent, --repeats"),
        (("resume",), "Hooks are not paused everywhere. No pause is in effect."),
    ],
)
def test_what_would_do_nothing_is_refused(mulligan: Run, place: Path, arguments: tuple[str, ...], says: str) -> None:
    ended = mulligan("hooks", *arguments)
    assert (ended.status, says in ended.err) == (2, True), ended.err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("needed", "0"), "needed is a number from 1 to 100, not 0"),
        (("needed", "many"), "needed is a number from 1 to 100, not many"),
        (("withhold", "nan"), "withhold is a number from 0 to 0.5, not nan"),
        (("wish", "1"), "wish"),
        (("why", "gpt"), "gpt"),
        (("why", "nobody:x"), "nobody"),
        (("why", "thinker"), "thinker"),
        (("why", "command:no-such-program -p"), "not found"),
        (("why", "command:'"), "cannot be parsed"),
        (("why", "scripted:missing.json"), "missing.json"),
        (("why", "openai:gpt-4o-mini"), "OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_set_is_refused_and_changes_nothing(
    mulligan: Run, given: tuple[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = mulligan("hooks", "set").out
    ended = mulligan("hooks", "set", *given)
    assert (ended.status, says in ended.err) == (2, True), ended.err
    assert mulligan("hooks", "set").out == before


def test_who_says_why_is_set(mulligan: Run, place: Path) -> None:
    for value in ("ask", f"command:{sys.executable} -c pass", "none"):
        assert mulligan("hooks", "set", "why", value).out == f"why = {value}\n"
    for name in ("judge.sh", "rules.txt"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    said = mulligan("hooks", "set", "why", "command:./judge.sh -r rules.txt 'a b'").out
    assert said == f"why = command:{place / 'judge.sh'} -r {place / 'rules.txt'} 'a b'\n"
    rules = "Be brief. " * 40
    said = mulligan("hooks", "set", "why", f"command:./judge.sh '' '{rules}'").out
    assert said == f"why = command:{place / 'judge.sh'} '' '{rules}'\n", "no word is lost, and a long one is no path"
    (place / "answers.json").write_text('[{"facts": [], "lessons": {"L1": "Make needs the target build here."}}]')
    assert mulligan("hooks", "set", "why", "scripted:answers.json").out == f"why = scripted:{place / 'answers.json'}\n"
    learned(mulligan, "s1", place)
    assert "- Make needs the target build here. (seen once" in failing(place, "s2")


@pytest.mark.slow
def test_a_session_is_forgotten_by_the_beginning_of_its_id(mulligan: Run, process: Run, place: Path) -> None:
    for session in ("s1", "s2"):
        learned(mulligan, session, place)
    unknown, several = mulligan("hooks", "forget", "x"), mulligan("hooks", "forget", "s")
    assert (unknown.status, several.status) == (2, 2)
    assert "s1, s2" in several.err
    asked = process("hooks", "forget", "s1", stdin="n\n")
    assert asked.status != 0
    assert len(status(mulligan)["sessions"]) == 2
    assert mulligan("hooks", "forget", "s1", "--yes").out == "Session s1 is forgotten, with 0 lessons.\n"
    assert [one["session"] for one in status(mulligan)["sessions"]] == ["s2"]
    assert mulligan("hooks", "forget", "s2", "--yes").out == "Session s2 is forgotten, with 1 lesson.\n"
    assert failing(place, "s3") == ""
    assert mulligan("learn", "--since", "30d").err.startswith("0 sessions read"), "it is never learned from again"


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("agent", FORMATS)
def test_a_forgotten_session_is_learned_from_only_when_that_is_asked_for(
    mulligan: Run, place: Path, agent: str
) -> None:
    """Whatever its file is called, and also where no hook has seen it."""
    text = in_format(agent, STORY, folder=str(place), session="s1")
    kind = "json" if agent == "opencode" else "jsonl"
    file = str(place / ("s1" if agent in ("claude", "qwen") else "copy")) + f".{kind}"
    Path(file).write_text(text)
    assert "1 fact learned by rules" in mulligan("learn", file).err
    assert mulligan("hooks", "forget", "s1", "--yes").out == "Session s1 is forgotten, with 1 lesson.\n"
    for _ in range(2):
        refused = mulligan("learn", file)
        assert (refused.status, "--forgotten" in refused.err) == (2, True), refused.err
        assert failing(place, "s2") == ""
    assert "1 fact learned by rules" in mulligan("learn", file, "--forgotten").err
    assert LESSON in failing(place, "s3")
    assert mulligan("hooks", "forget", "s1", "--yes").out == "Session s1 is forgotten, with 1 lesson.\n"


@pytest.mark.slow
def test_a_session_is_known_by_the_id_in_its_transcript(mulligan: Run, place: Path) -> None:
    text = in_format("claude", STORY, folder=str(place), session="s1")
    rows = [json.loads(line) for line in text.splitlines()]
    said = [{**row, "sessionId": "s1"} if row["type"] in ("user", "assistant") else row for row in rows]
    (place / "copy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    learned(mulligan, "s1", place)
    again = mulligan("learn", str(place / "copy.jsonl"))
    assert "1 fact already known" in again.err
    assert "learned" not in again.err
    assert status(mulligan)["candidates"] == 1, "it is no second session"
    mulligan("hooks", "forget", "s1", "--yes")
    assert mulligan("learn", str(place / "copy.jsonl")).status == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--since", "30d", "--dry-run", "--model", "x"), "--dry-run"),
        (("--since", "30d", "--agent-id", "ann"), "--bank"),
        (("s1.jsonl", "--all-projects"), "--all-projects"),
        (("s1.jsonl", "--agent", "claude"), "--agent"),
    ],
)
def test_options_that_would_do_nothing_are_refused(mulligan: Run, arguments: tuple[str, ...], named: str) -> None:
    ended = mulligan("learn", *arguments)
    assert (ended.status, f"Omit {named}" in ended.err or f", {named}" in ended.err) == (2, True), ended.err


@pytest.mark.parametrize(
    ("typed", "why"), [("", "without a terminal, Mulligan cannot ask for confirmation"), ("n\n", "")]
)
def test_an_installation_that_cannot_be_asked_about_says_what_to_do(
    mulligan: Run, place: Path, monkeypatch: pytest.MonkeyPatch, typed: str, why: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    ended = mulligan("hooks", "install", "claude")
    assert ended.status == (2 if why else 3)
    assert not (Path.home() / ".claude" / "settings.json").exists()
    assert why in ended.err
    assert not why or ended.err.endswith("To write without asking: mulligan hooks install claude --yes\n")


@pytest.mark.slow
def test_status_is_one_screen_of_what_helped_what_is_new_and_what_may_go(mulligan: Run, place: Path) -> None:
    learned(mulligan, "s1", place)
    assert LESSON in failing(place, "s2", "s2-1")
    file = Path.home() / ".claude/projects/p/s2.jsonl"  # it fails, and is overcome as the lesson says
    text = in_format("claude", STORY, folder=str(place), session="s2")
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))
    file.write_text(text.replace("2026-03-01T10:00:00Z", later))
    assert mulligan("learn", "--since", "30d", "--all-projects").status == 0
    read = status(mulligan)["figures"]
    assert [read[name] for name in ("failures", "fixed", "shown", "done")] == [2, 1, 1, 1]
    page = mulligan("hooks", "status").out
    assert "2; 1 had an earlier fix, which was shown for 1 and then applied for 1" in page
    assert "Learned this week: 1 lesson." in page
    assert "(judged by rules)" in page
    assert "ms of CPU per hook; no hook reached the time limit this week" in page, page
    assert "Candidates for retirement" not in page
    with Journal() as journal:
        (lesson,) = {one.lesson for one in journal.shown()}
        digests = next(iter(journal.shown())).digests
        for n in range(3):
            notice = Notice("claude", "failure", f"x{n}", str(place), call="c")
            bank = project_id(str(place))
            journal.seen(notice, bank)
            journal.show(notice, bank, [(lesson, digests)], receipt=f"r{n}")
            journal.failed(notice._replace(call="d"), bank, digests[0], "again")
            journal._db.execute("UPDATE shown SET done = 0, again = 1")  # pyright: ignore[reportPrivateUsage]
    page = mulligan("hooks", "status").out
    assert "the error occurred again each time" in page
    assert len(page.splitlines()) < 45
