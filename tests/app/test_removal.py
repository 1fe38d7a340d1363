"""`removable_runs` and `remove_runs`: what goes, what stays and why, and what is never touched."""

import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import mulligan
from mulligan.app.config import load
from mulligan.app.removal import Removable
from mulligan.core.episode import Stopped
from mulligan.core.errors import NotFound
from mulligan.core.lesson_history import Addition
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Head, Lesson, Origin, Stop, Task
from mulligan.recording.holders import owner
from mulligan.store import open_store
from mulligan.store.sqlite import SqliteStore
from mulligan.workspace.git_workspace import GitWorkspace, Mode

MONTH = timedelta(days=30)
LONG_AGO = 1_000_000_000.0


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store(load().store)
    yield opened
    await opened.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "value.txt").write_text("empty")
    for command in ("init -q", "add .", "-c user.name=u -c user.email=u@e commit -qm x"):
        git(folder, *command.split())
    return folder


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True).stdout


def states(folder: Path) -> list[str]:
    return git(folder, "for-each-ref", "--format=%(refname)", "refs/mulligan").split()


def episode(id: str, repository: Path | None = None, started: float = LONG_AGO, **settings: str) -> Episode:
    workspace = {} if repository is None else {"workspace": {"folder": str(repository)}}
    head = Head({}, settings={**settings, **workspace})
    return Episode(id, Task("p"), id.partition(".")[0], head=head, started=started)


async def over(store: Store, *episodes: Episode, reason: str = "exhausted") -> None:
    for one in episodes:
        await store.create(one, {"tests.py": "assert True"})
        lease = await store.acquire(one.id, "me", 30)
        await store.append(lease, 0, Stopped(Stop(reason)))  # pyright: ignore[reportArgumentType]
        await store.release(lease)


async def opened(repository: Path, id: str) -> GitWorkspace:
    workspace = GitWorkspace(folder=str(repository))
    await workspace.open(episode(id))
    return workspace


def told(found: "tuple[Removable, ...] | list[Removable]") -> dict[str, str]:
    return {one.id: one.stays or one.what for one in found}


async def pruned(store: Store, older_than: timedelta | None = None) -> dict[str, str]:
    """What pruning did: what went as it was described, what stayed as why."""
    found = await mulligan.removable_runs(older_than=older_than, store=store)
    return told(list(await mulligan.remove_runs(found, store=store)))


async def left(store: Store) -> list[str]:
    return sorted(one.id for one in await store.list())


@pytest.mark.slow
async def test_a_run_that_is_named_goes_with_its_states_and_its_branch_stays(store: Store, repository: Path) -> None:
    await over(store, episode("aa11.1", repository), episode("aa11.2", repository), episode("bb22.1", repository))
    for id in ("aa11.1", "bb22.1"):
        await (await opened(repository, id)).close(episode(id))
    git(repository, "branch", "mulligan/aa11")
    found = await mulligan.removable_runs("aa1", store=store)
    assert told(list(found)) == {"aa11": f"could not be judged, 0 tries; 1 state in {repository / '.git'}"}
    assert await left(store) == ["aa11.1", "aa11.2", "bb22.1"]  # looking removes nothing
    await mulligan.remove_runs(found, store=store)
    assert await left(store) == ["bb22.1"]
    assert await store.files("bb22.1") == {"tests.py": "assert True"}  # a text that both rested on
    assert states(repository) == ["refs/mulligan/bb22.1/start"]
    assert "mulligan/aa11" in git(repository, "branch", "--list", "mulligan/*")
    for id in ("aa11", ""):  # an empty id is not the beginning of the only run
        with pytest.raises(NotFound):
            await mulligan.removable_runs(id, store=store)


async def test_old_runs_go_only_when_they_are_over(store: Store) -> None:
    await over(store, episode("old.1"), episode("recent.1", started=4_000_000_000.0), episode("bench.1", bench="b"))
    await over(store, episode("paused.1"), reason="interrupted")
    await store.create(episode("open.1"))
    assert await pruned(store) == {}
    assert await pruned(store, MONTH) == {"old": "could not be judged, 0 tries"}
    assert await left(store) == ["bench.1", "open.1", "paused.1", "recent.1"]


async def test_a_run_goes_when_all_its_restarts_are_over(store: Store) -> None:
    await over(store, episode("a.1"))
    await store.create(episode("a.2"))
    assert await pruned(store, MONTH) == {}


async def test_an_unfinished_run_goes_when_it_is_named(store: Store) -> None:
    await store.create(episode("open.1"))
    await mulligan.remove_runs(await mulligan.removable_runs("open", store=store), store=store)
    assert await left(store) == []


async def test_a_run_that_somebody_drives_stays_as_a_whole(store: Store) -> None:
    await over(store, episode("a.1"), episode("a.2"))
    lease = await store.acquire("a.2", owner(), 30)
    (one,) = await mulligan.remove_runs(await mulligan.removable_runs("a", store=store), store=store)
    assert "is in use by" in one.stays
    assert await left(store) == ["a.1", "a.2"]
    await store.release(lease)


