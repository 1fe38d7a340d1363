"""The tasks of the study of streams are those that were written down before any model saw them."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

from each_row import each_row

FOLDER = Path(__file__).parents[2] / "studies" / "streams"


def fix() -> ModuleType:
    spec = importlib.util.spec_from_file_location("streams_fix", FOLDER / "fix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each_row(
    ("name", "tasks"),
    [("database", 36), ("code", 36), ("wide", 48), *((f"base-{seed}", 36) for seed in (59, 61, 67, 71))],
)
def test_the_settings_give_the_tasks_that_were_written_down(name: str, tasks: int) -> None:
    written = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert len(written["cases"]) == tasks
    assert fix().made(name) == written
