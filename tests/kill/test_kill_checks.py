"""kill -9 after the steps of checks: nothing is asked again, and no action is performed twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent.parent / "support"
SRC = Path(__file__).parent.parent.parent / "src"


def played(folder: Path, kind: str, die: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(SUPPORT / "mortal_check.py"), str(folder), kind, die]
    env = {**os.environ, "MULLIGAN_HOME": str(folder), "PYTHONPATH": os.pathsep.join([str(SUPPORT), str(SRC)])}
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "action"), [("environment", "environment.step#2"), ("tools", "tool.delete#1")])
def test_a_kill_between_check_and_action_repeats_neither(kind: str, action: str, tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", kind, "")
    assert whole.returncode == 0, whole.stderr
    asked, done = ((tmp_path / "whole" / name).read_text().splitlines() for name in ("asked", "done"))
    assert "'ask', False, True" in whole.stdout
    assert "'ask', False, False" in whole.stdout
    assert not [line for line in done if "ledger" in line]
    for die in ("model.foresight#1", "person#1", "model.foresight#2", action):
        folder = tmp_path / die
        killed = played(folder, kind, f"/{die}")
        assert killed.returncode == -9, killed.stderr
        resumed = played(folder, kind, "")
        assert (resumed.returncode, resumed.stdout) == (0, whole.stdout), resumed.stderr
        assert (folder / "asked").read_text().splitlines() == asked
        again = (folder / "done").read_text().splitlines()
        # An environment is made anew and brought to its place by the recorded actions; a tool is not called again.
        assert again == done if kind == "tools" else again[-len(done) :] == done
