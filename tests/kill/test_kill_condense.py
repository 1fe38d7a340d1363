"""kill -9 in the middle of condensing: no answered question is asked again, and the record is the same as without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent.parent / "support"
SRC = Path(__file__).parent.parent.parent / "src"


def played(folder: Path, die: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, str(SUPPORT / "mortal_condense.py"), str(folder), die]
    env = {**os.environ, "MULLIGAN_HOME": str(folder), "PYTHONPATH": os.pathsep.join([str(SUPPORT), str(SRC)])}
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.slow
def test_a_kill_while_lessons_are_condensed_repeats_no_question(tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", "")
    assert whole.returncode == 0, whole.stderr
    asked = (tmp_path / "whole" / "asked").read_text().splitlines()
    assert [line.startswith("condense") for line in asked].count(True) == 3
    assert '"condensed": {"text": "Neither of those 2.", "trials": [1, 2, 3]' in whole.stdout
    steps = (
        "trial.3/reflect/model.reflector#1",
        "trial.3/reflect/model.condenser#1",
        "trial.3/reflect/model.condenser#2",
        "trial.4/reflect/model.condenser#1",
    )
    for number, die in enumerate((*steps, "!1", "!2", "!3")):
        folder = tmp_path / str(number)
        killed = played(folder, die)
        assert killed.returncode == -9, killed.stderr
        resumed = played(folder, "")
        assert (resumed.returncode, resumed.stdout) == (0, whole.stdout), resumed.stderr
        assert (folder / "asked").read_text().splitlines() == asked
