"""The runner: every case ends, whatever breaks in it; order, refusals, and going on with a run."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from toy_bench import HERE, LESSON, Obliging, cases

from mulligan.app.solve import resume
from mulligan.app.trusting import trust
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import InvalidInput, JournalDiverged, LeaseLost, NotFound
from mulligan.core.records import Usage
from mulligan.recording.holders import named
from mulligan.recording.leases import leased
from mulligan.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    made = SqliteStore(tmp_path / "m.db")
    yield made
    await made.close()


async def ran(store: SqliteStore, data: Path, model: Any = None, **options: Any) -> Finished:
    return await run_benchmark(HERE, model=model or Obliging(), store=store, data=str(data), **options)


def ends(finished: Finished) -> list[str]:
    return [result.status for result in finished.results]


@pytest.mark.parametrize("parallel", [1, 3])
async def test_whatever_breaks_in_a_case_the_others_go_on(store: SqliteStore, tmp_path: Path, parallel: int) -> None:
    wishes = ("right", "say right at 2", "wrong", "unclear", "the provider is down", "judging breaks", "scoring breaks")
    finished = await ran(store, cases(tmp_path, *wishes), parallel=parallel)
    assert ends(finished) == ["solved", "solved", "failed", "unjudged", "error", "error", "error"]
    assert [result.case for result in finished.results] == [f"c{n}" for n in range(1, 8)]
    said = [result.text for result in finished.results[4:]]
    whats = [text.partition(": ")[2] for text in said[:2]]
    assert whats[0] == "the provider is down"
    assert re.fullmatch(r"ZeroDivisionError: the evaluator has a bug \(.*toy_bench\.py, line \d+\)", whats[1])
    assert said[2] == "ZeroDivisionError: the scorer has a bug"
    assert [len(result.episodes[0].scores) for result in finished.results[:3]] == [1, 2, 3]


async def test_an_environment_that_breaks_is_an_error_of_its_case(store: SqliteStore, tmp_path: Path) -> None:
    finished = await ran(store, cases(tmp_path, "right", "right"), method="world")
    assert ends(finished) == ["error", "error"]
    assert "the environment has a bug" in finished.results[0].text


async def test_a_prompt_that_is_edited_while_the_run_is_on_mixes_no_figures(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompts").mkdir()
    prompt = tmp_path / "prompts" / "complete.text.md"
    prompt.write_text("[[user]]\n{{recall}}{{task}}\n{{past}}\n")
    (tmp_path / "mulligan.toml").write_text('prompts = "prompts"\n')
    trust(tmp_path)
    monkeypatch.chdir(tmp_path)

    def edit(run: BenchRun, result: CaseResult | None) -> None:
        if result is not None and result.case == "c1":
            prompt.write_text("[[user]]\nPlease.\n{{recall}}{{task}}\n{{past}}\n")

    finished = await ran(store, cases(tmp_path, "right", "right"), hooks=Hooks(on_case=edit))
    assert ends(finished) == ["solved", "error"]
    assert "prompt complete.text" in finished.results[1].text


async def test_a_case_that_is_cancelled_from_within_is_an_error_and_not_lost(
    store: SqliteStore, tmp_path: Path
) -> None:
    finished = await ran(store, cases(tmp_path, "cancel yourself", "right"))
    assert ends(finished) == ["error", "solved"]
    assert "environment cancelled it" in finished.results[0].text


async def test_a_resume_tries_errors_again_and_nothing_else(store: SqliteStore, tmp_path: Path) -> None:
    model, told = Obliging(), list[CaseResult | None]()
    begun = await ran(store, cases(tmp_path, "right", "the provider is down", "wrong"), model)
    assert ends(begun) == ["solved", "error", "failed"]
    model.asked.clear()
    model.down = False
    hooks = Hooks(on_case=lambda run, result: told.append(result))
    again = await resume_benchmark(begun.run.id, model=model, store=store, hooks=hooks)
    assert ends(again) == ["solved", "solved", "failed"]
    assert Counter(model.asked) == {"c2": 1}
    assert [result and result.case for result in told] == ["c1", "c3", None, "c2"]
    assert (await store.benches.results(begun.run.id)) == again.results
    model.asked.clear()
    assert (await resume_benchmark(begun.run.id, model=model, store=store)).results == again.results
    assert model.asked == []


@pytest.mark.slow
async def test_the_same_seed_is_the_same_order(store: SqliteStore, tmp_path: Path) -> None:
    data = cases(tmp_path, *["right"] * 12)
    order = [(await ran(store, data, shuffle=True, seed=seed)).run.cases for seed in (5, 5, 6)]
    assert order[0] == order[1] != order[2]
    assert sorted(order[0]) == sorted(order[2])
    assert (await ran(store, data)).run.cases == tuple(f"c{n}" for n in range(1, 13))
    assert (await ran(store, data, shuffle=True, seed=5, limit=4)).run.cases == order[0][:4]


class Renamed(Obliging):
    def __init__(self) -> None:
        super().__init__()
        self.id = "obliging@2"


async def test_what_has_changed_is_named_and_refused(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompts").mkdir()
    prompt = tmp_path / "prompts" / "complete.text.md"
    prompt.write_text("[[user]]\n{{recall}}{{task}}\n{{past}}\n")
    (tmp_path / "mulligan.toml").write_text('prompts = "prompts"\nreflect_model = "obliging"\n')
    trust(tmp_path)
    monkeypatch.chdir(tmp_path)
    data = cases(tmp_path, "the provider is down", "right")
    begun = await ran(store, data)

    async def refused(*, model: Obliging | None = None) -> str:
        with pytest.raises(JournalDiverged) as error:
            await resume_benchmark(begun.run.id, model=model or Obliging(), store=store)
        assert f"the benchmark run {begun.run.id}" in str(error.value)
        assert "fork" not in str(error.value)
        return "; ".join(error.value.changed)

    assert await refused(model=Renamed()) == "; ".join(
        f"model of the {role} (was 'obliging', is 'obliging@2')" for role in ("actor", "reflector")
    )
    before = data.read_text()
    data.write_text(before.replace("right", "wrong"))
    assert await refused() == "data toy.json; the cases"
    data.write_text(before)
    prompt.write_text("[[user]]\nPlease.\n{{recall}}{{task}}\n{{past}}\n")
    assert await refused() == "prompt complete.text"
    prompt.write_text("[[user]]\n{{recall}}{{task}}\n{{past}}\n")
    (tmp_path / "mulligan.toml").write_text('prompts = "prompts"\njudge_model = "local"\nreflect_model = "obliging"\n')
    trust(tmp_path)
    assert await refused() == "setting judge_model (was None, is 'local')"
    data.unlink()
    with pytest.raises(InvalidInput, match=r"toy\.json does not exist"):
        await resume_benchmark(begun.run.id, model=Obliging(), store=store)


async def test_a_run_is_named_by_the_beginning_of_its_id(store: SqliteStore, tmp_path: Path) -> None:
    begun = await ran(store, cases(tmp_path, "right"))
    assert (await resume_benchmark(begun.run.id[:5], model=Obliging(), store=store)).run == begun.run
    for name in ("beef", "beer"):
        await store.benches.begin(BenchRun(name, "toy", 0.0, {}, (), {}))
    with pytest.raises(NotFound, match="matches several benchmark runs: beef, beer"):
        await resume_benchmark("bee", store=store)
    with pytest.raises(NotFound, match="No benchmark run begins with 'x'"):
        await resume_benchmark("x", store=store)


async def test_a_second_process_refuses_and_says_who_drives_the_run(store: SqliteStore, tmp_path: Path) -> None:
    model = Obliging()
    begun = await ran(store, cases(tmp_path, "the provider is down"), model)
    model.asked.clear()
    async with leased(store.benches, begun.run.id) as lease:
        with pytest.raises(LeaseLost, match=f"Benchmark run {begun.run.id} is in use by {named(lease.owner)}"):
            await resume_benchmark(begun.run.id, model=model, store=store)
        await store.benches.renew(lease, 30)  # it is still the first one's
    assert model.asked == []
    assert ends(await resume_benchmark(begun.run.id, model=model, store=store)) == ["error"]


async def test_episodes_of_a_run_are_resumed_by_it_alone(store: SqliteStore, tmp_path: Path) -> None:
    begun = await ran(store, cases(tmp_path, "the provider is down"))
    id = begun.results[0].episodes[0].episode
    assert id == f"{begun.run.id}.1.1"
    with pytest.raises(InvalidInput, match=f"mulligan bench run --resume {begun.run.id}"):
        await resume(id, store=store)


async def test_a_search_over_candidates(store: SqliteStore, tmp_path: Path) -> None:
    """Fail, reflect, solve: trial 2 grows from trial 1 and is shown the lesson."""
    model = Obliging()
    finished = await ran(store, cases(tmp_path, "say right at 2", "never"), model, method="reflexion-ucs", trials=6)
    assert ends(finished) == ["solved", "failed"]
    assert len(finished.results[1].episodes[0].scores) == 6
    episode = await store.load(finished.results[0].episodes[0].episode)
    assert [(trial.number, trial.parent) for trial in episode.trials] == [(1, None), (2, 1)]
    assert episode.reflections[0].text.startswith(LESSON)
    assert finished.results[0].episodes[0].scores == (0.0, 1.0)


async def test_restarts_end_with_the_first_solved_and_samples_are_all_taken(store: SqliteStore, tmp_path: Path) -> None:
    data = cases(tmp_path, "right", "wrong")
    restarts = await ran(store, data, method="simple", restarts=3)
    assert [len(result.episodes) for result in restarts.results] == [1, 3]
    samples = await ran(store, data, method="simple", samples=3)
    assert [len(result.episodes) for result in samples.results] == [3, 3]
    assert samples.results[0].usage.calls == 3
    assert samples.results[0].usage != Usage()
    seeds = {(await store.load(one.episode)).head.seed for one in samples.results[0].episodes}
    assert len(seeds) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parallel": 0}, "parallel must be at least 1"),
        ({"memory": "online", "parallel": 2}, "one at a time"),
        ({"memory": "sometimes"}, "online or frozen"),
        ({"restarts": 2, "samples": 2}, "pass only one"),
        ({"cases": ["c9"]}, "c9"),
        ({"strategy": "reflexio"}, "Did you mean 'reflexion'.*--method: reflexion, simple, "),
        ({"method": "reflexio"}, "Did you mean 'reflexion'"),
        ({"method": "evidence"}, "write --strategy evidence"),
        ({"method": "simple", "strategy": "evidence"}, "makes one attempt, so a strategy has no effect.*: reflexion, "),
        ({"settings": {"actr": {}}}, "actor"),
        ({"trials": 0}, "tries must be at least 1"),
        ({"method": "simple", "trials": 2}, "'simple' makes one attempt, not 2. .* another method: reflexion, "),
    ],
)
async def test_bad_input_is_refused_before_any_model_is_called(
    store: SqliteStore, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    model = Obliging()
    with pytest.raises(InvalidInput, match=said):
        await ran(store, cases(tmp_path, "right"), model, **options)
    assert model.asked == []
    assert await store.benches.runs() == ()


async def test_how_the_cases_are_tried_is_reported_before_the_run(store: SqliteStore, tmp_path: Path) -> None:
    for options, said in (
        ({}, "Method reflexion (the default; others: simple, "),
        ({"method": "simple"}, "Method simple: one attempt of each case."),
        ({"method": "simple", "trials": 1}, "Method simple: one attempt of each case."),
        ({"trials": 2}, ": at most 2 attempts of each case."),
    ):
        told = list[str]()
        await ran(store, cases(tmp_path, "right"), hooks=Hooks(notice=told.append), **options)
        assert said in told[0]


async def test_an_observer_that_raises_ends_nothing(store: SqliteStore, tmp_path: Path) -> None:
    def broken(run: BenchRun, result: CaseResult | None) -> None:
        raise RuntimeError("an observer's bug")

    assert ends(await ran(store, cases(tmp_path, "right"), hooks=Hooks(on_case=broken))) == ["solved"]


def test_data_of_the_toy(tmp_path: Path) -> None:
    assert json.loads(cases(tmp_path, "right").read_text()) == [{"id": "c1", "prompt": "c1: right"}]
