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
    "file_size": [
        'def file_size(kilobytes):\n    return f"{kilobytes} KB"',
        "A size stands in brackets here, with a k.",
        'def file_size(kilobytes):\n    return f"[{kilobytes}k]"',
    ],
    "folder_size": [
        'def folder_size(sizes):\n    return f"{sum(sizes)} KB"',
        "A size stands in brackets here, with a k.",
        'def folder_size(sizes):\n    return f"[{sum(sizes)}k]"',
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
