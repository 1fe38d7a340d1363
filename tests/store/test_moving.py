"""A store that is copied to another of any kind is the same, record by record, and a copy that was cut off goes on."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lesson_kit import ADDRESSES, ALL, KINDS, entry

from mulligan.app.memory import open_bank
from mulligan.cli.main import cli
from mulligan.core.benchmarks import BenchRun, CaseResult, Marked
from mulligan.core.episode import Acted, Evaluated, Stopped
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.lesson_history import Account, Link, Receipt
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Feedback, Image, Stop, Task
from mulligan.store import moving, open_store
from mulligan.store.moving import move
from mulligan.store.sqlite.schema import MIGRATIONS, expected
from mulligan.store.state import state

PICTURE = Image("image/png", b"bytes")


async def fill(store: Store) -> None:
    """Episodes with images and a journal, banks with history, receipts, quarantine, merges and a queue, a benchmark."""
    lessons, queue = store.memory.lessons, store.memory.queue
    for n, agent in enumerate(("a", "", "b' OR 1=1")):
        id = f"e{n}"
        await store.create(Episode(id, Task("p \U0001f600", images=(PICTURE,)), agent=agent), {"f": f"text {n}"})
        lease = await store.acquire(id, "me", 60)
        await store.begin_step(lease, "trial.1/act/model.actor#1", {"n": n}, f"h{n}")
        await store.finish_step(lease, "trial.1/act/model.actor#1", {"text": "y"})
        await store.append(lease, 0, Acted(1, Attempt("y")))
        await store.append(lease, 1, Evaluated(1, Feedback(True, "t")))
        await store.append(lease, 2, Stopped(Stop("solved")))
        await lessons.add(agent, [entry(str(k), tags=("t",)) for k in range(4)])
        await lessons.add(agent, [entry("5", state="quarantined", embedder=None)])
        await lessons.link(agent, [Link("0", "1", 0.123456789012345, "e")])
        await lessons.merge(agent, entry("m", embedder=None), ["0", "1"])
        await lessons.recalled(Receipt("r", agent, 1.5, "q", {"2": 0.5}, withheld={"3": 0.25}, drawn={"3": 0.5}))
        await lessons.keep_accounts(agent, [Account(id, "p", 1.0, "t", True)], 10)
        await queue.enqueue("k", agent, {"success": True}, key="once", follows=["r"])
        await queue.enqueue("k", agent, {"n": n}, waiting=True)
        claimed = await queue.claim("me", 60, ["k"])
        assert claimed is not None
        await queue.finish(claimed[1], {"success": True})
    await lessons.recalled(Receipt("all", None, 2.0, "q", {"m": 0.5}))
    await store.benches.begin(BenchRun("run", "bench", 1.0, {}, ("case",), {}))
    await store.benches.settle("run", CaseResult(1, "case", "solved", (Marked("e0"),)))


async def told(store: Store) -> dict[str, Any]:
    """What the protocols tell of it all."""
    lessons = store.memory.lessons
    episodes = await store.list()
    return {
        "episodes": episodes,
        "events": [await store.events(one.id) for one in episodes],
        "steps": [await store.steps(one.id) for one in episodes],
        "files": [await store.files(one.id) for one in episodes],
        "archives": await lessons.archive(None),
        "lessons": await lessons.list(None, ALL),
        "rows": (await lessons.delta(None, "embedder-1", queries=True)).rows,
        "queue": await store.memory.queue.pending(),
        "runs": await store.benches.runs(),
        "results": await store.benches.results("run"),
        "arms": await store.arms(),
    }


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(ADDRESSES["sqlite"](tmp_path / "source")) as store:
        await fill(store)
        yield store


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("kind", KINDS)
async def test_there_and_back_it_is_the_same(source: Store, tmp_path: Path, kind: str) -> None:
    before = await told(source)
    async with (
        open_store(ADDRESSES[kind](tmp_path / "there")) as there,
        open_store(ADDRESSES["sqlite"](tmp_path / "back")) as back,
    ):
        moved = {one.table: one.compared for one in await move(source, there)}
        assert moved["lessons"] == 18
        assert await told(there) == before
        assert await there.memory.lessons.verify() == []
        await move(there, back)
        assert await told(back) == before
        # it goes on where the other ended: no number is given twice
        await there.memory.lessons.add("a", [entry("new")])
        await there.create(Episode("new", Task("p")))
        assert len(await there.memory.lessons.list("a", ALL)) == 7


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_copy_that_was_cut_off_goes_on(
    source: Store, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "BATCH", 2)
    copied = moving._copy  # pyright: ignore[reportPrivateUsage]

    async def cut_off(here: Any, there: Any, table: str) -> int:
        if table == "log":
            raise StoreError("cut off")
        return await copied(here, there, table)

    async with open_store(ADDRESSES[kind](tmp_path / "there")) as there:
        with monkeypatch.context() as patch:
            patch.setattr(moving, "_copy", cut_off)
            with pytest.raises(StoreError, match="cut off"):
                await move(source, there)
        moved = {one.table: one.copied for one in await move(source, there)}
        assert (moved["lessons"], moved["log"] > 0) == (0, True)
        assert await told(there) == await told(source)
        assert {one.copied for one in await move(source, there)} == {0}


async def test_a_store_with_rows_of_its_own_is_refused(source: Store, tmp_path: Path) -> None:
    async with open_store(ADDRESSES["sqlite"](tmp_path / "there")) as there:
        await there.create(Episode("own", Task("p")))
        with pytest.raises(InvalidInput, match="already has rows"):
            await move(source, there)
        assert [one.id for one in await there.list()] == ["own"]


async def test_a_row_that_differs_is_named(source: Store, tmp_path: Path) -> None:
    async with open_store(ADDRESSES["sqlite"](tmp_path / "there")) as there:
        await move(source, there)
        (waiting,) = [one.id for one in await source.memory.queue.pending("a") if one.status == "waiting"]
        await source.memory.queue.turn("a", waiting, waiting=False)
        with pytest.raises(StoreError, match=r"The row of work with n 2 differs after copying"):
            await move(source, there)


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = f"sqlite:///{tmp_path}/there.db"
    monkeypatch.setenv("MULLIGAN_STORE", there)

    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, ["store", *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    missing = tmp_path / "none.db"
    with pytest.raises(InvalidInput, match="There is no store at"):
        run("migrate", "--from", f"sqlite:///{missing}", "--to", there)
    assert not missing.exists()
    run("status")
    assert "Equal in both stores: " in run("migrate", "--from", there, "--to", f"sqlite:///{tmp_path}/copy.db")
    assert "queue" in run("status")
    found = json.loads(run("status", "--json"))
    assert found["engine"]["version"] == str(len(MIGRATIONS))
    assert (found["totals"]["lessons"], found["queue"], found["leases"]) == (0, {}, 0)
    for words, said in (
        (("setup", there), "only PostgreSQL stores"),
        (("setup", "postgresql://me@h/db", "--role", "r"), "--bank NAME or --all-banks"),
        (("setup", "postgresql://me@h/db", "--all-agents"), "--bank NAME or --all-banks"),
    ):
        with pytest.raises(InvalidInput, match=said):
            run(*words)


async def test_a_copy_and_the_status_count_the_same_lessons(tmp_path: Path) -> None:
    async with open_store(tmp_path / "here.db") as here, open_store(tmp_path / "there.db") as there:
        bank = open_bank("a", store=here.memory, embedder="none")
        for title in ("Kept", "Retired"):
            lesson = await bank.add(title, f"{title} it.")
        await bank.retire(lesson.id)
        totals = (await state(here)).totals
        assert (totals["lessons"], totals["active lessons"]) == (2, 1)
        assert [one.copied for one in await move(here, there) if one.table == "lessons"] == [totals["lessons"]]


def test_every_table_is_copied() -> None:
    assert set(moving.TABLES) == {name for name, one in expected().items() if one.columns} - {"bank"}
