"""The study of what entries are worth, with few runs: intervals hold the truth, and what does harm goes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest

from mulligan.core.worth import Tally

FOLDER = Path(__file__).parents[2] / "studies" / "worth"


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location("worth_study", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "worth_study", module)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("worlds", None)


@pytest.mark.slow
def test_few_runs_of_the_world_to_choose_on(study: ModuleType) -> None:
    world, held = study.WORLDS["mixed"], list[bool]()
    for seed in range(15):
        run = study.play(world, 0.2, seed, retire=False)
        for entry, tally in enumerate(run.tallies):
            assert tally.uplift is not None
            held.append(tally.uplift.low <= study.truth(world, entry, 0.2) <= tally.uplift.high)
    assert 0.89 <= mean(held) <= 0.99
    runs = [study.play(world, 0.2, seed, retire=True) for seed in range(15)]
    worst = world.effects.index(min(world.effects))
    assert mean(worst in run.retired for run in runs) >= 0.8
    harmless = [n for n, effect in enumerate(world.effects) if effect >= 0]
    assert mean(n in run.retired for run in runs for n in harmless) <= 0.05
    assert mean(run.rate for run in runs) > 0.45


def test_a_run_can_be_repeated(study: ModuleType) -> None:
    for world in study.WORLDS.values():
        one, same = (study.play(world, 0.1, 3, retire=True) for _ in range(2))
        assert (one.tallies, one.retired, one.rate) == (same.tallies, same.retired, same.rate)


def test_of_two_that_say_the_same_each_is_worth_what_it_adds_where_the_other_is_withheld(study: ModuleType) -> None:
    world = study.WORLDS["kept back"]
    assert [study.truth(world, entry, 0.1) for entry in (0, 1, 2)] == pytest.approx([0.02, 0.02, 0.2])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "kept back"])
def test_all_runs_at_once_count_as_the_bank_does(study: ModuleType, name: str) -> None:
    world, runs = study.WORLDS[name], 3
    tallies: list[list[Tally]] = [[Tally() for _ in world.effects] for _ in range(runs)]

    def script(recalled: Any, away: Any, success: Any) -> None:
        for run, row in enumerate(recalled):
            for entry in map(int, row.nonzero()[0]):
                tally, withheld = tallies[run][entry], bool(away[run, entry])
                tallies[run][entry] = tally.with_draw(bool(success[run]), withheld=withheld, share=0.1)

    many = study.play_many(world, 0.1, runs, 5, retire=False, script=script)
    for run, row in enumerate(tallies):
        for entry, tally in enumerate(row):
            assert tally.uplift is not None
            limits = (many.low[run, entry], many.high[run, entry])
            assert (tally.uplift.low, tally.uplift.high) == pytest.approx(limits)
            assert sum(tally.evidence) / len(tally.evidence) == pytest.approx(many.stakes[:, run, entry].mean())
