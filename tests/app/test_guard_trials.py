"""What a guard would have stopped in the calls that are on record, and when it is proposed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import in_format

from mulligan.app.guards import MIN_CALLS, Record, may_be_proposed, pattern_of
from mulligan.app.sessions import finish, project_bank
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import project_id
from mulligan.sessions.events import Notice

SAYS: tuple[tuple[Any, ...], ...] = (
    ("user", "Look at the change."),
    ("sh", "git stash", "Saved working directory", 0),
    ("user", "Never use git stash here."),
)


def test_a_guard_is_proposed_once_enough_calls_are_on_record_and_none_of_them_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("MULLIGAN_STORE", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder, bank = tmp_path / "project", project_id(str(tmp_path / "project"))
    folder.mkdir()

    def happens(session: str, story: tuple[tuple[Any, ...], ...]) -> Path:
        file = tmp_path / "home/.claude/projects/p" / f"{session}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(in_format("claude", story, folder=str(folder), session=session))
        return file

    async def lesson() -> Lesson:
        async with project_bank(bank) as opened:
            return (await opened.list(Selection(limit=None)))[0]

    with Journal() as journal:
        file = happens("s1", SAYS)
        journal.seen(Notice("claude", "end", "s1", str(folder), transcript=str(file)), bank)
        asyncio.run(finish(journal))
        taught = asyncio.run(lesson())
        assert (may_be_proposed(taught), pattern_of(taught)) == (True, "git stash")
        few = Record(journal, bank).trial(taught, "git stash")
        assert (few.calls, few.met, few.wrong, few.is_proposed) == (1, 1, (), False)
        happens("s2", tuple(("sh", f"make part-{n}", "ok", 0) for n in range(MIN_CALLS)))
        many = Record(journal, bank).trial(taught, "git stash")
        assert (many.calls, many.met, many.wrong, many.is_proposed) == (MIN_CALLS + 1, 1, (), True)
        happens("s3", (("sh", "git stash pop", "ok", 0),))
        wrong = Record(journal, bank).trial(taught, "git stash")
        assert (wrong.wrong, wrong.is_proposed) == (("git stash pop",), False)
