"""Backups: taken while the store is used, restored without what was erased since."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest
from click.testing import CliRunner

import mulligan
from mulligan.app.backup import Restored, back_up, erase_again, erasures_file, noted_erasure, noted_erasures, restore
from mulligan.app.config import load
from mulligan.app.memory import Bank
from mulligan.app.removal import removable_runs, remove_runs
from mulligan.cli.main import cli
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.home import home
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as
from mulligan.core.records import Episode, Lesson
from mulligan.store import file_of, open_store

EVERY = Selection(states=("active", "retired", "quarantined", "superseded"), limit=None)


@pytest.fixture
def file() -> Path:
    found = file_of(load().store)
    assert found is not None
    return found


def notes(file: str | Path) -> Path:
    found = erasures_file(file)
    assert found is not None
    return found


async def taught(agent: str, *titles: str) -> list[Lesson]:
    async with Bank.open(agent) as bank:
        return [await bank.add(title=title, content=f"{title}.", outcome="success") for title in titles]


async def titles(agent: str) -> list[str]:
    async with Bank.open(agent) as bank:
        return sorted(lesson.title for lesson in await bank.list(EVERY))


async def solved(folder: Path) -> Episode:
    (folder / "answers.json").write_text(json.dumps(["42"]))
    model = f"scripted:{folder / 'answers.json'}"
    return await mulligan.solve("What is six times seven?", evaluator="contains:42", model=model, trials=1)


async def test_a_backup_of_a_store_in_use_is_restored_with_runs_lessons_and_history(tmp_path: Path, file: Path) -> None:
    episode, to = await solved(tmp_path), tmp_path / "backup.db"
    async with Bank.open("anna") as bank:
        lesson = await bank.add(title="first", content="c", outcome="success")
        await bank.edit(lesson.id, title="second")
        back_up(load(), to)  # while the bank is open
    assert to.stat().st_mode & 0o077 == 0
    os.unlink(file)
    assert await restore(load(), to) == Restored(0, 0, None)
    assert await titles("anna") == ["second"]
    async with Bank.open("anna") as bank:
        assert [one.change for one in await bank.history(lesson.id)] == ["added", "edited"]
    async with open_store(file) as store:
        assert (await store.load(episode.id)).solved


async def test_what_was_erased_after_a_backup_does_not_come_back(tmp_path: Path, file: Path) -> None:
    gone = await solved(tmp_path)
    stays = await solved(tmp_path)
    first, _ = await taught("anna", "one", "two")
    await taught("ben", "three")
    await taught("carl", "four")
    back_up(load(), to := tmp_path / "backup.db")
    async with Bank.open("anna") as bank:
        with acting_as("cli anna"):
            assert await bank.purge([first.id[:10]]) == 1
    async with Bank.open("ben") as bank:
        assert await bank.purge(None) == 1
    await remove_runs(await removable_runs(gone.run))
    noted = [json.loads(line) for line in notes(file).read_text().splitlines()]
    assert [(one["by"], one["agent_id"], one["lessons"]) for one in noted[:2]] == [
        ("cli anna", "anna", [first.id]),
        ("", "ben", None),
    ]
    assert "one" not in notes(file).read_text()  # ids alone
    assert notes(file).stat().st_mode & 0o077 == 0
    done = await restore(load(), to, replace=True)
    assert (done.lessons, done.episodes) == (2, 1)
    assert [await titles(agent) for agent in ("anna", "ben", "carl")] == [["two"], [], ["four"]]
    async with open_store(file) as store:
        assert list(await store.ids("")) == [stays.id]
    assert done.replaced is not None
    assert done.replaced.is_file()
    again = await restore(load(), to, replace=True)  # the notes outlive the store that they are of
    assert (again.lessons, again.episodes) == (2, 1)


async def test_runs_that_a_command_removed_do_not_come_back(tmp_path: Path, file: Path) -> None:
    named, old, stays = [await solved(tmp_path) for _ in range(3)]
    back_up(load(), to := tmp_path / "backup.db")
    for command in (["runs", "rm", named.run, "--yes"], ["runs", "rm", old.run[:12], "--yes"]):
        await asyncio.to_thread(CliRunner().invoke, cli, command, catch_exceptions=False)
    assert (await restore(load(), to, replace=True)).episodes == 2
    async with open_store(file) as store:
        assert list(await store.ids("")) == [stays.id]
    pruned = await asyncio.to_thread(
        CliRunner().invoke, cli, ["runs", "prune", "--older-than", "0d", "--yes"], catch_exceptions=False
    )
    assert stays.run in pruned.stdout
    assert (await restore(load(), to, replace=True)).episodes == 3


def test_an_erasure_that_a_full_disk_cannot_note_is_noted_after_it(tmp_path: Path) -> None:
    full, notes = Path("/dev/full"), tmp_path / "notes"
    if not full.exists():
        pytest.skip("needs /dev/full")
    notes.symlink_to(full)
    with noted_erasure(notes, episodes=["e1"]):
        notes.unlink()  # what was erased made room
    assert [one.episodes for one in noted_erasures(notes)] == [("e1",)]
    notes.unlink()
    notes.symlink_to(full)
    with pytest.raises(StoreError, match=r"The erasure was not recorded.*e2"), noted_erasure(notes, episodes=["e2"]):
        pass


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def test_what_comes_back_with_a_database_is_erased_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, keep, put_back = by_own_tools(kind, tmp_path)
    monkeypatch.setenv("MULLIGAN_STORE", address)
    with pytest.raises(InvalidInput, match="Nothing was erased on this machine"):
        await erase_again(load())
    first, second, _ = await taught("anna", "one", "two", "three")
    gone = await solved(tmp_path)
    keep()
    async with Bank.open("anna") as bank:
        await bank.purge([first.id])
    await remove_runs(await removable_runs(gone.run))
    notes(address).rename(other := tmp_path / "other machine.jsonl")
    async with Bank.open("anna") as bank:
        await bank.purge([second.id])
    put_back()
    assert await titles("anna") == ["one", "three", "two"]
    assert await erase_again(load()) == (1, 0)
    assert await titles("anna") == ["one", "three"]
    done = await asyncio.to_thread(
        CliRunner().invoke, cli, ["store", "erase-again", str(other)], catch_exceptions=False
    )
    assert "1 lesson and 1 episode" in done.stderr
    assert await titles("anna") == ["three"]
    with pytest.raises(InvalidInput, match="There is no file"):
        await erase_again(load(), [tmp_path / "nothing"])


def by_own_tools(kind: str, folder: Path) -> tuple[str, Callable[[], object], Callable[[], object]]:
    """The address of a store, what keeps a copy of it, and what puts the copy in its place."""
    if kind == "sqlite":
        file, copy = folder / "m.db", folder / "copy.db"
        return str(file), lambda: shutil.copy(file, copy), lambda: shutil.copy(copy, file)
    name, address = postgres_server.database(folder), postgres_server.address(folder)

    def made(new: str, old: str) -> None:
        postgres_server.server().sql(f"DROP DATABASE IF EXISTS {new}")
        postgres_server.server().sql(f"CREATE DATABASE {new} TEMPLATE {old}")

    return address, lambda: made(f"{name}_copy", name), lambda: made(name, f"{name}_copy")


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("postgresql://me:secret@db.example:5433/team?sslmode=require", "db.example-5433-team.erased.jsonl"),
        ("postgresql://me@/team?host=/run/pg", "run-pg-team.erased.jsonl"),
        ("postgresql:///team", "local-team.erased.jsonl"),
    ],
)
def test_erasures_from_a_database_are_noted_by_where_it_is(address: str, file: str) -> None:
    assert notes(address) == home() / file


async def test_lessons_that_came_after_an_erasure_of_all_stay(tmp_path: Path) -> None:
    await taught("ben", "old")
    async with Bank.open("ben") as bank:
        await bank.purge(None)
    until = time.time() + 0.002
    while time.time() < until:  # times are kept to a thousandth of a second
        pass
    await taught("ben", "new")
    back_up(load(), to := tmp_path / "backup.db")
    assert (await restore(load(), to, replace=True)).lessons == 0
    assert await titles("ben") == ["new"]


async def test_what_cannot_be_backed_up_or_restored(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match="There is no store at"):
        back_up(load(), tmp_path / "a.db")
    await taught("anna", "one")
    back_up(load(), to := tmp_path / "backup.db")
    with pytest.raises(InvalidInput, match="already exists"):
        back_up(load(), to)
    with pytest.raises(InvalidInput, match="does not exist"):
        back_up(load(), tmp_path / "no" / "a.db")
    with pytest.raises(InvalidInput, match="no file"):
        await restore(load(), tmp_path / "nothing.db", replace=True)
    with pytest.raises(InvalidInput, match="--replace"):
        await restore(load(), to)
    async with Bank.open("anna") as bank:
        await bank.list()
        with pytest.raises(InvalidInput, match="open in another process"):
            await restore(load(), to, replace=True)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match="cannot be copied"):
        await restore(load(), tmp_path / "text.db", replace=True)
    assert await titles("anna") == ["one"]
    assert not list(file.parent.glob("*.restoring*"))
    monkeypatch.setenv("MULLIGAN_STORE", "memory:x")
    with pytest.raises(InvalidInput, match="is not a file"):
        back_up(load(), tmp_path / "b.db")


async def test_a_note_that_cannot_be_read_stops_a_restore(tmp_path: Path, file: Path) -> None:
    await taught("anna", "one")
    back_up(load(), to := tmp_path / "backup.db")
    notes(file).write_text('{"at": 1}\n')
    with pytest.raises(StoreError, match=r"erased\.jsonl:1 is not a record"):
        await restore(load(), to, replace=True)


async def test_where_an_erasure_cannot_be_noted_nothing_is_erased(file: Path) -> None:
    (lesson,) = await taught("anna", "one")
    notes(file).mkdir()
    async with Bank.open("anna") as bank:
        with pytest.raises(StoreError, match="Nothing was erased"):
            await bank.purge([lesson.id])
    assert await titles("anna") == ["one"]
