"""The bank in the file: files of version 1, what a purge leaves behind, what is found wrong and what of it is mended."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lesson_kit import ALL, E1, entry, vectors

from mulligan.core.episode import Acted
from mulligan.core.errors import StoreError
from mulligan.core.lesson_history import Fault, Link, Receipt
from mulligan.core.lesson_store import Memory
from mulligan.core.records import Attempt, Episode, Task
from mulligan.recording.holders import owner
from mulligan.store import open_store
from mulligan.store.sqlite import SqliteStore
from mulligan.store.sqlite.schema import MIGRATIONS, migrate


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Three lessons, two of them merged and one linked, a recall, and a piece of work."""
    opened = open_store(tmp_path / "m.db").memory
    await opened.lessons.add("a", [entry("1"), entry("2"), entry("3")])
    await opened.lessons.merge("a", entry("m"), ["1", "2"])
    await opened.lessons.link("a", [Link("3", "m", 0.9, E1)])
    await opened.lessons.recalled(Receipt("r", "a", 1.0, "q", {"3": 0.9}))
    await opened.queue.enqueue("k", "a", {"n": 1})
    yield opened
    await opened.close()


def sql(path: Path, *statements: str) -> list[Any]:
    """As somebody else's program would, with no regard for what belongs together; the rows of the last."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        rows: list[Any] = []
        for statement in statements:
            rows = db.execute(statement).fetchall()
        return rows


def started(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def test_a_file_of_version_1_keeps_its_episodes_and_gets_a_bank(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:1])
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert "lessons" not in {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        record = (
            '{"id":"e1","task":{"prompt":"p","inputs":{},"images":[]},"run":"r","agent":"","plan":{"recalls":false,'
            '"reflects":true},"started":1.5}'
        )
        db.execute("INSERT INTO episodes (id, run, schema, record) VALUES ('e1', 'r', 1, ?)", (record,))
    store = SqliteStore(path)
    assert await store.load("e1") == Episode("e1", Task("p"), run="r", started=1.5)
    lease = await store.acquire("e1", owner(), 60)
    await store.append(lease, 0, Acted(1, Attempt("x")))
    await store.memory.lessons.add("a", [entry("1")])
    await store.close()
    again = open_store(path).memory
    assert [lesson.id for lesson in await again.lessons.list("a")] == ["1"]
    await again.close()
    assert sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


@pytest.mark.slow
async def test_two_processes_that_upgrade_at_once_both_succeed(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, MIGRATIONS[:1])
    program = (
        "import asyncio, sys; from mulligan.store import open_store;"
        "print(asyncio.run(open_store(sys.argv[1]).memory.queue.enqueue('k', 'a', 1)))"
    )
    command = [sys.executable, "-c", program, str(path)]
    running = [started(command) for _ in range(3)]
    said = [process.communicate(timeout=120) for process in running]
    assert [wrong for _, wrong in said] == [""] * 3
    memory = open_store(path).memory
    assert {work.id for work in await memory.queue.pending()} == {id.strip() for id, _ in said}
    await memory.close()


async def test_episodes_and_lessons_share_their_connections(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("e", Task("p")))
    await store.memory.lessons.add("a", [entry("1")])
    await store.close()
    with pytest.raises(StoreError, match="was closed"):
        await store.memory.lessons.list("a")


async def test_a_purged_text_is_in_no_byte_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    memory = open_store(path).memory
    for n in range(40):
        await memory.lessons.add("a", [entry(f"k{n}", f"kept {n} " + "x" * 500), entry(f"p{n}", f"hush-hush {n}")])
    await memory.queue.enqueue("k", "b", {"text": "hush-hush " * 1000})
    files = [path, path.with_name("m.db-wal")]
    assert any(b"hush-hush" in file.read_bytes() for file in files)
    await memory.lessons.purge("a", [f"p{n}" for n in range(40)])
    await memory.lessons.add("b", [entry("1", "hush-hush")])
    await memory.lessons.purge("b", None)
    assert not any(b"hush-hush" in file.read_bytes() for file in files)
    assert len(await memory.lessons.list("a")) == 40
    await memory.close()


async def test_a_cache_in_another_process_lets_go_of_what_was_purged(tmp_path: Path, memory: Memory) -> None:
    other = open_store(tmp_path / "m.db").memory
    seen = await other.lessons.delta(None, E1)
    await memory.lessons.purge("a", ["3"])
    some = await other.lessons.delta(None, E1, seen.tip)
    assert ([row.n for row in seen.rows if row.id == "3"], some.generation) == (list(some.purged), seen.generation)
    await memory.lessons.purge("a", None)
    assert (await other.lessons.delta(None, E1, some.tip)).generation != seen.generation
    await other.close()


async def mended(memory: Memory) -> list[str]:
    """What is found, after it was seen that looking changes nothing, and that what was mended is well."""
    first = await memory.lessons.verify()
    assert await memory.lessons.verify() == first
    assert not any(finding.mended for finding in first)
    found = await memory.lessons.verify(mend=True)
    assert [finding.what for finding in found] == [finding.what for finding in first]
    assert all(finding.mended for finding in found)
    assert await memory.lessons.verify() == []
    return [finding.what for finding in found]


async def test_a_sound_file_is_said_to_be(memory: Memory) -> None:
    before = await memory.lessons.delta("a", E1)
    assert await memory.lessons.verify(mend=True) == []
    assert (await memory.lessons.delta("a", E1)).generation == before.generation


async def test_a_row_that_is_not_what_its_history_says(tmp_path: Path, memory: Memory) -> None:
    before = await memory.lessons.list("a", ALL), await memory.lessons.delta("a", E1)
    sql(tmp_path / "m.db", "UPDATE lessons SET state = 'retired', success = 0, version = 1 WHERE id = '3'")
    assert await mended(memory) == ["Lesson 3: its row differs from its history."]
    after = await memory.lessons.delta("a", E1)
    assert await memory.lessons.list("a", ALL) == before[0]
    assert (after.rows, after.generation) == (before[1].rows, before[1].generation + 1)


async def test_a_row_that_is_gone_is_made_again_from_its_history(tmp_path: Path, memory: Memory) -> None:
    (before,) = await memory.lessons.get("a", ["3"])
    sql(tmp_path / "m.db", "DELETE FROM lessons WHERE id = '3'")
    first = await memory.lessons.verify(mend=True)
    assert first[0] == Fault(
        "Lesson 3 has only its history left. With --mend, its words find it again after its next edit.",
        True,
        "3",
    )
    assert await memory.lessons.verify() == []
    (after,) = await memory.lessons.get("a", ["3"])
    assert (after.title, after.content, after.uses, after.embedder) == (before.title, before.content, 1, None)
    assert [lesson.id for lesson in await memory.lessons.unembedded("a", E1, 9)] == ["3"]


BROKEN = {
    "a vector of the wrong size": "UPDATE vectors SET vector = x'00' WHERE n = 3",
    "vectors of an embedder that is not known": "UPDATE lessons SET embedder = 99 WHERE n = 3",
    "an embedder and no vector": "DELETE FROM vectors WHERE n = 3",
    "vectors of no embedder": "UPDATE lessons SET embedder = NULL WHERE n = 3",
}


@pytest.mark.parametrize("what", BROKEN)
async def test_vectors_that_cannot_be_used_are_dropped(tmp_path: Path, memory: Memory, what: str) -> None:
    sql(tmp_path / "m.db", BROKEN[what])
    assert await mended(memory) == [f"Lesson 3 has {what}. They are computed again when the bank next embeds lessons."]
    await memory.lessons.set_vectors("a", E1, {"3": vectors("3")})
    assert (await memory.lessons.get("a", ["3"]))[0].embedder == E1


async def test_vectors_of_the_superseded_are_dropped(tmp_path: Path, memory: Memory) -> None:
    sql(
        tmp_path / "m.db",
        "UPDATE lessons SET embedder = 1 WHERE id = '1'",
        "INSERT INTO vectors VALUES (1, zeroblob(16))",
    )
    found = await mended(memory)
    assert found == [
        "Lesson 1 has vectors, though it is superseded. They are computed again when the bank next embeds lessons."
    ]


async def test_a_successor_that_is_missing(memory: Memory) -> None:
    await memory.lessons.add("b", [entry("s", state="superseded", superseded_by="m")])  # m is another agent's
    assert await mended(memory) == ["Lesson s was merged into m, which is missing. With --mend, it is retired."]
    (lesson,) = await memory.lessons.get("b", ["s"])
    assert (lesson.state, lesson.superseded_by) == ("retired", None)
    assert (await memory.lessons.history("b", "s"))[-1].change == "retired"


async def test_what_hangs_on_nothing_is_removed(tmp_path: Path, memory: Memory) -> None:
    sql(
        tmp_path / "m.db",
        "INSERT INTO vectors VALUES (77, x'00')",
        "INSERT INTO links VALUES (3, 78, 'e', 0.5)",
        "INSERT INTO uses VALUES (79, 1, 1.0)",
        "INSERT INTO payloads VALUES (80, '1')",
    )
    assert sorted(what.split(" of ")[1].split()[0] for what in await mended(memory)) == [
        "links",
        "payloads",
        "uses",
        "vectors",
    ]
    assert len(await memory.lessons.links("a", "3")) == 1


async def test_work_that_nobody_does_is_queued_again(tmp_path: Path, memory: Memory) -> None:
    gone = started([sys.executable, "-c", ""])
    gone.communicate(timeout=60)
    claimed = await memory.queue.claim(owner().replace(owner().split(":")[1], str(gone.pid)), 3600, ["k"])
    assert claimed is not None
    assert await mended(memory) == [
        f"Work {claimed[0].id} is running, but no process does it. With --mend, it can be done again."
    ]
    assert sql(tmp_path / "m.db", "SELECT status, owner FROM work") == [("queued", "")]
    sql(tmp_path / "m.db", "DELETE FROM payloads")
    assert await mended(memory) == [
        f"Work {claimed[0].id} has lost its payload, so it cannot run. Learn from the episode again."
    ]
    assert (await memory.queue.look("a", claimed[0].id)).error == "its payload was lost"


async def test_a_damaged_index_is_made_again(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "m.db"
    sql(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'agent, state', 'agent, id') WHERE name = 'lessons_by_state'"
        )
    again = open_store(path).memory  # the index now says that it is of other columns than it holds
    first = await again.lessons.verify()
    assert first
    assert all("lessons_by_state" in finding.what for finding in first)
    assert all(finding.mended for finding in await again.lessons.verify(mend=True))
    assert await again.lessons.verify() == []
    await again.close()


async def test_a_damaged_page_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    memory = open_store(path).memory
    for n in range(30):
        await memory.lessons.add("a", [entry(f"{n}", f"{n} " + "x" * 1000)])
    await memory.close()
    (root,) = sql(path, "SELECT rootpage FROM sqlite_master WHERE name = 'vectors'")[0]
    with path.open("r+b") as file:
        file.seek(4096 * (root - 1))
        file.write(b"\xff" * 4096)
    memory = open_store(path).memory
    for mend in (False, True):
        found = await memory.lessons.verify(mend=mend)
        assert found
        assert not any(finding.mended for finding in found)
        assert "The file is damaged" in found[0].what
    await memory.close()