async def test_a_run_of_a_benchmark_stays(store: Store) -> None:
    await over(store, episode("bench.1", bench="b1"))
    (one,) = await mulligan.removable_runs("bench", store=store)
    assert "a benchmark's report needs" in one.stays


@pytest.mark.slow
async def test_what_a_run_without_a_record_left_is_found_and_removed(
    store: Store, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was left by versions that made the place before the record, and where the store was deleted."""
    workspace = await opened(repository, "gone.1")
    assert (await pruned(store))["gone.1"].startswith("a process is working in ")
    for lock in workspace._locks.values():  # pyright: ignore[reportPrivateUsage]
        os.close(lock)  # as the system does when the process dies
    assert states(repository) == ["refs/mulligan/gone.1/start"]
    assert await pruned(store) == {
        "gone.1": f"no longer recorded; its working folder; 1 state in {repository / '.git'}",
    }
    assert states(repository) == []
    assert git(repository, "worktree", "list").count("\n") == 1
    assert os.listdir(Path(os.environ["MULLIGAN_HOME"], "workspaces")) == []


@pytest.mark.parametrize("mode", ["worktree", "copy"])
async def test_a_working_folder_without_a_lock_is_found_and_a_users_folder_is_not(
    store: Store, repository: Path, mode: Mode
) -> None:
    """As a removal leaves it that was cut off."""
    workspace = GitWorkspace(folder=str(repository), mode=mode)
    await workspace.open(episode("gone.1"))
    for lock in workspace._locks.values():  # pyright: ignore[reportPrivateUsage]
        os.close(lock)
    folders = Path(os.environ["MULLIGAN_HOME"], "workspaces")
    (folders / "gone.1" / "lock").unlink()
    (folders / "app" / "web-app").mkdir(parents=True)
    assert "its working folder" in (await pruned(store))["gone.1"]
    assert os.listdir(folders) == ["app"]
    assert git(repository, "worktree", "list").count("\n") == 1


@pytest.mark.slow
async def test_states_that_may_be_another_stores_go_only_when_they_are_named(
    store: Store, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await opened(repository, "theirs.1")).close(episode("theirs.1"))
    monkeypatch.chdir(repository)
    assert "another store may have its record" in (await pruned(store))["theirs.1"]
    assert states(repository) == ["refs/mulligan/theirs.1/start"]
    await mulligan.remove_runs(await mulligan.removable_runs("theirs.1", store=store), store=store)
    assert states(repository) == []


@pytest.mark.slow
async def test_of_a_run_that_is_over_the_working_folder_goes_and_the_states_stay(
    store: Store, repository: Path
) -> None:
    for id, reason in (("done.1", "exhausted"), ("paused.1", "interrupted")):
        await over(store, episode(id, repository), reason=reason)
        workspace = await opened(repository, id)
        for lock in workspace._locks.values():  # pyright: ignore[reportPrivateUsage]
            os.close(lock)
    found = await pruned(store)
    assert found["done.1"] == "its working folder"
    assert found["paused.1"].startswith("the run is not finished")
    assert len(states(repository)) == 2
    assert git(repository, "worktree", "list").count("\n") == 2
    assert await left(store) == ["done.1", "paused.1"]


async def test_lessons_stay_and_say_that_their_run_was_removed(store: Store) -> None:
    assert isinstance(store, SqliteStore)
    await over(store, episode("a.1"))
    lessons = [
        Lesson(name, name, "c", "success", origin=Origin("extracted", id)) for name, id in (("x", "a.1"), ("y", "b.1"))
    ]
    await store.memory.lessons.add("", [Addition(lesson, lesson.id) for lesson in lessons])
    await mulligan.remove_runs(await mulligan.removable_runs("a", store=store), store=store)
    from mulligan.bank.exchange.lesson_page import LessonPage

    kept = await store.memory.lessons.get("", ["x", "y"])
    assert [LessonPage(lesson).facts(str)["episode"] for lesson in kept] == ["a.1 (run removed)", "b.1"]


@pytest.mark.slow
async def test_a_record_that_cannot_be_read_is_no_reason_to_remove_what_belongs_to_it(
    store: Store, repository: Path
) -> None:
    await over(store, episode("odd.1", repository), reason="solved")  # without a trial: no state machine takes that
    await over(store, episode("bad.1", repository))
    for id in ("odd.1", "bad.1"):
        await (await opened(repository, id)).close(episode(id))
    with closing(sqlite3.connect(Path(os.environ["MULLIGAN_HOME"], "mulligan.db"))) as db, db:
        db.execute("UPDATE episodes SET record = '{' WHERE id = 'bad.1'")
    await store.create(episode("other.1", repository))
    assert await pruned(store, MONTH) == {}
    assert len(states(repository)) == 2
    await mulligan.remove_runs(await mulligan.removable_runs("bad", store=store), store=store)
    (one,) = await mulligan.remove_runs(await mulligan.removable_runs("odd", store=store), store=store)
    assert "Episode odd.1 cannot be read" in one.what
    assert await left(store) == ["other.1"]
    assert states(repository) == []
