"""The repositories of studies/goals are what its README says, and its sessions end as their arm does. No model runs here."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mulligan.goals.person import agent_above

STUDY = Path(__file__).parents[2] / "studies" / "goals"
pytestmark = pytest.mark.slow


def run(program: str, *words: str) -> str:
    ran = subprocess.run([sys.executable, STUDY / program, *words], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_each_fails_at_the_start_and_its_solution_passes_both_tests() -> None:
    lines = run("check.py").splitlines()
    assert len(lines) == 25
    assert all(line.endswith(": as it should be") for line in lines)


def test_each_arm_ends_in_its_own_way_and_the_same_command_goes_on(tmp_path: Path) -> None:
    if agent_above():
        pytest.skip("needs a terminal that no coding agent has started")
    values = tomllib.loads((STUDY / "rehearsal.toml").read_text())
    ((old, new),) = values["fix"]
    visible_only = new.replace("0 < n < len(words) - 1", "0 < n")
    wrong, right, half = (f"```python{values['module'].replace(old, text)}```" for text in (old, new, visible_only))
    (tmp_path / "answers.json").write_text(json.dumps([wrong, "DONE", right, half]))
    into = tmp_path / "out"
    words = ("--into", str(into), "--model", f"scripted:{tmp_path / 'answers.json'}", "--rehearse")
    printed = run("run.py", *words)
    own, blind, goal = (json.loads((into / f"rehearsal.{arm}.json").read_text()) for arm in ("own", "blind", "goal"))
    passed = [[(one["visible"], one["hidden"]) for one in session["tries"]] for session in (own, blind, goal)]
    none, both = (False, False), (True, True)
    assert passed == [[none], [none, both], [none, (True, False)]]
    assert [session["claims"] for session in (own, blind, goal)] == [True, True, True]
    assert "(try 1 of 3)" in goal["said"][0]
    assert "assert 'Lord Of The Rings' == 'Lord of the Rings'" in goal["said"][0]
    assert "Rings" not in blind["said"][0]
    assert "| goal, blind | solved | 0 | 1 | 1 |" in printed
    assert printed.endswith(run("run.py", *words)), "nothing is run again"
