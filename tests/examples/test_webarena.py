"""examples/webarena: its tasks, and its environment against BrowserGym itself, on a page of our own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from mulligan import ScriptedModel
from mulligan.app.plugins import find
from mulligan.bench.harness.running import run_benchmark
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Spec

FILE = Path(__file__).parents[2] / "examples" / "webarena" / "webarena.py"
ROWS = [
    {"task_id": 21, "sites": ["shopping"], "intent": "List the reviewers who mention small ear cups."},
    {"task_id": 7, "sites": ["wikipedia", "map"], "intent": "Which airport is near?"},
    {"task_id": 552, "sites": ["gitlab", "reddit"], "intent": "Post the link to the repository."},
]


def test_tasks_are_cases_by_site_and_those_of_the_map_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "test.raw.json").write_text(json.dumps(ROWS))
    benchmark: Any = find("benchmarks", f"{FILE}:WebArena")
    cases = benchmark().load([tmp_path / "test.raw.json"])
    assert [(case.id, case.task.prompt, case.target) for case in cases] == [
        ("shopping/21", ROWS[0]["intent"], "webarena.21"),
        ("gitlab+reddit/552", ROWS[2]["intent"], "webarena.552"),
    ]
    assert len(benchmark(without="").load([tmp_path / "test.raw.json"])) == 3
    methods = benchmark().methods()
    assert [(name, method.oracle, method.trials) for name, method in methods.items()] == [
        ("simple", False, 1),
        ("reflexion", True, 5),
    ]
    played = benchmark().play(cases[0], methods["simple"])
    assert played.environment == Spec(str(FILE), {"task": "webarena.21"})


@pytest.mark.parametrize("task", ["", "../x", "a b"])
def test_what_is_no_name_of_a_task_is_refused(task: str) -> None:
    world: Any = find("environments", f"{FILE}:Browser")
    with pytest.raises(InvalidInput, match="A task of BrowserGym is a name"):
        world(task=task)


async def test_without_browsergym_the_run_says_what_is_missing(tmp_path: Path) -> None:
    if importlib.util.find_spec("browsergym"):
        pytest.skip("browsergym is installed here")
    (tmp_path / "test.raw.json").write_text(json.dumps(ROWS[:1]))
    finished = await run_benchmark(str(FILE), model=ScriptedModel(['click("a1")']), data=tmp_path / "test.raw.json")
    assert [result.status for result in finished.results] == ["error"]
    assert "pip install browsergym-webarena" in str(finished.results[0])


@pytest.mark.skipif(importlib.util.find_spec("browsergym") is None, reason="needs browsergym")
async def test_a_page_is_seen_and_acted_on_through_browsergym(tmp_path: Path) -> None:
    page = tmp_path / "shop.html"
    page.write_text("<button onclick=\"this.textContent = 'Bought it'\">Buy it</button>")
    task = {"start_url": page.as_uri(), "goal": "Buy it."}
    options = {"headless": True, "task_kwargs": task}
    world: Any = find("environments", f"{FILE}:Browser")
    browser = world(task="openended", options=options)
    try:
        first = await browser.reset()
        assert first.startswith(f"Goal: Buy it.\n\nAddress: {page.as_uri()}\n")
        button = next(line for line in first.splitlines() if "button 'Buy it'" in line)
        step = await browser.step(f'click("{button.partition("[")[2].partition("]")[0]}")')
        assert "button 'Bought it'" in step.observation
        assert (step.outcome.reward, step.outcome.done) == (0.0, False)
        failed = await browser.step('click("999")')
        assert failed.observation.startswith("The action failed: ")
        told = await browser.step('send_msg_to_user("It is bought.")')
        assert told.observation.startswith("You told the user: It is bought.\n")
        assert (await browser.reset()) == first, "it begins anew"
    finally:
        await browser.close()
