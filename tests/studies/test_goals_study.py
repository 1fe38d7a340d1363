"""The repositories of studies/goals are what its README says, and its sessions end as their arm does. No model runs here."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mulligan.goals.person import agent_above

STUDY = Path(__file__).parents[2] / "studies" / "goals"
pytestmark = pytest.mark.slow


def study(program: str, *words: str) -> str:
    ran = subprocess.run([sys.executable, STUDY / program, *words], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_each_fails_at_the_start_and_its_solution_passes_both_tests() -> None:
    lines = study("check.py").splitlines()
    assert len(lines) == 25
    assert all(line.endswith(": as it should be") for line in lines)


def rehearse(into: Path, *answers: str) -> tuple[str, list[dict[str, Any]]]:
    """What a run with these answers prints, and its sessions."""
    if agent_above():
        pytest.skip("needs a terminal that no coding agent has started")
    script = into.with_suffix(".json")
    script.write_text(json.dumps(answers))
    printed = study("run.py", "--into", str(into), "--model", f"scripted:{script}", "--rehearse")
    return printed, [json.loads((into / f"rehearsal.{arm}.json").read_text()) for arm in ("own", "blind", "goal")]


def module(*edits: tuple[str, str]) -> str:
    """An answer with the module of the rehearsal."""
    text: str = tomllib.loads((STUDY / "rehearsal.toml").read_text())["module"]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return f"```python\n{text}```"


def test_each_arm_ends_in_its_own_way_and_the_same_command_goes_on(tmp_path: Path) -> None:
    ((old, new),) = tomllib.loads((STUDY / "rehearsal.toml").read_text())["fix"]
    wrong, visible_only = module(("capitalize", "title")), new.replace("0 < n < len(words) - 1", "0 < n")
    answers = (wrong, "DONE", module((old, new)), module((old, visible_only)))
    printed, sessions = rehearse(tmp_path / "out", *answers)
    passed = [[(one["visible"], one["hidden"]) for one in session["tries"]] for session in sessions]
    none, both = (False, False), (True, True)
    assert passed == [[none], [none, both], [none, (True, False)]]
    assert [session["claims"] for session in sessions] == [True, True, True]
    _, blind, goal = sessions
    assert "(try 1 of 3)" in goal["said"][0]
    assert "assert 'Lord Of The Rings' == 'Lord of the Rings'" in goal["said"][0]
    assert "Rings" not in blind["said"][0]
    assert "| goal, blind | solved | 0 | 1 | 1 |" in printed
    assert printed.endswith(rehearse(tmp_path / "out", *answers)[0]), "nothing is run again"


def test_a_turn_that_changes_nothing_is_not_held_and_does_not_end_as_done(tmp_path: Path) -> None:
    _, (own, blind, goal) = rehearse(tmp_path / "out", module(), "DONE", "No.", "No.")
    assert [len(session["tries"]) for session in (own, blind, goal)] == [1, 3, 1]
    assert [session["claims"] for session in (own, blind, goal)] == [True, False, False]
