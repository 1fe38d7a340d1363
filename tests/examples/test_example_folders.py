"""The tasks that ship as examples: each can be judged, and its first wrong answer can be mended."""

from pathlib import Path

import pytest

import mulligan
from mulligan.store.sqlite import SqliteStore

ROOT = Path(__file__).parent.parent.parent
FOLDERS = {
    folder.name: folder
    for place in (ROOT / "examples", ROOT / "src" / "mulligan" / "examples")
    for folder in place.iterdir()
    if (folder / "task.md").is_file()
}
ANSWERS = {
    "capital": ["Sydney", "Sydney is its largest city, not its capital.", "Canberra."],
    "factorial": [
        "def factorial(n):\n    return n * factorial(n - 1)",
        "factorial never ends: 0 needs a value of its own.",
        "def factorial(n):\n    return n * factorial(n - 1) if n else 1",
    ],
    "nearest_hundred": [
        "def nearest_hundred(number):\n    return number // 100 * 100",
        "nearest_hundred never rounds up: add half of 100 first.",
        "def nearest_hundred(number):\n    return (number + 50) // 100 * 100",
    ],
    "nearest_ten": [
        "def nearest_ten(number):\n    return round(number + 5) // 10",
        "nearest_ten does not multiply the tens back.",
        "def nearest_ten(number):\n    return (number + 5) // 10 * 10",
    ],
}


def test_every_folder_is_tried() -> None:
    assert set(FOLDERS) == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_example_fails_and_is_mended(name: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    model = mulligan.ScriptedModel(ANSWERS[name])
    episode = await mulligan.solve(FOLDERS[name], model=model, store=store)
    await store.close()
    assert [t.feedback and t.feedback.passed for t in episode.trials] == [False, True]
