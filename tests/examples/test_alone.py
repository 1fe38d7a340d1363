"""examples/alone.py: the parts of Mulligan in an agent of somebody else's."""

import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).parents[2] / "examples" / "alone.py"


def test_it_runs_as_a_script() -> None:
    ran = subprocess.run([sys.executable, str(FILE)], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.startswith("trial 1: The task failed: loop.\nExpected: the key\nActual: it is locked\n")
    assert ran.stdout.endswith("trial 2: The task succeeded.\n")
    assert ran.stderr == ""


def test_the_agents_model_is_asked_for_the_lesson_and_shown_it() -> None:
    alone = runpy.run_path(str(FILE))
    asked: list[list[tuple[str, str]]] = []

    def chat(messages: Sequence[tuple[str, str]]) -> str:
        asked.append(list(messages))
        return alone["scripted"](messages)

    first, second = alone["main"](chat)
    reflecting = asked[3]
    assert [role for role, _ in reflecting] == ["system", "user", "assistant", "user"]
    assert "taken 3 times in a row: `look drawer`" in reflecting[-1][1]
    assert "Action 3: look drawer" in reflecting[-1][1]
    assert "- I tried the locked drawer three times." in asked[4][-1][1]
    assert first.reflection.text.endswith("look at the shelf.")
    assert second.feedback.passed


def test_an_agent_that_does_not_listen_ends_after_three_trials() -> None:
    def chat(messages: Sequence[tuple[str, str]]) -> str:
        return "look drawer"

    trials = runpy.run_path(str(FILE))["main"](chat)
    assert [trial.feedback.passed for trial in trials] == [False, False, False]
