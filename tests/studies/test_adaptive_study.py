"""The regret of `adaptive` on simulated arms with known rates, drift included, beside uniform choice."""

import importlib.util
import os
import signal
import subprocess
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


SCRIPT = f"""
import asyncio, importlib.util, json, os, signal, sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("adaptive_run", {str(FILE.with_name("run.py"))!r})
study = importlib.util.module_from_spec(spec)
sys.modules["adaptive_run"] = study
spec.loader.exec_module(study)
from sets import Item
from mulligan.core.codec import digest, to_json
from mulligan.models.scripted import ScriptedModel

folder, killed_at = Path(sys.argv.pop(1)), int(sys.argv.pop(1))
asked = 0


def answer(question, sampling):
    global asked
    asked += 1
    if asked == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    with (folder / "asked").open("a") as out:
        out.write(digest([to_json(question), to_json(sampling)]) + "\\n")
    if question.messages[0].text.startswith("You review"):
        return "It returns x itself; multiply x by two."
    shown = "failed these checks" in question.messages[-1].text
    return "def double(x):\\n    return 2 * x" if shown else f"def double(x):\\n    return x  # {{sampling.seed}}"


def load(name, data):
    task = "Write double(x)" if name == "information" else f"Write double(x) for {{name}}"
    return [Item(name, f"{{name}}/{{n}}", name, task + "!" * n, "assert double(2) == 4", "assert double(3) == 6", 50)
            for n in range(2)]


study.load, study.open_model = load, lambda name: ScriptedModel(answer, "toy")
asyncio.run(study.main())
"""


def run_study(folder: Path, killed_at: int, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "study.py").write_text(SCRIPT)
    arms = "plain,resampling,default,adaptive"
    command = [sys.executable, "study.py", str(folder), str(killed_at), "--into", str(folder), "--arms", arms, *words]
    env = {**os.environ, "MULLIGAN_HOME": str(folder / "home")}
    return subprocess.run(command, cwd=folder, env=env, timeout=300, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [2, 9])
def test_the_comparison_goes_on_where_it_was_killed_and_reports_both_streams(tmp_path: Path, killed_at: int) -> None:
    assert run_study(tmp_path, killed_at).returncode == -signal.SIGKILL
    ended = run_study(tmp_path, 0)
    assert ended.returncode == 0, ended.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(set(asked)) == len(asked)
    report = run_study(tmp_path, 0, "--report")
    assert report.returncode == 0, report.stderr
    assert "Of 6 tasks whose first trial failed, `adaptive` solved" in report.stdout.split("## Both streams")[1]
    assert "| arm of `adaptive` | chosen | passed |" in report.stdout
    with_default = next(line for line in report.stdout.splitlines() if line.startswith("| `default` | 2 |"))
    assert with_default.startswith("| `default` | 2 | **2** |")
