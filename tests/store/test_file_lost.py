"""The file, or what SQLite keeps beside it, deleted or replaced while it is in use; a lock that somebody else holds."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from mulligan.core.episode import Acted
from mulligan.core.errors import RecordLost, StoreError
from mulligan.core.records import Attempt, Episode, Task
from mulligan.store import open_store
from mulligan.store.sqlite import SqliteStore


def delete(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    path.with_suffix(".other").write_bytes(path.read_bytes())
    path.with_suffix(".other").replace(path)


def begin_anew(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"")


def exists(path: Path) -> bool:
    return path.exists()


LOSSES = [(delete, "deleted"), (delete_all, "deleted"), (replace, "replaced")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "m.db"


@pytest.mark.parametrize(("lose", "said"), LOSSES)
async def test_nothing_is_said_to_be_stored_in_a_file_that_is_gone(
    path: Path, lose: Callable[[Path], None], said: str
) -> None:
    store = SqliteStore(path)
    await store.create(Episode("a", Task("p")))
    lose(path)
    for _ in range(2):  # the second time as the first
        with pytest.raises(RecordLost, match=f"m.db: it was {said} while it was in use"):
            await store.create(Episode("b", Task("p")))
        with pytest.raises(RecordLost, match=said):
            await store.load("a")
    await store.close()
    assert exists(path) == (said == "replaced")  # it is not made anew by those that look


@pytest.mark.parametrize(("lose", "said"), LOSSES)
async def test_an_episode_that_is_under_way_comes_to_its_end_and_then_says_so(
    path: Path, lose: Callable[[Path], None], said: str
) -> None:
    store = SqliteStore(path)
    await store.create(Episode("a", Task("p")))
    lease = await store.acquire("a", "me", 30)
    lose(path)
    await store.begin_step(lease, "trial.1/act/x#1", None, "hash")
    await store.finish_step(lease, "trial.1/act/x#1", None)
    await store.append(lease, 0, Acted(1, Attempt("paid for")))
    await store.renew(lease, 30)
    with pytest.raises(RecordLost, match=said):
        await store.release(lease)
    await store.close()


async def test_queued_work_is_not_accepted_into_a_file_that_is_gone(path: Path) -> None:
    memory = open_store(path).memory
    await memory.queue.enqueue("extract", "a", {"n": 1})
    delete(path)
    with pytest.raises(RecordLost):
        await memory.queue.enqueue("extract", "a", {"n": 2})
    await memory.close()


@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), ("-wal", "-shm")])
async def test_a_log_that_is_deleted_loses_nothing(path: Path, gone: tuple[str, ...]) -> None:
    store = SqliteStore(path)
    await store.create(Episode("a", Task("p")))
    await store.list()
    for suffix in gone:
        delete(Path(f"{path}{suffix}"))
    await store.create(Episode("b", Task("p")))
    # as after a crash: the file alone has to hold it
    alone = path.with_name("copy.db")
    shutil.copyfile(path, alone)
    copy = SqliteStore(alone)
    assert [episode.id for episode in await copy.list()] == ["b", "a"]
    await copy.close()
    await store.close()


async def test_a_log_that_another_process_began_anew_is_no_place_for_a_record(path: Path) -> None:
    store = SqliteStore(path)
    await store.create(Episode("a", Task("p")))
    begin_anew(Path(f"{path}-wal"))
    with pytest.raises(RecordLost, match="the log next to it"):
        await store.create(Episode("b", Task("p")))
    await store.close()


@pytest.fixture
def locked(path: Path) -> Iterator[Path]:
    """A store that another connection has locked."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        yield path
        other.execute("ROLLBACK")


def clock(step: float) -> Callable[[], float]:
    """Each look at it is this many seconds later."""
    ticks = count()
    return lambda: step * next(ticks)


@pytest.mark.slow
async def test_waiting_for_a_lock_is_reported_once(locked: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore(locked, busy_seconds=0.05, clock=clock(0.01))
    with pytest.raises(StoreError, match="is locked by another process"):
        await store.create(Episode("a", Task("p")))
    assert [record.message for record in caplog.records] == [
        f"waiting for another process that has {locked} locked (0.05 s at most)"
    ]
    await store.close()


async def test_a_limit_that_was_waited_out_is_not_waited_for_again(path: Path) -> None:
    """A run makes several writes while it gives up: create, release, what the bank does. All of them together wait
    once."""
    looks = count()

    def ticking() -> float:
        return 0.01 * next(looks)

    store = SqliteStore(path, busy_seconds=0.05, clock=ticking)
    await store.create(Episode("a", Task("p")))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked"):
            await store.create(Episode("b", Task("p")))
        first = next(looks)
        for _ in range(2):
            with pytest.raises(StoreError, match="is locked"):
                await store.create(Episode("b", Task("p")))
        assert next(looks) - first <= 6  # one try each: looked at before, after, and by this test
        other.execute("ROLLBACK")
    await store.create(Episode("b", Task("p")))
    await store.close()
