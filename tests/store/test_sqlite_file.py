"""The file itself: versions, other programs' files, broken, locked, full and read-only ones."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mulligan.core.codec import record_text
from mulligan.core.errors import StoreError
from mulligan.core.records import Episode, Task
from mulligan.store.sqlite import SqliteStore
from mulligan.store.sqlite.file_errors import explained
from mulligan.store.sqlite.schema import APPLICATION, MIGRATIONS, migrate


async def refused(path: Path, said: str) -> None:
    store = SqliteStore(path, busy_seconds=0.1)
    for _ in range(2):  # the second time as the first
        with pytest.raises(StoreError, match=said):
            await store.list()
        with pytest.raises(StoreError, match=said):
            await store.create(Episode("e", Task("p")))
    await store.close()


def ran(program: str, path: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, which `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def grows_to(file: Path, size: int) -> bool:
    until = time.monotonic() + 20
    while time.monotonic() < until and file.stat().st_size < size:
        time.sleep(0.02)
    return file.stat().st_size >= size


def lock(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o444)


def pragmas(path: Path, *names: str) -> list[object]:
    with closing(sqlite3.connect(path)) as db:
        return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


async def test_a_new_file_is_ours_at_the_newest_version(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.list()
    await store.close()
    assert pragmas(tmp_path / "m.db", "user_version", "application_id", "journal_mode") == [
        len(MIGRATIONS),
        APPLICATION,
        "wal",
    ]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("statement", ["sqlite_master", "application_id", "user_version"])
def test_a_file_that_another_makes_meanwhile_is_not_taken_for_another_programs(tmp_path: Path, statement: str) -> None:
    path, met = tmp_path / "m.db", list[str]()

    def meanwhile(about_to: str) -> None:
        if statement not in about_to or met:
            return
        met.append(about_to)
        other = sqlite3.connect(path, timeout=0, isolation_level=None)
        with closing(other), suppress(sqlite3.OperationalError):  # held off
            migrate(other, path)

    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        db.set_trace_callback(meanwhile)
        with suppress(sqlite3.OperationalError):  # busy: tried again by who opens
            migrate(db, path)
        db.set_trace_callback(None)
        migrate(db, path)
    assert met
    assert pragmas(path, "user_version", "application_id") == [len(MIGRATIONS), APPLICATION]


async def test_an_idle_store_folds_its_log_into_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("e", Task("p" * 100_000)))
    assert await asyncio.to_thread(grows_to, tmp_path / "m.db", 100_000)
    await store.close()


async def test_an_older_file_is_brought_up_to_date_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    await store.create(Episode("e", Task("p"), run="r"), {"f": "text"})
    await store.close()
    later = (
        *MIGRATIONS,
        ("ALTER TABLE episodes ADD COLUMN label TEXT NOT NULL DEFAULT ''", "UPDATE episodes SET label = upper(run)"),
        ("CREATE TABLE labels (name TEXT NOT NULL UNIQUE)", "INSERT INTO labels SELECT label FROM episodes"),
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, later)
        migrate(db, path, later)
        assert db.execute("SELECT id, label FROM episodes").fetchall() == [("e", "R")]
        assert db.execute("SELECT name FROM labels").fetchall() == [("R",)]
    assert pragmas(path, "user_version") == [len(later)]


async def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    await store.create(Episode("e", Task("p")))
    await store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db, pytest.raises(sqlite3.OperationalError):
        migrate(db, path, (*MIGRATIONS, ("DELETE FROM episodes", "SELECT nothing FROM nowhere")))
    assert pragmas(path, "user_version") == [len(MIGRATIONS)]
    again = SqliteStore(path)
    assert (await again.load("e")).id == "e"
    await again.close()


async def test_a_file_of_version_2_knows_whose_its_episodes_are(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:2])
        rows = [
            (f"e{n}", record_text(Episode(f"e{n}", Task("p"), agent=agent))) for n, agent in enumerate(("a", "", "b"))
        ]
        rows.append(("broken", "{"))
        for id, record in rows:
            db.execute("INSERT INTO episodes (id, run, schema, record) VALUES (?, '', 1, ?)", (id, record))
    store = SqliteStore(path)
    assert [brief.id for brief in await store.briefs(agent="a")] == ["e0"]
    assert await store.agents() == ("a", "b")
    assert await store.ids("") == ("broken", "e2", "e1", "e0")
    await store.close()


async def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.list()
    await store.close()
    with closing(sqlite3.connect(tmp_path / "m.db")) as db:
        db.execute("PRAGMA user_version = 99")
    await refused(
        tmp_path / "m.db",
        rf"newer version of Mulligan: it has version 99, but the installed Mulligan supports version {len(MIGRATIONS)}\. Upgrade",
    )


async def test_another_programs_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
        db.commit()
    before = path.read_bytes()
    await refused(path, "another program's database")
    assert path.read_bytes() == before


async def test_a_file_that_is_not_a_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_text("Dear diary, " * 100)
    await refused(path, "is not a Mulligan database")
    assert path.read_text().startswith("Dear diary")


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.touch()
    store = SqliteStore(path)
    assert await store.list() == ()
    await store.close()


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    await refused(tmp_path, "cannot be opened")


async def test_a_device_without_an_end_is_not_copied() -> None:
    async with asyncio.timeout(20):
        store = SqliteStore(Path("/dev/zero"), busy_seconds=0.1)
        with pytest.raises(StoreError):
            await store.create(Episode("e", Task("p")))
        with suppress(StoreError):
            assert await store.list() == ()
        await store.close()


async def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    await refused(
        tmp_path / "file" / "m.db",
        r"The store's folder .*/file cannot be created: File exists\. Set MULLIGAN_HOME to another folder",
    )


async def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path)
    for n in range(50):
        await store.create(Episode(f"e{n}", Task("p" * 2000)))
    await store.close()
    with path.open("r+b") as file:
        file.seek(4096 * 1 + 8)
        file.write(os.urandom(path.stat().st_size - 4096 - 8))
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="is damaged"):
        await store.list()
    await store.close()


async def test_a_long_writer_elsewhere_is_waited_for_and_then_said(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = SqliteStore(path, busy_seconds=0.1)
    await store.create(Episode("a", Task("p")))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another process"):
            await store.create(Episode("b", Task("p")))
        assert [episode.id for episode in await store.list()] == ["a"]  # reading goes on
        other.execute("ROLLBACK")
    await store.create(Episode("b", Task("p")))
    assert len(await store.list()) == 2
    await store.close()


async def test_the_event_loop_goes_on_while_a_short_write_waits_for_a_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("a", Task("p")))  # from now on short writes are done in this thread
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.create(Episode("b", Task("p"))))
        await asyncio.sleep(0)
        other.execute("ROLLBACK")  # by the thread that would be blocked
    async with asyncio.timeout(20):
        await waiting
    assert len(await store.list()) == 2
    await store.close()


async def test_a_short_write_overtakes_no_write_that_was_begun_before(tmp_path: Path) -> None:
    names = [f"{pair:02}{which}" for pair in range(40) for which in "ab"]
    async with SqliteStore(tmp_path / "m.db") as store:
        for a, b in zip(names[::2], names[1::2], strict=True):
            long = store.create(Episode(a, Task("p")), {"file": "its text goes to a thread"})
            await asyncio.gather(long, store.create(Episode(b, Task("p"))))
        assert [one.id for one in await store.list(limit=100)] == names[::-1]


async def test_a_long_burst_of_short_writes_leaves_a_short_log(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "m.db") as store:
        for n in range(1000):
            await store.create(Episode(f"e{n}", Task("p" * 4000)))
        assert (tmp_path / "m.db-wal").stat().st_size < 12e6, "of some 30 MB that were written"


SMALL = """
import asyncio, resource, sys
from mulligan.core.errors import StoreError
from mulligan.core.records import Episode, Task
from mulligan.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    await store.create(Episode("first", Task("p")))
    print("first")
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
    try:
        for n in range(100):
            await store.create(Episode(f"e{n}", Task("x" * 10_000)))
            print(f"e{n}")
    except StoreError as error:
        print(error)

