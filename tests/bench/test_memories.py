"""Memories of others as arms: text for a task, learned from one episode after the other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from toy_streams import Learner, tasks

from mulligan.app.config import load
from mulligan.bench.harness.exam import run_exam
from mulligan.bench.harness.stream import StreamHooks, read_arm, resume_stream, run_stream
from mulligan.bench.report.stream import StreamReport, read_stream
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput, RecordLost, UnknownName
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Feedback, Stop, Task, Trial
from mulligan.store import open_store

MINE = """
from pathlib import Path

from mulligan.core.errors import RecordLost
from mulligan.plugins import Episode, Task, episode_text

BREAKS = Path(__file__).with_name("breaks")


class Mine:
    def __init__(self) -> None:
        self._accounts = []

    def learn(self, episode: Episode) -> None:
        if len(self._accounts) == 4 and BREAKS.exists():
            raise RecordLost("the process ends here")
        self._accounts.append(episode_text(episode))

    def recall(self, task: Task) -> str:
        return "\\n".join(self._accounts)
"""


@pytest.fixture
async def store() -> AsyncGenerator[Store]:
    async with open_store(load().store) as opened:
        yield opened


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (file := tmp_path / "mine.py").write_text(MINE)
    return file


def rows(report: StreamReport, arm: str) -> list[tuple[str, float | None, int]]:
    return [(row.case, row.score, row.recalled_tokens) for row in report.rows if row.arm == arm]


@pytest.mark.slow
async def test_a_memory_that_is_one_file_goes_on_where_it_broke_off(store: Store, tmp_path: Path, mine: Path) -> None:
    file = str(tasks(tmp_path, ("ant", "bee"), 3))
    options: dict[str, Any] = {
        "arms": ["none", str(mine), "markdown"],
        "orders": 1,
        "trials": 1,
        "method": "resample",
        "store": store,
    }
    whole = await read_stream(store, (await run_stream(file, model=Learner(), **options)).id)
    assert {row.arm for row in whole.rows} == {"none", "mine", "markdown"}
    shown = [tokens for _, _, tokens in rows(whole, "mine")]
    assert shown[0] == 0 < shown[1] < shown[-1], "it learns from each episode"
    assert all(row.recalled_tokens == 0 for row in whole.rows if row.arm == "none")

    mine.with_name("breaks").touch()
    begun = list[BenchRun]()
    with pytest.raises(RecordLost):
        await run_stream(file, model=Learner(), hooks=StreamHooks(on_begin=begun.append), **options)
    assert len((await read_stream(store, begun[0].id)).rows) < len(whole.rows)
    mine.with_name("breaks").unlink()
    await resume_stream(begun[0].id, model=Learner(), store=store)
    resumed = await read_stream(store, begun[0].id)
    assert rows(resumed, "mine") == rows(whole, "mine"), "it was taught again what it had learned"


def test_an_arm_names_a_memory_or_its_file_does(tmp_path: Path, mine: Path) -> None:
    (arm := tmp_path / "other.toml").write_text("memory = './mine.py'")
    assert read_arm(str(arm), load()) == replace(read_arm(str(mine), load()), name="other")
    with pytest.raises(UnknownName, match=r"No arm is called 'markdwon'\. Did you mean 'markdown'"):
        read_arm("markdwon", load())
    with pytest.raises(UnknownName, match="No memory is called 'nope'"):
        asyncio.run(run_exam(["nope"]))
    mine.write_text("class Mine:\n    def recall(self, task):\n        return 1\n")
    with pytest.raises(InvalidInput, match="learn"):
        read_arm(str(mine), load())


@pytest.mark.filterwarnings("ignore:Importing Send from langgraph.constants")  # by langmem
@pytest.mark.parametrize(("name", "package"), [("langmem", "langmem"), ("mem0", "mem0ai")])
async def test_a_memory_of_another_project_finds_the_episode_with_the_words_of_the_task(
    name: str, package: str, tmp_path: Path
) -> None:
    if find_spec(name) is None:  # without an import: mem0 reads whether it may send telemetry when it is imported
        pytest.skip(f"needs {package}: pip install {package}")
    memory = read_arm(name, load()).make(str(tmp_path))
    assert await memory.recall(Task("Which table holds the ships?")) == ""
    for n, words in enumerate(("the ships of the harbour", "a match of fencing", "seats in the theatre")):
        trial = Trial(1, Attempt(f"done {n}"), Feedback(True))
        await memory.learn(Episode(f"e{n}", Task(f"Count {words}."), trials=(trial,), stop=Stop("solved")))
    assert (await memory.recall(Task("Count the ships of the harbour."))).find("done 0") > 0
    assert (await memory.recall(Task("Count the ships of the harbour."))).startswith("A task that passed:")


def test_a_memory_of_another_project_that_is_too_old_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution = tmp_path / "mem0ai-0.1.118.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: mem0ai\nVersion: 0.1.118\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setitem(sys.modules, "mem0", ModuleType("mem0"))
    with pytest.raises(InvalidInput, match=r"mem0ai 0\.1\.118 is too old .*: pip install 'mem0ai>=2'"):
        read_arm("mem0", load()).make(str(tmp_path))
