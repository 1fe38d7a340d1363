"""Stores by their address, and where the one in force is named."""

import asyncio
import os
from pathlib import Path

import pytest
from each_row import each_row

from mulligan import ScriptedModel, solve
from mulligan.app.config import load
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Task
from mulligan.store import file_of, open_store, shown_address


@pytest.mark.parametrize("how", ["sqlite:///{}", "SQLite:///{}", "{}", "path"])
async def test_a_file_by_address_or_by_path(tmp_path: Path, how: str) -> None:
    file = tmp_path / "with space" / "m:1.db"
    address = file if how == "path" else how.format(file)
    assert file_of(address) == file
    async with open_store(address) as store:
        await store.create(Episode("e", Task("p")))
    assert file.is_file()


async def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("sqlite:///one.db", "two.db"):
        async with open_store(address) as store:
            await store.list()
    assert set(os.listdir(tmp_path)) >= {"one.db", "two.db"}


@each_row(
    ("address", "said"),
    [
        (
            "postgres://host/db",
            r"'postgres' is not a kind of store\. Available: .*memory.*sqlite.*\. For a file .* \./postgres://host/db",
        ),
        ("notes:old.db", r"For a file with a colon in its name, use \./notes:old\.db"),
        ("sqlite:mine.db", r"'sqlite:mine\.db' does not specify a file: use sqlite:///mine\.db"),
        ("sqlite://host/mine.db", "does not specify a file"),
        ("sqlite:///", "does not specify a file"),
        ("", "The store address is empty"),
    ],
)
def test_what_is_not_an_address_is_refused(address: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        open_store(address)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://me:p@ss:word@host:1/db?sslmode=require", "postgresql://me@host:1/db?sslmode=require"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?user=me&password=secret&x=1", "postgresql://host/db?user=me&password=&x=1"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_the_older_name_of_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_DATABASE", "memory:old")
    with pytest.raises(InvalidInput, match="MULLIGAN_STORE: rename it"):
        assert load().store
    monkeypatch.setenv("MULLIGAN_STORE", "memory:new")
    assert load().store == "memory:new"


async def test_a_store_in_memory_is_gone_once_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("memory:", "memory:mine"):
        for _ in range(2):
            async with open_store(address) as store, open_store("memory:other") as other:
                await store.create(Episode("e", Task("p")))
                assert await other.list() == ()
                assert await store.memory.lessons.verify() == []
    assert os.listdir(tmp_path) == []


async def test_each_unnamed_store_in_memory_is_another() -> None:
    async with open_store("memory:") as first, open_store("memory:") as second:
        await first.create(Episode("e", Task("p")))
        assert await second.list() == ()


async def test_a_failed_write_to_memory_changes_nothing() -> None:
    async with open_store("memory:") as store:
        await store.create(Episode("e", Task("p")), {"f": "text"})
        with pytest.raises(Exception, match="already"):
            await store.create(Episode("e", Task("p")), {"g": "text"})
        assert await store.files("e") == {"f": "text"}
        many = [store.create(Episode(f"e{n}", Task("p"))) for n in range(50)]
        await asyncio.gather(*many)
        assert len(await store.list(limit=100)) == 51


async def test_the_environment_names_the_store_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_STORE", f"sqlite:///{tmp_path}/other.db")
    episode = await solve("Name a drink.", evaluator="contains:water", model=ScriptedModel(["water"]))
    async with open_store(tmp_path / "other.db") as store:
        assert await store.load(episode.id) == episode
    assert not load().database.exists()
    monkeypatch.setenv("MULLIGAN_STORE", "memory:tests")
    async with open_store("memory:tests") as store:
        episode = await solve("Name a drink.", evaluator="contains:water", model=ScriptedModel(["water"]))
        assert await store.load(episode.id) == episode