asyncio.run(main())
"""


async def test_a_disk_that_takes_no_more_is_reported_and_what_was_kept_is_safe(tmp_path: Path) -> None:
    *told, error = ran(SMALL, tmp_path / "m.db").stdout.splitlines()
    assert "the disk failed to read or write" in error
    assert 1 < len(told) < 100
    store = SqliteStore(tmp_path / "m.db")
    assert [episode.id for episode in await store.list(limit=1000)] == told[::-1]
    await store.close()


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db")) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as caught:
            db.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    assert "the disk is full" in str(explained(caught.value, tmp_path / "m.db"))


READ_ONLY = """
import asyncio, os, sys
from mulligan.core.errors import StoreError
from mulligan.core.records import Episode, Task
from mulligan.store.sqlite import SqliteStore

async def main():
    if os.geteuid() == 0:
        os.setuid(65534)  # root may write to anything
    store = SqliteStore(sys.argv[1])
    print([episode.id for episode in await store.list()])
    try:
        await store.create(Episode("e", Task("p")))
    except StoreError as error:
        print(error)
    await store.close()

asyncio.run(main())
"""


SHUT = """
import os, sys
import mulligan
from mulligan.functions.shared import close_shared

same = mulligan.retry(lambda task: task)
same("imports what it needs, which others may not read")
close_shared()
os.environ["MULLIGAN_HOME"] = sys.argv[1]
os.chdir(os.path.join(os.path.dirname(sys.argv[1]), "shut"))
os.chmod(".", 0)
if os.geteuid() == 0:
    os.setuid(65534)
print(same("done"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["shut", "home"])
def test_a_home_or_a_working_folder_that_may_not_be_searched_does_not_stop_a_function(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    (open_folder / "shut").mkdir()
    assert ran(SHUT, open_folder / place).stdout == "done\n"
    (open_folder / "shut").chmod(0o700)


async def test_a_read_only_file_can_be_read_and_says_why_it_is_not_written(open_folder: Path) -> None:
    path = open_folder / "m.db"
    store = SqliteStore(path)
    await store.create(Episode("kept", Task("p")))
    await store.list()
    lock(open_folder)
    listed, error = ran(READ_ONLY, path).stdout.splitlines()
    assert listed == "['kept']"
    assert "cannot be written: it, its folder or its disk is read-only" in error
    await store.close()
