"""Stores that older versions made are opened, shown, gone on with; their lessons and exports are read. See old/README.md."""

import gzip
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

import mulligan
from mulligan.app.client_led import ClientLed, ClientStep
from mulligan.app.compose import changed
from mulligan.app.memory import import_file, open_bank
from mulligan.bench.harness.cases import differences
from mulligan.core.errors import JournalDiverged
from mulligan.core.records import Head
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore
from mulligan.store.sqlite.schema import MIGRATIONS

OLD = Path(__file__).parent / "old"
COMMITS = {"1065c0a": 1, "9de80d4": 4, "7498fdc": 5}
WITH_LESSONS = ("9de80d4", "7498fdc")


@pytest.fixture(params=COMMITS)
def commit(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def path(tmp_path: Path, commit: str) -> Path:
    made = tmp_path / "mulligan.db"
    made.write_bytes(gzip.decompress((OLD / f"{commit}.db.gz").read_bytes()))
    return made


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    await opened.close()


async def run_of(store: SqliteStore, task: str) -> str:
    (run,) = [episode.run for episode in await store.list() if episode.task.prompt.startswith(task)]
    return run


async def test_it_is_opened_and_brought_up_to_date(path: Path, commit: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (COMMITS[commit],)
    store = SqliteStore(path)
    episodes = {episode.task.prompt.partition(":")[0]: episode for episode in await store.list()}
    await store.close()
    assert {"Solved", "Killed", "Paused"} <= set(episodes)
    best = episodes["Solved"].best
    assert best is not None
    assert (best.number, best.attempt.output) == (2, "42")
    assert [trial.attempt.output for trial in episodes["Killed"].trials] == ["13"]
    assert episodes["Killed"].stop is None
    assert episodes["Paused"].stop is not None
    assert episodes["Paused"].stop.reason == "over_budget"
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


@pytest.mark.parametrize(("task", "calls"), [("Killed", 1), ("Paused", 2)])
async def test_a_run_that_is_not_over_is_resumed(store: SqliteStore, task: str, calls: int) -> None:
    model = ScriptedModel(lambda question, sampling: "42")
    run = await run_of(store, task)
    episode = await mulligan.resume(run, model=model, store=store, limits={"tokens": None})
    assert episode.run == run, "it is no fork"
    assert episode.solved
    assert episode.trials[0].attempt.output == "13"
    assert len(model.questions) == calls, "what was answered is not asked again"


async def test_what_did_change_since_is_still_noticed(store: SqliteStore) -> None:
    run = await run_of(store, "Killed")
    with pytest.raises(JournalDiverged, match="model actor"):
        await mulligan.resume(run, model=ScriptedModel(["42"], "another"), store=store)


async def test_a_run_that_is_over_stays_over(store: SqliteStore) -> None:
    with pytest.raises(mulligan.MulliganError, match="has ended"):
        await mulligan.resume(await run_of(store, "Solved"), model=ScriptedModel(["42"]), store=store)


@pytest.mark.parametrize("commit", WITH_LESSONS)
async def test_its_lessons_are_there(store: SqliteStore) -> None:
    bank = open_bank("old", store=store.memory, embedder="none")
    assert sorted(lesson.title for lesson in await bank.list()) == ["Be terse", "Multiply"]
    assert [lesson.title for lesson in (await bank.recall("multiply: what is times?")).lessons] == ["Multiply"]
    assert {(lesson.nature, lesson.project, lesson.confirmed) for lesson in await bank.list()} == {
        ("strategy", "", True)
    }
    assert await bank.verify() == []


@pytest.mark.parametrize("commit", WITH_LESSONS)
async def test_its_exported_lessons_are_taken_in(commit: str) -> None:
    done = await import_file(OLD / f"{commit}.lessons.json")
    assert (len(done.lessons), done.known, done.quarantined) == (2, 0, 0)


async def test_its_exported_run_is_replayed(tmp_path: Path, commit: str) -> None:
    episode = await mulligan.solve(
        "Solved: six times seven?",
        evaluator="exact_match:42",
        strategy="reflexion",
        model=f"replay:{OLD / commit}.run.json",
        store=SqliteStore(tmp_path / "new.db"),
    )
    assert [trial.attempt.output for trial in episode.trials] == ["13", "42"]


@pytest.mark.parametrize("commit", ["7498fdc"])
async def test_an_episode_that_a_client_leads_goes_on(store: SqliteStore) -> None:
    client, run = ClientLed(store), await run_of(store, "Led")
    step = ClientStep("reflect", 1, 3, output="13", score="off", reflection="Multiply.", passed=False)
    assert (await client.take(f"{run}.1", step)).memory == ("Multiply.",)


def test_a_setting_that_did_not_exist_has_the_default_of_its_time() -> None:
    """A new setting therefore has to default to what was done before it existed."""
    before = json.loads((OLD / "1065c0a.run.json").read_text())["episodes"][0]["episode"]["head"]["settings"]
    assert "learns" not in before
    now = {**before, "learns": False, "bank": None, "expansion": None}
    assert changed(Head({}, settings=before), Head({}, settings=now)) == []
    assert changed(Head({}, settings=before), Head({}, settings={**now, "learns": True})) == ["setting learns"]


def test_so_has_a_setting_of_a_benchmark_run() -> None:
    before = {"setting actor": "a", "setting limits": {"trials": 3}, "the cases": "x"}
    now = {**before, "setting learns": False, "setting limits": {"trials": 3, "identical": 3}}
    assert differences(before, now) == []
    assert differences(before, {**now, "setting learns": True}) == ["setting learns (was False, is True)"]
