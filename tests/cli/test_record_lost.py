"""A store that is deleted while a command uses it: the result is given, and nobody is told that it is recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

CLEANS_UP = '''
import os, shutil
from pathlib import Path
from mulligan.core.records import Attempt

class CleansUp:
    """Deletes `what` of the store in its first trial, and answers "right" in its second."""

    def __init__(self, *, what: str = "") -> None:
        self._what = what

    async def act(self, episode, past):
        if episode.trials:
            return Attempt("right")
        gone = Path(os.environ["MULLIGAN_HOME"], self._what)
        gone.unlink() if gone.is_file() else shutil.rmtree(gone)
        return Attempt("wrong")
'''

SOLVE = ("solve", "x", "--actor", "./cleans_up.py", "--evaluator", "./judge.py", "--strategy", "none")


@pytest.mark.parametrize("what", ["mulligan.db", ""])
def test_the_result_is_given_and_its_record_not_promised(mulligan: Run, here: Path, what: str) -> None:
    (here / "cleans_up.py").write_text(CLEANS_UP)
    ended = mulligan(*SOLVE, "--set", f"actor.what={what}")
    assert (ended.status, ended.out) == (3, "right\n")
    assert "mulligan.db: it was deleted while it was in use" in ended.err
    assert "recorded:" not in ended.err
    assert "is kept" not in ended.err


def test_programs_are_given_the_result_and_then_the_error(mulligan: Run, here: Path) -> None:
    (here / "cleans_up.py").write_text(CLEANS_UP)
    ended = mulligan(*SOLVE, "--set", "actor.what=mulligan.db", "--json")
    result, error = [json.loads(line) for line in ended.out.splitlines()[-2:]]
    assert (ended.status, result["output"], result["exit_status"]) == (3, "right", 3)
    assert (error["event"], error["exit_status"]) == ("error", 3)


def test_a_benchmark_stops_at_the_case_that_cannot_be_recorded(mulligan: Run, here: Path) -> None:
    judge = (here / "judge.py").read_text()
    deletes = 'Path(os.environ["MULLIGAN_HOME"], "mulligan.db").unlink(missing_ok=True)'
    (here / "judge.py").write_text(
        f"import os\nfrom pathlib import Path\n{judge}".replace("said =", f"{deletes}; said =")
    )
    (here / "mine.toml").write_text(
        '[[task]]\nid = "a"\nprompt = "x"\nevaluator = "judge.py"\n'
        '[[task]]\nid = "b"\nprompt = "y"\nevaluator = "judge.py"\n'
    )
    ended = mulligan("bench", "run", "mine.toml", "--model", "scripted:second.txt")
    assert ended.status == 3, ended.err
    assert "it was deleted while it was in use" in ended.err
    assert "report:" not in ended.err
