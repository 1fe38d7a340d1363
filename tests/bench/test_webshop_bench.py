"""WebShop from end to end: a purchase that fails, the lesson of it, and one that fits."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mulligan.bench.commands import bench
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.bench.webshop.webshop import WebShop
from mulligan.core.benchmarks import HasData
from mulligan.core.errors import InvalidInput, JournalDiverged
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Attempt, Case, Episode, Outcome, Task, Trial
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

LESSON = "I bought it without choosing color and size: click slate blue and 450 ml first."
WRONG = ["search[coffee mug]", "click[MUG01]", "click[Buy Now]"]
RIGHT = ["search[coffee mug]", "click[MUG01]", "click[slate blue]", "click[450 ml]", "click[Buy Now]"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    monkeypatch.delenv("MULLIGAN_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return SqliteStore(tmp_path / "mulligan.db")


async def test_a_purchase_that_failed_is_mended_by_its_lesson(store: SqliteStore) -> None:
    model = ScriptedModel([*WRONG, LESSON, *RIGHT])
    finished = await run_benchmark("webshop", model=model, store=store, cases=["mug"])
    (result,) = finished.results
    assert result.status == "solved"
    assert result.episodes[0].scores == (0.6, 1.0)
    prompts = ["\n".join(message.text for message in question.messages) for question in model.questions]
    assert "The task was not done; the reward was 0.6." in prompts[3]
    assert not any(LESSON in prompt for prompt in prompts[:4])
    assert all(LESSON in prompt for prompt in prompts[4:]), "in the reference it never reaches the actor"
    episode = await store.load(result.episodes[0].episode)
    assert [trial.attempt.outcome for trial in episode.trials] == [Outcome(0.6, done=True), Outcome(1.0, done=True)]
    await store.close()


async def test_nothing_of_the_target_is_in_a_prompt_or_in_the_record(store: SqliteStore) -> None:
    """Searching is what finds the product: until then nobody has named it, nor what the shop only knows about it."""
    model = ScriptedModel([*WRONG, LESSON, *RIGHT])
    finished = await run_benchmark("webshop", model=model, store=store, cases=["mug"])
    first = "\n".join(message.text for message in model.questions[0].messages)
    assert "MUG01" not in first
    episode = await store.load(finished.results[0].episodes[0].episode)
    settings = json.dumps(dict(episode.head.settings))
    assert "MUG01" not in settings
    assert "hand glazed" not in settings
    assert episode.head.settings["environment"] == {"name": "webshop", "settings": {"goal": "mug"}}
    await store.close()


async def test_who_buys_nothing_gets_nothing(store: SqliteStore) -> None:
    model = ScriptedModel(["think[…]"] * 28)
    finished = await run_benchmark("webshop", model=model, store=store, cases=["mug"], method="resample", trials=2)
    (result,) = finished.results
    assert (result.status, result.episodes[0].scores) == ("failed", (0.0, 0.0))
    assert result.text == "Nothing was bought: 14 steps were used up."
    assert len(model.questions) == 28
    await store.close()


async def test_of_a_long_trajectory_the_newest_steps_are_shown(store: SqliteStore) -> None:
    """Each page of results takes about 500 characters; 6400 are shown, as in the reference."""
    turns = [line for n in range(6) for line in (f"search[black white color {n}]", "click[Back to Search]")]
    model = ScriptedModel([*turns, "think[all seen]", "think[done]"])
    await run_benchmark(
        "webshop", model=model, store=store, cases=["mug"], trials=1, settings={"actor": {"characters": 1500}}
    )
    last = model.questions[-1].messages[-1].text
    assert "WebShop\nInstruction: I would like" in last
    assert "> search[black white color 5]" in last
    assert "> search[black white color 0]" not in last
    assert "earlier steps are left out here.)" in last
    await store.close()


def test_the_command_runs_it_with_our_shop(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("\n---\n".join([*WRONG, LESSON, *RIGHT]), encoding="utf-8")
    ran = CliRunner().invoke(bench, ["run", "webshop", "--case", "mug", "--model", "scripted:shop.txt"])
    assert ran.exit_code == 0, ran.output
    assert "1 of 1 solved" in ran.stdout
    assert "1 of 1: mug: solved, 2 tries" in ran.stderr


async def test_another_shop_is_found_beside_its_goals_and_a_changed_one_is_refused(
    store: SqliteStore, tmp_path: Path
) -> None:
    shop = {
        "products": [{"id": "C1", "name": "Tin Cup", "price": 4}],
        "goals": [{"id": "g", "instruction": "i want a tin cup", "product": "C1", "price": 5}],
    }
    file = tmp_path / "cups.json"
    file.write_text(json.dumps(shop), encoding="utf-8-sig")  # as some editors write it
    model = ScriptedModel(["search[cup]", "click[C1]", "click[Buy Now]"])
    finished = await run_benchmark("webshop", model=model, store=store, data=str(file))
    assert [result.status for result in finished.results] == ["solved"]
    shop["products"][0]["price"] = 3
    file.write_text(json.dumps(shop), encoding="utf-8")
    with pytest.raises(JournalDiverged, match=r"data cups\.json"):
        await resume_benchmark(finished.run.id, model=model, store=store)
    await store.close()


def test_data_is_ours_where_there_is_no_other(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = WebShop()
    assert isinstance(benchmark, HasData)
    assert find_data(benchmark, None) == list(benchmark.own)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "items_shuffle_1000.json").write_text("[]")
    monkeypatch.setenv("MULLIGAN_DATA", str(tmp_path / "there"))
    assert [file.name for file in find_data(benchmark, None)] == ["items_shuffle_1000.json"]
    monkeypatch.delenv("MULLIGAN_DATA")
    (tmp_path / "there" / "again").mkdir()
    (tmp_path / "there" / "again" / "items_shuffle_1000.json").write_text("[]")
    with pytest.raises(InvalidInput, match="but 2 were given"):
        benchmark.load(find_data(benchmark, tmp_path / "there"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="princeton-nlp/WebShop"):
        find_data(benchmark, tmp_path / "empty")


@pytest.mark.parametrize(
    ("outcome", "value"),
    [(Outcome(0.75, done=True), 0.75), (Outcome(0.0, halted="over"), 0.0), (None, None)],
)
async def test_the_score_is_the_reward(outcome: Outcome | None, value: float | None) -> None:
    episode = Episode("e.1", Task("t"), trials=(Trial(1, Attempt("click[Buy Now]", outcome=outcome)),))
    assert (await WebShop().score(Case("mug", Task("t"), None), episode)).value == value


async def test_a_run_that_was_cut_off_goes_on_in_the_shop_where_it_was(store: SqliteStore) -> None:
    """The shop is brought to the page where it was, by what was done; no line is asked for again."""
    lines = iter(RIGHT)

    def first(question: Question, sampling: Sampling) -> str:
        if len(begun.questions) == 4:
            running.cancel()
            raise asyncio.CancelledError
        return next(lines)

    begun = ScriptedModel(first)
    running = asyncio.ensure_future(run_benchmark("webshop", model=begun, store=store, cases=["mug"]))
    with pytest.raises(asyncio.CancelledError):
        await running
    (run,) = await store.benches.runs()
    rest = ScriptedModel(lines)
    finished = await resume_benchmark(run.id, model=rest, store=store)
    assert [result.status for result in finished.results] == ["solved"]
    assert len(rest.questions) == 2
    assert "> click[slate blue]\ncolor: slate blue is chosen." in rest.questions[0].messages[-1].text
    await store.close()
