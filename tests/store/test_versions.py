"""Two versions of the program on one store: an older one goes on where a newer one has only added, and else is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import postgres_server
import pytest
from lesson_kit import entry, ids

from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Task
from mulligan.store import open_store
from mulligan.store.moving import move
from mulligan.store.sqlite.schema import EXPANDING, MIGRATIONS, expands, migrate, readable_from, version_of
from mulligan.store.state import state

ADDED = ("CREATE TABLE later (n INTEGER)", "ALTER TABLE lessons ADD COLUMN colour TEXT")
TAKEN = ("ALTER TABLE lessons RENAME COLUMN terms TO words",)
NEXT = len(MIGRATIONS) + 1

Upgrade = Callable[[], None]


def sqlite(folder: Path) -> tuple[str, Upgrade, Upgrade]:
    """The address of a store, what a newer program does that only adds to it, and what one does that takes away."""
    path = folder / "m.db"

    def upgraded(later: tuple[tuple[str, ...], ...]) -> Upgrade:
        def run() -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as db:
                migrate(db, path, (*MIGRATIONS, *later), expanding={*EXPANDING, NEXT})
                assert version_of(db) == (len(MIGRATIONS) + len(later), NEXT + 1 if len(later) > 1 else NEXT - 1)

        return run

    return f"sqlite:///{path}", upgraded((ADDED,)), upgraded((ADDED, TAKEN))


def postgresql(folder: Path) -> tuple[str, Upgrade, Upgrade]:
    from mulligan.store.postgresql.schema import NEWEST

    place = postgres_server.database(folder)

    def run(version: int, readable: int, statements: tuple[str, ...]) -> None:
        recorded = f"UPDATE version SET number = {version}, readable_from = {readable}"
        for statement in ("SET search_path = mulligan; " + "; ".join((*statements, recorded)),):
            postgres_server.server().sql(statement, place)

    return (
        postgres_server.server().address(place),
        lambda: run(NEWEST + 1, NEWEST, ADDED),
        lambda: run(NEWEST + 2, NEWEST + 2, TAKEN),
    )


KINDS = [pytest.param(sqlite, id="sqlite"), pytest.param(postgresql, id="postgresql", marks=pytest.mark.slow)]


async def goes_on(store: Store, n: int) -> None:
    """Writes and reads what it always did."""
    await store.memory.lessons.add("a", [entry(f"lesson {n}")])
    await store.create(Episode(f"episode {n}", Task("p"), agent="a"))
    assert f"lesson {n}" in await ids(store.memory.lessons)
    assert (await store.load(f"episode {n}")).agent == "a"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_older_program_goes_on_while_a_newer_one_adds(
    kind: Callable[[Path], tuple[str, Upgrade, Upgrade]], tmp_path: Path
) -> None:
    address, add, take = kind(tmp_path)
    async with open_store(address) as running, open_store("memory:") as copy:
        await goes_on(running, 1)
        await asyncio.to_thread(add)
        await goes_on(running, 2)
        async with open_store(address) as started:
            await goes_on(started, 3)
            assert await started.memory.lessons.verify() == []
            assert "for programs that know version" in (await state(started)).engine["version"]
            with pytest.raises(InvalidInput, match="A newer version of Mulligan has extended"):
                await move(started, copy)
        await asyncio.to_thread(take)
        async with open_store(address) as started:
            for store in (running, started):
                with pytest.raises(StoreError, match=r"changed by a newer version of Mulligan: .* Upgrade Mulligan"):
                    await store.memory.lessons.add("a", [entry("lesson 4")])
                with pytest.raises(StoreError, match=r"changed by a newer version of Mulligan: .* Upgrade Mulligan"):
                    await store.list()


async def test_a_newer_program_goes_on_from_what_was_added(tmp_path: Path) -> None:
    address, add, _ = sqlite(tmp_path)
    async with open_store(address) as store:
        await goes_on(store, 1)
    add()
    add()
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as db:
        migrate(db, tmp_path / "m.db", (*MIGRATIONS, ADDED, ("CREATE TABLE last (n INTEGER)",)))
        assert version_of(db) == (NEXT + 1, NEXT + 1)
        assert db.execute("PRAGMA user_version").fetchone() == (NEXT + 1,), "older programs refuse that by its number"
        assert db.execute("SELECT id, colour FROM lessons").fetchall() == [("lesson 1", None)]


@pytest.mark.parametrize(
    ("migrations", "expanding", "least"), [(3, (), 3), (3, (3,), 2), (3, (2,), 3), (3, (2, 3), 1), (0, (), 0)]
)
def test_a_program_has_to_know_the_last_migration_that_does_more(
    migrations: int, expanding: tuple[int, ...], least: int
) -> None:
    assert readable_from(migrations, expanding) == least


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (n INTEGER PRIMARY KEY, a TEXT NOT NULL)",
        "CREATE INDEX t_a ON t (a)",
        "ALTER TABLE lessons ADD COLUMN colour TEXT",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY wall ON t USING (TRUE)",
    ],
)
def test_what_only_adds_may_say_so(tmp_path: Path, statement: str) -> None:
    (script := tmp_path / "16_more.sql").write_text(f"{statement};\n")
    assert not expands(script)
    script.write_text(f"-- expands: why\n{statement};\n")
    assert expands(script)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE lessons ADD COLUMN colour TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE lessons ADD COLUMN colour TEXT REFERENCES t",
        "CREATE UNIQUE INDEX l_terms ON lessons (terms)",
        "ALTER TABLE lessons DROP COLUMN terms",
        "UPDATE lessons SET terms = x''",
        "DROP TABLE lessons",
    ],
)
def test_what_does_more_may_not(tmp_path: Path, statement: str) -> None:
    (script := tmp_path / "16_more.sql").write_text(f"-- expands\nCREATE TABLE t (n INTEGER);\n{statement};\n")
    with pytest.raises(ValueError, match="is marked as only expanding the schema, but does more"):
        expands(script)


def test_a_script_whose_last_statement_has_no_end_is_refused(tmp_path: Path) -> None:
    (script := tmp_path / "16_more.sql").write_text("-- expands\nCREATE TABLE t (n INTEGER);\nDROP TABLE lessons\n")
    with pytest.raises(ValueError, match=r"16_more\.sql has an unterminated statement: DROP TABLE lessons"):
        expands(script)
