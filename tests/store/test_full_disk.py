"""A disk that is full or read-only: all is read without writing, a purge frees space, and what is said is about the disk."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank
from lesson_kit import entry

from mulligan.store import open_store
from mulligan.store.sqlite.schema import MIGRATIONS, migrate
from mulligan.store.sqlite.snapshots import Snapshots, in_place

SUPPORT = Path(__file__).parent.parent / "support"


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of a bank on a disk of 2 MB (see support/small_disk.py)."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root")
    disk = tmp_path_factory.mktemp("small") / "disk"
    disk.mkdir()
    mounted = f'mount -t tmpfs -o size=2m tmpfs "{disk}" || exit 77; exec "$0" "$@"'
    command = ["unshare", "--mount", "sh", "-c", mounted, sys.executable, str(SUPPORT / "small_disk.py"), str(disk)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ran.returncode in (1, 77) and ("not permitted" in ran.stderr or "denied" in ran.stderr):
        pytest.skip("needs root")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["full", "read-only"])
def test_all_is_read(small: dict[str, Any], disk: str) -> None:
    said = small[disk]
    assert said["listed"] == (11 if disk == "full" else 2)
    assert said["recalled"] >= 1
    assert said["runs"] == (["e2", "e1"] if disk == "full" else ["e1"])
    assert f"disk is {disk}" in said["add"]
    if disk == "read-only":
        assert said["id"] == ""
        assert "without a receipt: " in said["note"]


@pytest.mark.slow
def test_a_purge_frees_space_on_a_full_disk(small: dict[str, Any]) -> None:
    assert small["removed"] == [""]
    assert small["purged"] == 10
    assert small["noted"] == [1, 10]
    assert small["shrunk"] > 100_000
    assert (small["left"], small["add"], small["wrong"]) == ([True], "", [])


@pytest.mark.slow
def test_a_home_that_cannot_be_made_is_read_as_an_empty_one(small: dict[str, Any]) -> None:
    said = small["new home"]
    assert (said["listed"], said["recalled"]) == (0, 0)
    assert "cannot be created: Read-only file system" in said["add"]


@pytest.mark.slow
def test_what_is_not_folded_in_yet_is_read(small: dict[str, Any]) -> None:
    assert small["of the log"] == "Unfolded"


@pytest.mark.slow
def test_a_read_only_view_of_a_file_that_is_written_elsewhere(small: dict[str, Any]) -> None:
    assert (small["bound 0"], small["bound 1"]) == ("Live 0", "Live 1")


def test_a_file_of_an_older_version_is_read_where_it_cannot_be_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:1])
    before = path.read_bytes()
    snapshots = Snapshots(path)
    for _ in range(2):
        with closing(snapshots.connect()) as db:
            assert db.execute("SELECT count(*) FROM lessons").fetchone() == (0,)
    snapshots.close()
    assert path.read_bytes() == before
    assert files(tmp_path) == ["m.db"]


async def test_a_snapshot_writes_nothing_beside_the_file(tmp_path: Path) -> None:
    memory = open_store(tmp_path / "m.db").memory
    await memory.lessons.add("a", [entry("1")])
    await memory.close()
    snapshots = Snapshots(tmp_path / "m.db")
    with closing(snapshots.connect()) as db:
        assert db.execute("SELECT id FROM lessons").fetchall() == [("1",)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            db.execute("DELETE FROM lessons")
    snapshots.close()
    assert files(tmp_path) == ["m.db"]


async def test_what_fails_in_place_is_undone(tmp_path: Path) -> None:
    memory = open_store(tmp_path / "m.db").memory
    await memory.lessons.add("a", [entry("1"), entry("2")])
    await memory.close()

    def fails(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM lessons")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_place(tmp_path / "m.db", fails)
    async with a_bank(tmp_path / "m.db", "a", embedder="none") as bank:
        assert len(await bank.list()) == 2
    with closing(sqlite3.connect(tmp_path / "m.db")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
