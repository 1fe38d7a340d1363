"""`mulligan hooks forget`: what is noted of a session goes, and what it alone taught."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from mulligan.app.sessions import LOCK, project_bank
from mulligan.cli.hooks.forget import command
from mulligan.core.errors import NotFound
from mulligan.core.lessons import Selection
from mulligan.hooks.journal import Journal
from mulligan.sessions.events import Notice

BANK = "project:p"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, which is the working folder, and a journal with a session that taught a lesson."""
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    (tmp_path / "p").mkdir()
    monkeypatch.chdir(tmp_path / "p")

    async def teach() -> None:
        async with project_bank(BANK, embedder="none") as bank:
            context = {"calls": ["s1/c1"], "seen": [{"session": "s1"}]}
            await bank.add("pytest: no yaml", "install it", nature="fact", tags=["hook"], context=context)

    asyncio.run(teach())
    with Journal() as journal:
        journal.seen(Notice("claude", "stop", "s1", str(tmp_path / "p"), transcript="/t"), BANK)
    return tmp_path / "p"


def lessons() -> Sequence[str]:
    async def listed() -> Sequence[str]:
        async with project_bank(BANK, embedder="none") as bank:
            return [one.title for one in await bank.list(Selection(limit=None))]

    return asyncio.run(listed())


def test_an_empty_id_is_not_the_beginning_of_the_only_session(folder: Path) -> None:
    assert isinstance(CliRunner().invoke(command, ["", "--yes"]).exception, NotFound)
    assert len(lessons()) == 1


def test_what_another_session_taught_too_is_left_without_a_trace_of_this_one(folder: Path) -> None:
    async def teach() -> None:
        async with project_bank(BANK, embedder="none") as bank:
            (lesson,) = await bank.list()
            seen = [{"session": "s1", "fails": "mine"}, {"session": "s2", "fails": "theirs"}]
            await bank.edit(lesson.id, context={"calls": ["s1/c1", "s2/c9"], "seen": seen})

    asyncio.run(teach())
    assert "with 0 lessons" in forget()

    async def left() -> str:
        async with project_bank(BANK, embedder="none") as bank:
            (lesson,) = await bank.list()
            assert lesson.context == {"calls": ["s2/c9"], "seen": [{"session": "s2", "fails": "theirs"}]}
            return str(await bank.history(lesson.id))

    assert "s1" not in asyncio.run(left())


def forget(status: int = 0) -> str:
    ran = CliRunner().invoke(command, ["s1", "--yes"], catch_exceptions=True)
    assert bool(ran.exception) == bool(status), ran.output
    return ran.output


def test_the_bank_is_that_of_the_main_agent(folder: Path) -> None:
    with Journal() as journal:  # as the worker does for a sub-agent that no hook has named
        assert journal.advance("claude", "s1", "a1", before=None, cursor=1)
    assert "with 1 lesson" in forget()
    assert lessons() == []


def test_what_failed_halfway_can_be_done_again(folder: Path) -> None:
    with Journal() as journal:
        journal.forget("claude", "s1")  # and the process was killed before it came to the bank
    assert "with 1 lesson" in forget()
    assert lessons() == []


def test_settings_of_the_folder_that_are_broken_keep_nothing(folder: Path) -> None:
    (folder / "mulligan.toml").write_text("broken [")
    assert "with 1 lesson" in forget()
    (folder / "mulligan.toml").unlink()
    assert lessons() == []


def test_it_waits_for_the_process_that_learns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That process may have read the session already: its lessons are removed only when it is done."""
    monkeypatch.setattr("mulligan.cli.hooks.forget.WAIT", 0.05)
    learning = sqlite3.connect(folder.parent / "home" / LOCK, isolation_level=None)
    learning.execute("BEGIN EXCLUSIVE")
    forget(status=1)
    with Journal() as journal:
        session = journal.session("claude", "s1")
        assert session is not None
        assert not session.forgotten
    learning.close()
    assert "with 1 lesson" in forget()
    assert lessons() == []
