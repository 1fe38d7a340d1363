"""The journal of hooks: cursors, what was shown once, outcomes, pauses, and errors on a full disk."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mulligan.core.worth import is_withheld
from mulligan.hooks import journal as journals
from mulligan.hooks.journal import Journal, swallow
from mulligan.hooks.journal_file import FILE
from mulligan.hooks.swallowed import FALLBACK, fallback_errors
from mulligan.sessions.events import Notice

START = Notice("claude", "start", "s1", "/p", source="startup", transcript="/t")
FAILED = Notice("claude", "failure", "s1", "/p", call="c1", transcript="/t")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path / "home"


def test_a_cursor_moves_only_from_where_it_was(home: Path) -> None:
    with Journal() as journal:
        journal.seen(FAILED._replace(moment="stop", transcript="/t"), "p")
        assert [one.session for one in journal.sessions(due=True)] == ["s1"]
        assert journal.advance("claude", "s1", before=None, cursor={"offset": 9}, lessons=2)
        assert not journal.advance("claude", "s1", before=None, cursor={"offset": 5})
        assert journal.advance("claude", "s1", before={"offset": 9}, cursor={"offset": 12}, lessons=1)
        found = journal.session("claude", "s1")
        assert found
        assert (found.cursor, found.lessons, found.due, found.transcript) == ({"offset": 12}, 3, False, "/t")
        assert journal.sessions(due=True) == []


def test_the_newest_sessions_stand_at_the_end(home: Path) -> None:
    with Journal() as journal:
        for session in ("s1", "s2", "s3"):
            journal.seen(START._replace(session=session), "p")
        assert [one.session for one in journal.sessions()] == ["s1", "s2", "s3"]
        assert [one.session for one in journal.sessions(last=2)] == ["s2", "s3"]


def test_a_session_that_was_never_seen_gets_a_cursor_once(home: Path) -> None:
    with Journal() as journal:
        assert journal.advance("codex", "old", before=None, cursor=[1])
        assert not journal.advance("codex", "old", before=None, cursor=[1])


def test_a_session_that_resumes_is_one_session(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        journal.seen(START._replace(moment="end"), "p")
        ended = journal.session("claude", "s1")
        resumed = journal.seen(START._replace(source="resume"), "")
        assert ended
        assert ended.ended is not None
        assert (resumed.ended, resumed.began, resumed.project, resumed.due) == (None, ended.began, "p", True)
        assert len(journal.sessions()) == 1


def test_a_session_that_was_killed_is_due(home: Path) -> None:
    with Journal() as journal:
        assert not journal.seen(START, "p").due
        assert journal.seen(FAILED, "p").due
        assert journal.is_due()
        assert not journal.is_due(besides="s1")


def test_a_lesson_is_shown_once_and_again_after_a_compaction(home: Path) -> None:
    lessons: list[tuple[str, list[str]]] = [("l1", ["d1"]), ("l2", [])]
    with Journal() as journal:
        journal.seen(START, "p")
        assert journal.show(FAILED, "p", lessons, receipt="r1") == ["l1", "l2"]
        assert journal.show(FAILED, "p", lessons, receipt="r2") == []
        assert journal.show(FAILED._replace(session="s2"), "p", lessons, receipt="r3") == ["l1", "l2"]
        assert journal.show(FAILED._replace(subagent_id="a1"), "p", lessons, receipt="r4") == ["l1", "l2"]
        assert journal.show(FAILED, "p", lessons, receipt="r5", way="denied", most=1) == ["l1"]
        journal.seen(START._replace(source="compact"), "p")
        assert journal.show(FAILED, "p", lessons, receipt="r6", most=1) == ["l1"]


def test_a_draw_withholds_and_is_taken_for_shown(home: Path) -> None:
    lessons = [(f"l{n}", ["d"]) for n in range(40)]
    with Journal() as journal:
        taken = journal.show(FAILED, "p", lessons, receipt="r", most=40, share=0.5)
        assert taken == [id for id, _ in lessons if not is_withheld("r", id, 0.5)]
        assert journal.show(FAILED, "p", lessons, receipt="r2", most=40) == []
        assert {one.lesson for one in journal.shown() if one.way == "withheld"} == {id for id, _ in lessons} - {*taken}


def test_the_same_error_afterwards_says_that_a_lesson_has_not_helped(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        assert journal.failed(FAILED, "p", "d1", "No module named 'yaml'")
        journal.show(FAILED, "p", [("about it", ["d1", "d2"]), ("other", ["d3"])], receipt="r1")
        assert not journal.failed(FAILED, "p", "d1")  # the same call, told twice
        assert [one.again for one in journal.shown()] == [None, None]
        assert journal.failed(FAILED._replace(call="c2"), "p", "d1")
        assert journal.shown(untold=True)[0].lesson == "about it"
        journal.seen(START._replace(moment="end"), "p")
        assert {one.lesson: one.again for one in journal.shown()} == {"about it": True, "other": False}
        journal.tell(["r1"])
        assert journal.shown(untold=True) == []
        assert journal.frequent("p") == [("d1", "No module named 'yaml'", 2, 1)]


def test_forgetting_leaves_only_that_it_is_forgotten(home: Path) -> None:
    with Journal() as journal:
        journal.seen(FAILED._replace(transcript="/t"), "p")
        journal.seen(FAILED._replace(subagent_id="a1"), "p")
        journal.failed(FAILED, "p", "d1")
        journal.show(FAILED, "p", [("l1", [])], receipt="r1")
        journal.forget("claude", "s1")
        assert journal.sessions() == []
        assert (journal.shown(), journal.frequent()) == ([], [])
        assert not journal.advance("claude", "s1", before=None, cursor=1)
        assert journal.seen(FAILED, "p").forgotten
        journal.trim(0)
        found = journal.session("claude", "s1")
        assert found
        assert found.forgotten


def test_the_newest_sessions_are_given_oldest_first(home: Path) -> None:
    with Journal() as journal:
        for session in ("s1", "s2", "s3"):
            journal.seen(START._replace(session=session), "p")
        assert [one.session for one in journal.sessions()] == ["s1", "s2", "s3"]
        assert [one.session for one in journal.sessions(last=2)] == ["s2", "s3"]


def test_what_is_old_is_trimmed_also_if_it_was_never_read(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        journal.seen(FAILED._replace(session="s2", transcript="/t"), "p")
        journal.show(START, "p", [("l1", [])], receipt="r1")
        assert journal.trim(1) == 0
        assert journal.trim(-1) == 2
        assert (journal.sessions(), journal.shown()) == ([], [])


def test_a_failure_without_an_id_is_the_one_that_the_transcript_names(home: Path) -> None:
    """Gemini CLI tells its hooks no id of a call; the worker reads it in the transcript, with a later time."""
    nameless, later = FAILED._replace(call=""), time.time() + 60
    with Journal() as journal:
        journal.seen(START, "p")
        assert journal.failed(nameless, "p", "d1")
        journal.show(FAILED, "p", [("l1", ["d1"])], receipt="r1")
        for _ in range(2):  # the worker may read the call twice
            assert not journal.failed(FAILED, "p", "d1", "No module named 'yaml'", later)
        assert [one.again for one in journal.shown()] == [None]
        assert journal.frequent("p") == [("d1", "No module named 'yaml'", 1, 1)]
        assert journal.failed(FAILED._replace(call="c2"), "p", "d1", at=later)
        assert [one.again for one in journal.shown()] == [True]


def test_the_project_of_a_session_is_the_one_in_which_it_began(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        found = journal.seen(FAILED._replace(folder="/p/vendor/lib"), "other")
        assert (found.project, found.folder) == ("p", "/p")
        assert journal.advance("claude", "s1", "a1", before=None, cursor=1)
        assert journal.seen(FAILED._replace(subagent_id="a2", folder="/q"), "other").project == "p"
        assert {one.project for one in journal.sessions()} == {"p"}


def test_a_sub_agent_of_a_forgotten_session_is_forgotten(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START._replace(transcript="/t"), "p")
        journal.forget("claude", "s1")
        apart = FAILED._replace(subagent_id="a1", transcript="/t/a1")
        assert journal.seen(apart, "p").forgotten
        again = journal.seen(FAILED._replace(transcript="/t"), "p")
        assert (again.transcript, again.folder, again.due) == ("", "", False)
        assert not journal.is_due()
        assert not journal.advance("claude", "s1", "a2", before=None, cursor=1)


def test_errors_that_nobody_has_read_are_not_among_the_frequent(home: Path) -> None:
    with Journal() as journal:
        for n in range(3):
            journal.failed(FAILED._replace(call=f"looked{n}"), "p", "d1")
        journal.failed(FAILED, "p", "d2", "No module named 'yaml'")
        assert [one[0] for one in journal.frequent("p", 1)] == ["d2"]


def test_a_failure_that_is_read_twice_is_one_command_whatever_keys_its_error_has(home: Path) -> None:
    with Journal() as journal:
        session = journal.seen(START, "p")
        for _ in range(2):  # the process may have been killed before it moved the cursor
            journal.failed(FAILED, "p", "d1", "words", at=5.0)
            journal.note_errors(session, [("c1", 5.0, ("d1", "d2", "d3"))])
        assert [one.digest for one in journal.failed_commands("p")] == ["d1"]
        assert journal.frequent("p") == [("d1", "words", 1, 1)]
        assert [one.errors for one in journal.recent_sessions("p", 9)] == [{"d1", "d2", "d3"}]


def test_the_newest_sessions_come_first_without_the_current_one(home: Path) -> None:
    with Journal() as journal:
        for n in range(5):
            journal.failed(FAILED._replace(session=f"s{n}"), "p", f"d{n}", "words")
            journal.seen(START._replace(session=f"s{n}"), "p")
        recent = journal.recent_sessions("p", 3, current="s4")
        assert [one.errors for one in recent] == [{"d3"}, {"d2"}, {"d1"}]


def test_the_bank_is_told_only_where_the_error_was_at_stake(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        journal.show(START, "p", [("rule", ["d1"]), ("rule that failed", ["d2"])], receipt="r1")
        journal.show(FAILED, "p", [("at a failure", ["d3"])], receipt="r2")
        journal.failed(FAILED, "p", "d2")
        journal.seen(START._replace(moment="end"), "p")
        told = {one.lesson: one.again for one in journal.shown(untold=True)}
        assert told == {"rule that failed": True, "at a failure": False}


def test_nobody_else_may_read_the_journal(home: Path) -> None:
    with Journal() as journal:
        journal.seen(START, "p")
        files = [file for file in home.iterdir() if file.name.startswith(FILE)]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        for file in files:  # as an older Mulligan made it
            file.chmod(0o644)
        with Journal() as again:
            again.seen(START, "p")
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        assert len(files) == 3


def test_pauses(home: Path, tmp_path: Path) -> None:
    with Journal() as journal:
        journal.pause(str(tmp_path / "a"))
        assert journal.is_paused(str(tmp_path / "a" / "deep"))
        assert not journal.is_paused(str(tmp_path / "ab"))
        journal.pause()
        assert journal.is_paused("/")
        assert journal.resume()
        assert not journal.resume()
        assert journal.paused() == [str((tmp_path / "a").resolve())]


def test_a_project_can_use_another_bank(home: Path) -> None:
    with Journal() as journal:
        journal.bind("project:new", "project:old")
        assert journal.bank_of("project:new") == "project:old"
        journal.bind("project:new", "project:new")
        assert journal.bank_of("project:new") == "project:new"


def test_two_processes_at_once_show_a_lesson_once(home: Path) -> None:
    """Each of several processes waits for the same moment and then takes 20 lessons, one by one."""
    with Journal() as journal:
        journal.seen(START, "p")
    code = (
        "import sys, time\nfrom mulligan.hooks.journal import Journal\nfrom mulligan.sessions.events import Notice\n"
        "notice = Notice('claude', 'failure', 's1', '/p')\n"
        "with Journal(wait=60) as journal:\n"
        "    print('ready', flush=True)\n    sys.stdin.readline()\n"
        "    for n in range(20): print(*journal.show(notice, 'p', [(f'l{n}', [])], receipt=sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", code]
    started = [
        subprocess.Popen([*command, f"r{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    for process in started:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    taken = " ".join(process.communicate("\n", timeout=120)[0] for process in started).split()
    assert sorted(taken) == sorted(f"l{n}" for n in range(20))


def test_two_processes_make_the_file_at_once(home: Path) -> None:
    code = "from mulligan.hooks.journal import Journal\nwith Journal(wait=60) as journal: journal.set('a', 'b')"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait(timeout=120) for process in started] == [0, 0, 0, 0]


def test_an_error_is_noted_even_where_the_file_is_broken(home: Path) -> None:
    swallow("claude", "Stop", "first")
    with Journal() as journal:
        assert [one.what for one in journal.errors()] == ["first"]
    (home / FILE).write_bytes(b"no database at all" * 100)
    for suffix in ("-wal", "-shm"):
        (home / f"{FILE}{suffix}").unlink(missing_ok=True)
    swallow("codex", "Stop", "second\nline")
    (found,) = fallback_errors()
    assert (found.agent, found.event) == ("codex", "Stop")
    assert found.what.startswith("second line (and hooks.db: ")
    assert found.at == pytest.approx(time.time(), abs=60)


def test_the_last_errors_take_no_further_room(home: Path) -> None:
    Journal().close()
    file = home / FALLBACK
    before = (file.stat().st_size, file.stat().st_blocks)
    (home / FILE).write_bytes(b"broken" * 100)
    for n in range(40):
        swallow("claude", "Stop", f"error {n} " + "long " * 200)
    assert (file.stat().st_size, file.stat().st_blocks) == before
    assert len(fallback_errors()) == 16


def test_nothing_is_raised_where_nothing_can_be_written(home: Path) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file where a folder should be")
    swallow("claude", "Stop", "lost")
    assert fallback_errors() == []
    with pytest.raises(OSError, match="home"):
        Journal()


def test_a_locked_journal_is_waited_for_and_then_given_up(home: Path) -> None:
    Journal().close()
    other = sqlite3.connect(home / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Journal(wait=0.01) as journal, pytest.raises(sqlite3.OperationalError, match="locked"):
        journal.seen(START, "p")
    other.close()
    with Journal(wait=0.01) as journal:
        journal.seen(START, "p")


def test_old_errors_make_room_for_new_ones(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MAX_ERRORS", 3)
    with Journal() as journal:
        for n in range(5):
            journal.swallowed("claude", "Stop", str(n))
        assert [one.what for one in journal.errors()] == ["4", "3", "2"]
    assert os.path.exists(home / FILE)


def test_a_file_of_the_first_version_is_brought_up_to_date(home: Path) -> None:
    Journal().close()
    with sqlite3.connect(home / FILE) as db:
        db.execute("ALTER TABLE failures DROP COLUMN command")
        db.execute("ALTER TABLE failures DROP COLUMN tried")
        db.execute("ALTER TABLE shown DROP COLUMN done")
        db.execute("PRAGMA user_version = 1")
    db.close()
    with Journal() as journal:
        journal.seen(FAILED, "p")
        assert journal.failed(FAILED._replace(command="make"), "p", "d1")
        journal.tries(FAILED._replace(command="make"))
        assert [journal.ask("claude", "s1") for _ in range(2)] == [True, False]
