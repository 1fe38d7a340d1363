"""What cannot run on Ray is refused, with what to do, before anything is started."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from toy_bench import HERE, Obliging, cases

from mulligan.bench.fanout.cluster import variables_for
from mulligan.bench.harness.running import run_benchmark
from mulligan.core.errors import InvalidInput
from mulligan.store.sqlite import SqliteStore


@pytest.mark.parametrize("place", ["", "spark://host:7077", "rays", "ray:", "ray://"])
async def test_a_place_that_is_none(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"{place!r} is not a place to run cases. Use ray (")):
        await run_benchmark(HERE, data=str(cases(tmp_path, "right")), method="simple", model="local", on=place)


async def test_a_store_that_other_processes_cannot_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_STORE", "memory:")
    (tmp_path / "said.json").write_text('["right"]')
    with pytest.raises(InvalidInput, match="The store memory: is in this process's memory"):
        await run_benchmark(
            HERE, data=str(cases(tmp_path, "right")), model=f"scripted:{tmp_path / 'said.json'}", on="ray"
        )


async def test_objects_stay_in_their_process(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    with pytest.raises(InvalidInput, match="the store, the model obliging cannot be an object"):
        await run_benchmark(HERE, data=str(cases(tmp_path, "right")), model=Obliging(), store=store, on="ray")
    assert not await store.benches.runs()
    await store.close()


def test_variables_of_workers_hold_no_secret_and_elsewhere_no_path() -> None:
    environment = {
        "MULLIGAN_MODEL": "openai:gpt-test",
        "MULLIGAN_MODEL_JUDGE_KEY": "JUDGE_KEY",
        "MULLIGAN_TOKEN": "secret",
        "MULLIGAN_GRAPH_PASSWORD": "secret",
        "MULLIGAN_METRICS_TOKEN": "secret",
        "MULLIGAN_HOME": "/home/me",
        "MULLIGAN_STORE": "postgresql://me:secret@host/db",
        "OPENAI_API_KEY": "secret",
        "PATH": "/bin",
    }
    settings = {name: environment[name] for name in ("MULLIGAN_MODEL", "MULLIGAN_MODEL_JUDGE_KEY")}
    assert variables_for(environment, elsewhere=True) == settings
    assert variables_for(environment, elsewhere=False) == {**settings, "MULLIGAN_HOME": "/home/me"}
