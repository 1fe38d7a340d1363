"""One episode through every face: the same record, the same stop reason. Faces to come join the list."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mulligan
from mulligan.core.codec import to_json
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

ENDS = {
    "solved": ["five", "Say it in digits.", "4"],
    "exhausted": ["five", "Say it in digits.", "six", "In digits.", "seven"],
    "stuck": ["five", "Say it in digits.", "five"],
    "error": ["five"],
}
TASK = "What is 2 + 2?"
LIMITS = {"trials": 3, "identical": 2}


def in_python(script: Path, home: Path) -> None:
    async def run() -> None:
        store = SqliteStore(home / "mulligan.db")
        await mulligan.solve(TASK, evaluator="exact_match:4", model=f"scripted:{script}", limits=LIMITS, store=store)
        await store.close()

    asyncio.run(run())


def on_the_command_line(script: Path, home: Path) -> None:
    options = ["--evaluator", "exact_match:4", "--model", f"scripted:{script}", "--trials", "3", "--identical", "2"]
    command = [sys.executable, "-m", "mulligan", "solve", TASK, *options, "--quiet"]
    subprocess.run(command, env={"MULLIGAN_HOME": str(home)}, timeout=60, capture_output=True, check=False)


def recorded(home: Path) -> Episode:
    async def read() -> Episode:
        store = SqliteStore(home / "mulligan.db")
        (episode,) = await store.list()
        await store.close()
        return episode

    return asyncio.run(read())


def comparable(episode: Episode) -> dict[str, Any]:
    record = to_json(episode)
    for volatile in ("id", "run", "started", "seconds"):
        record.pop(volatile)
    return record


@pytest.mark.parametrize("end", ENDS)
def test_every_face_leaves_the_same_record(tmp_path: Path, end: str) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ENDS[end]))
    records: list[dict[str, Any]] = []
    for face in (in_python, on_the_command_line):
        home = tmp_path / face.__name__
        face(script, home)
        episode = recorded(home)
        assert episode.stop
        assert episode.stop.reason == end
        records.append(comparable(episode))
    assert records[0] == records[1]
