"""The tasks of the study of the price are those that were fixed before any model saw them."""

import importlib.util
import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "studies" / "price"


def test_the_seeds_give_the_tasks_that_were_fixed() -> None:
    spec = importlib.util.spec_from_file_location("price_run", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    fixed = json.loads((FOLDER / "fixed.json").read_text("utf-8"))
    assert fixed == {str(seed): run.task_digest(seed) for seed in (*run.SEEDS, *run.DRIFT_SEEDS)}
