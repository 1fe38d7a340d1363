"""What makes a goal's check pass teaches as any command that failed and works: by the same rules."""

import time
from pathlib import Path

from agent_transcripts import in_format
from coding_agents import FAILS, MENDS, TASKS
from goal_kit import Folder, folder

from mulligan.core.turns import Turn
from mulligan.goals.record import checks_of
from mulligan.hooks.journal import Session
from mulligan.hooks.learning import Reading, read_on


def project(tmp_path: Path) -> Folder:
    return folder(tmp_path / "taught", {"tasks.py": TASKS, ".gitignore": "orders.schema\n"})


def at(transcript: str, seconds: float) -> str:
    """The transcript with its rows at this time."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return transcript.replace("2026-03-01T10:00:00Z", stamp)


def reading(there: Folder, story: list[tuple[object, ...]], when: float, checks: list[Turn]) -> Reading:
    file = there.path.parent / "session.jsonl"
    file.write_text(at(in_format("claude", story, folder=str(there.path)), when))
    return read_on(Session("claude", "s1", folder=str(there.path), transcript=str(file)), checks=checks)


def test_a_command_between_a_failing_and_a_passing_check_is_learned(place: Folder, tmp_path: Path) -> None:
    there = project(tmp_path)
    there.goal(FAILS)
    there.prompt()
    there.write("notes.txt", "looked around\n")
    assert "SchemaError" in there.stop()
    when = time.time()
    there.command(MENDS)
    assert there.stop() == ""
    assert there.now().state == "passed"
    checks = checks_of("claude", "s1")
    assert [check.failed for check in checks] == [True, False]
    moved = [check._replace(at=when + (-60 if check.failed else 60)) for check in checks]
    story: list[tuple[object, ...]] = [("user", "Write the report."), ("sh", MENDS, "generated orders.schema", 0)]
    found = reading(there, story, when, moved)
    assert [MENDS in str(one) for one in found.found] == [True]
    file = there.path.parent / "session.jsonl"
    again = read_on(
        Session("claude", "s1", folder=str(there.path), transcript=str(file), cursor=found.cursor), checks=moved
    )
    assert again.found == (), "each try is read once"


def test_an_edit_between_them_teaches_nothing(place: Folder, tmp_path: Path) -> None:
    place.goal()
    place.prompt()
    place.write("words.txt", "bad-one\n")
    place.stop()
    when = time.time()
    place.write("words.txt", "good\n")
    place.stop()
    moved = [check._replace(at=when + (-60 if check.failed else 60)) for check in checks_of("claude", "s1")]
    story: list[tuple[object, ...]] = [("user", "Make the words right."), ("agent", "I edit words.txt.")]
    assert reading(place, story, when, moved).found == ()
