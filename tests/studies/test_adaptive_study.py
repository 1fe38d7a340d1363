"""The regret of `adaptive` on simulated arms with known rates, drift included, beside uniform choice."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "studies" / "adaptive" / "bandit.py"


@pytest.fixture(scope="module")
def bandit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("adaptive_bandit", FILE)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["adaptive_bandit"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["FAR", "NEAR", "DRIFT"])
def test_regret_is_below_linear_where_that_of_uniform_choice_is_linear(bandit: ModuleType, name: str) -> None:
    """Four times as many trials: regret that grows linearly is four times as much, as that of uniform choice is."""
    scenario, lengths = getattr(bandit, name), (150, 600)
    ours = bandit.regret(scenario, bandit.adaptive, lengths, seeds=3)
    foil = bandit.regret(scenario, bandit.uniform, lengths, seeds=3)
    assert ours[1] < 3.2 * ours[0]
    assert foil[1] > 3.6 * foil[0]
    assert ours[1] < 0.6 * foil[1]


def test_it_comes_near_the_best_fixed_arm_where_the_default_is_not_it(bandit: ModuleType) -> None:
    (ours,) = bandit.regret(bandit.NEAR, bandit.adaptive, (600,), seeds=3, fixed=True)
    (default,) = bandit.regret(bandit.NEAR, bandit.default, (600,), seeds=3, fixed=True)
    assert ours < 0.75 * default
