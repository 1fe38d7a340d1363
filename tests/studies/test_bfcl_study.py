"""The tasks of the study of BFCL are those that its rule chooses."""

import json
import os
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("MULLIGAN_DATA") or ROOT.parent / "shared/data")
WHEELS = sorted(REAL.rglob("bfcl_eval-*.whl"))


@pytest.mark.skipif(not WHEELS, reason="needs the wheels of bfcl-eval and mpmath")
def test_the_tasks_are_those_with_the_fewest_turns() -> None:
    written = json.loads((ROOT / "studies/bfcl/tasks.json").read_text("utf-8"))
    assert len(written) == 40
    assert runpy.run_path(str(ROOT / "studies/bfcl/run.py"))["chosen"](WHEELS[0]) == written
