"""`retry` in a process that is killed in its third try, and called again."""

import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from repetition import repeats

from support.forked import run_forked

SCRIPT = Path(__file__).parents[1] / "support" / "mortal_retry.py"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["function", "judge", "any"])
def test_no_finished_try_is_made_again(where: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    for number in range(repeats(10)):
        home, log = tmp_path / str(number), tmp_path / f"{number}.log"
        env = {**os.environ, "MULLIGAN_HOME": str(home), "MULLIGAN_STORE": ""}
        at = f"{chance.uniform(0, 0.02):.4f}" if where == "any" else where
        killed = run_forked([sys.executable, str(SCRIPT), str(log), at], env=env, cwd=tmp_path)
        assert killed.returncode == -9 or where == "any", killed.stderr
        if killed.returncode == 0:  # it was done before
            continue
        ran = run_forked([sys.executable, str(SCRIPT), str(log), ""], env=env, cwd=tmp_path)
        assert (ran.stdout, ran.stderr) == ("4 [1, 2, 3, 4] True\n", "")
        tries = Counter(log.read_text().split())
        assert (tries["1"], tries["2"], tries["4"]) == (1, 1, 1)
        assert tries["3"] == {"function": 2, "judge": 1}.get(where, tries["3"]) <= 2
