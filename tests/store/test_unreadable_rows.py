"""One row that cannot be read hides no other; it is found, and set aside whole so that it can be put back by hand."""

from __future__ import annotations

import logging
import sqlite3
import struct
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from banks import a_bank
from lesson_kit import ALL, E1, entry

from mulligan.bank.bank import Bank
from mulligan.core.benchmarks import BenchRun
from mulligan.core.episode import Acted
from mulligan.core.errors import Unreadable
from mulligan.core.lesson_history import Account, Link, Receipt
from mulligan.core.lesson_store import Memory
from mulligan.core.lessons import Selection
from mulligan.core.records import Attempt, Episode, Task
from mulligan.recording.holders import owner
from mulligan.store import open_store
from mulligan.store.export import export
from mulligan.store.sqlite import SqliteStore
from mulligan.store.sqlite.schema import expected

NEWEST = "WHERE lesson = 2 AND record IS NOT NULL"
BAD_LESSON = {
    "bad JSON": f"UPDATE log SET record = '{{' {NEWEST}",
    "not UTF-8": f"UPDATE log SET record = CAST(x'7bff7d' AS TEXT) {NEWEST}",
    "a field is missing": f"UPDATE log SET record = json_remove(record, '$.title') {NEWEST}",
    "a field of the wrong type": f"UPDATE log SET record = json_set(record, '$.tags', 5) {NEWEST}",
    "a number": f"UPDATE log SET record = 5 {NEWEST}",
    "bytes": f"UPDATE log SET record = x'00ff' {NEWEST}",
    "no version": f"UPDATE log SET schema = 'x' {NEWEST}",
    "no line": f"DELETE FROM log {NEWEST}",
}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Three lessons, two of them linked, a recall with its outcome, an account of an episode, and a piece
    of work."""
    opened = open_store(tmp_path / "m.db").memory
    await opened.lessons.add("a", [entry("1"), entry("2"), entry("3")])
    await opened.lessons.link("a", [Link("2", "3", 0.9, E1)])
    await opened.lessons.recalled(Receipt("r", "a", 1.0, "q", {"2": 0.9}))
    await opened.lessons.outcome_of("a", "r", True)
    await opened.lessons.keep_accounts("a", [Account("e1", "p", 1.0, "t")], 9)
    await opened.queue.enqueue("k", "a", {"n": 1})
    yield opened
    await opened.close()


def sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def aside(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [statement for (statement,) in db.execute("SELECT statement FROM set_aside ORDER BY n")]


async def titles(memory: Memory) -> list[str]:
    return sorted(lesson.id for lesson in await memory.lessons.list("a", ALL))


@pytest.mark.parametrize("damage", BAD_LESSON)
async def test_a_lesson_that_cannot_be_read_hides_no_other(
    tmp_path: Path, memory: Memory, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    sql(tmp_path / "m.db", BAD_LESSON[damage])
    with caplog.at_level(logging.WARNING):
        assert await titles(memory) == ["1", "3"]
    assert "left out: Lesson 2 cannot be read" in caplog.text
    assert [lesson.id for lesson in await memory.lessons.list("a", Selection(text="title"))] == ["3", "1"]
    assert [lesson.id for lesson in await memory.lessons.list("a", Selection(limit=2))] == ["3", "1"]
    assert [lesson.id for lesson in await memory.lessons.there("a", ["3", "2", "1"])] == ["3", "1"]
    with pytest.raises(Unreadable, match=r"Lesson 2 cannot be read: .* See: mulligan memory verify"):
        await memory.lessons.get("a", ["2"])
    store = SqliteStore(tmp_path / "m.db")
    (archive,) = await store.memory.lessons.archive("a")
    assert [lesson.id for lesson in archive.lessons] == ["1", "3"]
    assert archive.links == ()
    await store.close()

    looked = await memory.lessons.verify()
    assert looked
    assert not any(finding.mended for finding in looked)
    mended = await memory.lessons.verify(mend=True)
    assert [finding.what for finding in mended] == [finding.what for finding in looked]
    assert all(finding.mended for finding in mended)
    assert await memory.lessons.verify() == []
    assert await titles(memory) == ["1", "3"]


async def test_what_was_set_aside_is_put_back_by_hand(tmp_path: Path, memory: Memory) -> None:
    (before,) = await memory.lessons.get("a", ["2"])
    sql(tmp_path / "m.db", f"UPDATE log SET record = '{{' || record {NEWEST}")
    await memory.lessons.verify(mend=True)
    statements = aside(tmp_path / "m.db")
    assert sum("INSERT OR REPLACE INTO log " in statement for statement in statements) == 3
    sql(tmp_path / "m.db", *(statement.replace("'{{", "'{") for statement in statements))
    assert await memory.lessons.verify() == []
    assert (await memory.lessons.get("a", ["2"]))[0] == before
    assert await memory.lessons.links("a", "2") == (Link("2", "3", 0.9, E1),)


async def test_every_byte_is_set_aside(tmp_path: Path, memory: Memory) -> None:
    damaged = "CAST(x'7b27ff00e9' AS TEXT)"
    sql(tmp_path / "m.db", f"UPDATE log SET record = {damaged}, at = 0.1 + 0.2 {NEWEST}")
    await memory.lessons.verify(mend=True)
    sql(tmp_path / "m.db", *aside(tmp_path / "m.db"))
    with closing(sqlite3.connect(tmp_path / "m.db")) as db:
        row = db.execute(f"SELECT typeof(record), CAST(record AS BLOB), at FROM log {NEWEST}").fetchone()
    assert row == ("text", b"{'\xff\x00\xe9", 0.1 + 0.2)


async def test_a_purge_takes_what_was_set_aside(tmp_path: Path, memory: Memory) -> None:
    sql(tmp_path / "m.db", BAD_LESSON["bad JSON"])
    await memory.lessons.verify(mend=True)
    assert aside(tmp_path / "m.db")
    await memory.lessons.purge("a", None)
    assert aside(tmp_path / "m.db") == []


async def test_a_lesson_whose_newest_line_cannot_be_read_is_what_it_was_before(tmp_path: Path, memory: Memory) -> None:
    (two,) = await memory.lessons.get("a", ["2"])
    await memory.lessons.change("a", replace(two, title="New"), "edited")
    sql(tmp_path / "m.db", "UPDATE log SET record = '[' WHERE seq = (SELECT version FROM lessons WHERE id = '2')")
    assert all(finding.mended for finding in await memory.lessons.verify(mend=True))
    assert await memory.lessons.verify() == []
    assert (await memory.lessons.get("a", ["2"]))[0].title == two.title


ELSEWHERE = {
    "a receipt": "UPDATE receipts SET record = '['",
    "an account": "UPDATE accounts SET record = '['",
    "the project of an account": "UPDATE accounts SET project = 'q'",
    "the episode of an account": "UPDATE accounts SET id = x'00'",
    "a count of outcomes": "UPDATE worth SET record = '[' WHERE lesson > 0",
    "a detail": "UPDATE log SET detail = '{' WHERE change = 'used'",
    "a payload": "UPDATE payloads SET payload = '{'",
    "a count": "UPDATE uses SET uses = 'many'",
    "a link": "UPDATE links SET similarity = 'near'",
    "a time": "UPDATE lessons SET created = 'then' WHERE id = '2'",
    "an id": "UPDATE lessons SET id = CAST(x'32ff' AS TEXT) WHERE id = '2'",
    "an agent": "UPDATE agents SET id = CAST(x'61ff' AS TEXT)",
    "an embedder": "UPDATE embedders SET id = CAST(x'61ff' AS TEXT)",
    "words": "UPDATE lessons SET terms = 'words' WHERE id = '2'",
    "a vector": "UPDATE vectors SET vector = 'words' WHERE n = 2",
    "the generation": "UPDATE bank SET generation = 'x'",
    "no generation": "DELETE FROM bank",
}


@pytest.mark.light_cases(5)
@pytest.mark.parametrize("damage", ELSEWHERE)
async def test_whatever_is_damaged_the_lessons_stay(tmp_path: Path, memory: Memory, damage: str) -> None:
    sql(tmp_path / "m.db", ELSEWHERE[damage])
    seen = await memory.lessons.list(None, ALL)
    assert len(seen) == 3
    assert len((await memory.lessons.delta(None, E1, queries=True)).rows) >= 2
    await memory.queue.pending()
    await memory.lessons.counts(None)
    looked = await memory.lessons.verify()
    assert looked
    mended = await memory.lessons.verify(mend=True)
    assert mended
    assert all(finding.mended for finding in mended)
    assert await memory.lessons.verify() == []
    assert await titles(memory) == ["1", "2", "3"]
    assert await memory.lessons.purge("a", None) == 3


OF_THE_BANK = (
    *("agents", "bank", "embedders", "lessons", "log", "uses", "vectors", "query_vectors", "links", "receipts"),
    *("keys", "accounts", "found_kinds", "worth"),
)


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("table", [name for name, one in expected().items() if one.kind == "table"])
async def test_a_table_that_is_gone(tmp_path: Path, memory: Memory, table: str) -> None:
    sql(tmp_path / "m.db", f"DROP TABLE {table}")
    for agent in ("a", None):  # nothing raises
        await memory.lessons.list(agent, ALL)
        await memory.lessons.delta(agent, E1, queries=True)
    if table not in ("agents", "lessons", "log"):
        assert await titles(memory) == ["1", "2", "3"]
    looked = await memory.lessons.verify()
    assert f"The table {table} is missing" in looked[0].what
    assert all(finding.mended for finding in await memory.lessons.verify(mend=True))
    assert await memory.lessons.verify() == []
    assert await titles(memory) == ([] if table == "log" else ["1", "2", "3"])
    await memory.lessons.add("a", [entry("9")])
    assert "9" in await titles(memory)
    assert await memory.lessons.verify() == []


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("table", OF_THE_BANK)
async def test_a_purge_does_without_a_table(tmp_path: Path, memory: Memory, table: str) -> None:
    sql(tmp_path / "m.db", f"DROP TABLE {table}")
    await memory.lessons.purge("a", None)
    assert await titles(memory) == []
    assert await memory.lessons.verify() == []


@pytest.mark.light_cases(8)
@pytest.mark.parametrize("index", [name for name, one in expected().items() if one.kind == "index"])
async def test_an_index_that_is_gone_is_made_again(tmp_path: Path, memory: Memory, index: str) -> None:
    sql(tmp_path / "m.db", f"DROP INDEX {index}")
    assert [finding.what for finding in await memory.lessons.verify()] == [f"The index {index} is missing."]
    assert [finding.mended for finding in await memory.lessons.verify(mend=True)] == [True]
    assert await memory.lessons.verify() == []


async def test_an_account_whose_row_was_changed_is_found_by_its_record_again(tmp_path: Path, memory: Memory) -> None:
    await memory.lessons.keep_accounts("a", [Account("e2", "p", 2.0, "t")], 9)
    sql(tmp_path / "m.db", "UPDATE accounts SET project = 'q' WHERE id = 'e1'")
    assert [one.id for one in await memory.lessons.accounts("a", "p", 9)] == ["e2"]
    (found,) = await memory.lessons.verify(mend=True)
    assert found.what == "The account of e1: its row differs from its record."
    assert [one.id for one in await memory.lessons.accounts("a", "p", 9)] == ["e2", "e1"]
    sql(tmp_path / "m.db", "UPDATE accounts SET record = (SELECT record FROM accounts WHERE id = 'e2')")
    (found,) = await memory.lessons.verify(mend=True)
    assert found.mended
    assert [one.id for one in await memory.lessons.accounts("a", "p", 9)] == ["e2"]
    assert await memory.lessons.verify() == []


async def test_what_a_newer_mulligan_wrote_is_left_alone(tmp_path: Path, memory: Memory) -> None:
    sql(tmp_path / "m.db", f"UPDATE log SET schema = 99 {NEWEST}")
    found = await memory.lessons.verify(mend=True)
    assert found[0].what == "A newer version of Mulligan wrote 1 record. Upgrade to check and repair them."
    assert not any(finding.mended for finding in found)
    sql(tmp_path / "m.db", f"UPDATE log SET schema = 1 {NEWEST}")
    assert await memory.lessons.verify() == []


async def test_work_that_cannot_be_read_does_not_hold_up_the_rest(tmp_path: Path, memory: Memory) -> None:
    second = await memory.queue.enqueue("k", "a", {"n": 2})
    sql(tmp_path / "m.db", "UPDATE payloads SET payload = '{' WHERE n = 1")
    claimed = await memory.queue.claim(owner(), 60, ["k"])
    assert claimed is not None
    assert claimed[0].id == second
    assert [work.id for work in await memory.queue.pending()] == [second]


async def test_a_search_goes_on_with_the_next_best(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db") as bank:
        for name in ("Orders", "Orders of invoices", "Orders of the history"):
            await bank.add(name, f"{name} are opened first.")
        (best,) = (await bank.recall("orders", top_k=1, threshold=0.0)).lessons
        sql(tmp_path / "m.db", "UPDATE log SET record = '{' WHERE record IS NOT NULL AND lesson = 1")
        found = await bank.recall("orders", top_k=3, threshold=0.0)
        assert len(found.lessons) == 2
        assert (await bank.recall("orders", top_k=1, threshold=0.0)).lessons
        assert best.title == "Orders"


async def told(bank: Bank) -> list[str]:
    return [finding.what for finding in await bank.verify(mend=True)]


async def test_words_and_vectors_are_made_again_for_every_agent(tmp_path: Path) -> None:
    async with a_bank(tmp_path / "m.db", "bob") as bank:
        lesson = await bank.add("Orders", "Orders are opened first.")
        wrong = struct.pack("<f", float("inf")).hex()
        sql(
            tmp_path / "m.db",
            "UPDATE lessons SET terms = x'01ff'",
            f"UPDATE vectors SET vector = CAST(x'{wrong}' || substr(vector, 5) AS BLOB)",
        )
    async with a_bank(tmp_path / "m.db", None) as bank:
        assert await told(bank) == [f"Lesson {lesson.id} has lost its search data."]
        assert await told(bank) == []
    async with a_bank(tmp_path / "m.db", "bob") as bank:
        (found,) = (await bank.recall("orders opened", threshold=0.0)).lessons
        assert (found.id, found.embedder) == (lesson.id, lesson.embedder)


BAD_RUN = {
    "the record": "UPDATE episodes SET record = '{' WHERE id = 'r.2'",
    "the record's bytes": "UPDATE episodes SET record = CAST(x'7bff7d' AS TEXT) WHERE id = 'r.2'",
    "an event": 'UPDATE events SET event = \'{"event":"acted"}\' WHERE episode = 2',
    "the order of events": "UPDATE events SET seq = 7 WHERE episode = 2",
    "a step": "UPDATE steps SET request = '{' WHERE episode = 2",
    "a result": "UPDATE results SET result = '{'",
    "a column": "UPDATE episodes SET run = CAST(x'72ff' AS TEXT) WHERE id = 'r.2'",
    "a text": "UPDATE texts SET content = 'x'",
}


@pytest.mark.parametrize("damage", BAD_RUN)
async def test_a_run_that_cannot_be_read_hides_no_other(tmp_path: Path, damage: str) -> None:
    store = SqliteStore(tmp_path / "m.db")
    for n in (1, 2, 3):
        await store.create(Episode(f"r.{n}", Task("p"), run="r"), {"prompt": f"text {n}"} if n == 2 else {})
        lease = await store.acquire(f"r.{n}", owner(), 60)
        await store.append(lease, 0, Acted(1, Attempt("x")))
        if n == 2:
            await store.begin_step(lease, "k#1", {"x": 1}, "h")
            await store.finish_step(lease, "k#1", {"y": 1})
    sql(tmp_path / "m.db", BAD_RUN[damage])
    for found in (await store.list(), await store.briefs()):
        assert {"r.1", "r.3"} <= {one.id for one in found}
    left = await export(store, ["r.1", "r.2", "r.3"])
    assert {"r.1", "r.3"} <= {one["episode"]["id"] for one in left["episodes"]}  # pyright: ignore
    lessons = store.memory.lessons
    looked = await lessons.verify()
    assert looked
    mended = await lessons.verify(mend=True)
    assert {finding.what for finding in looked} <= {finding.what for finding in mended}
    assert all(finding.mended for finding in mended)
    assert await lessons.verify() == []
    kept = {episode.id for episode in await store.list(run="r")}
    assert kept == ({"r.1", "r.3"} if damage.startswith("the record") else {"r.1", "r.2", "r.3"})
    await store.close()


async def test_a_benchmark_run_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    for name in ("b1", "b2"):
        await store.benches.begin(BenchRun(name, "humaneval", 1.0, {}, (), {}))
    sql(tmp_path / "m.db", "UPDATE bench_runs SET record = '{' WHERE id = 'b1'")
    assert [run.id for run in await store.benches.runs()] == ["b2"]
    with pytest.raises(Unreadable, match="Benchmark run b1 cannot be read"):
        await store.benches.run("b1")
    assert [finding.mended for finding in await store.memory.lessons.verify(mend=True)] == [True]
    assert await store.memory.lessons.verify() == []
    await store.close()
