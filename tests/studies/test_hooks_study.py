"""The tasks of studies/hooks are what its README says. No model runs here."""

import csv
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mulligan.app.sessions import project_bank
from mulligan.bench.harness.proof import Plan, ProofTask, Row
from mulligan.bench.report.proof import proof_report
from mulligan.core.lessons import Selection
from mulligan.sessions.signature import digest, signature

STUDY = Path(__file__).parents[2] / "studies" / "hooks"
TASKS: list[dict[str, str]] = tomllib.loads((STUDY / "tasks.toml").read_text())["task"]
REHEARSAL: list[dict[str, str]] = tomllib.loads((STUDY / "rehearsal.toml").read_text())["task"]
BANK = "project:hooks-study"
TAUGHT = {"checks", "migrations", "models", "packing", "rehearsal", "reports", "staging", "syncing"}
"""Families of which the rules of today learn something: in the others the error does not name what made the difference."""


def run(command: list[str], folder: Path) -> tuple[int, str]:
    ran = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return ran.returncode, ran.stdout


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The context of each lesson that the recorded sessions teach."""
    import asyncio

    home = tmp_path_factory.mktemp("home")
    subprocess.run([sys.executable, STUDY / "teach.py", "--into", home], check=True, capture_output=True)

    async def read() -> list[dict[str, Any]]:
        async with project_bank(BANK) as bank:
            return [{"content": one.content, **one.context} for one in await bank.list(Selection(limit=None))]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULLIGAN_HOME", str(home / "home"))
        return asyncio.run(read())


def test_there_are_two_tasks_in_each_of_twelve_families() -> None:
    assert len(TASKS) == len({task["name"] for task in TASKS}) == 24
    assert set(Counter(task["family"] for task in TASKS).values()) == {2}
    assert not {task["family"] for task in TASKS} & {task["family"] for task in REHEARSAL}
    assert all(task["folder"] == f"families/{task['family']}" for task in TASKS + REHEARSAL)


@pytest.mark.slow
def test_each_family_of_which_something_is_learned_taught_one_lesson(lessons: list[dict[str, Any]]) -> None:
    assert len(lessons) == len({lesson["errors"][0] for lesson in lessons}) == len(TAUGHT)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS + REHEARSAL, ids=lambda task: task["name"])
def test_the_command_of_the_prompt_fails_and_what_the_lesson_says_solves_the_task(
    task: dict[str, str], lessons: list[dict[str, Any]], tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(STUDY / task["folder"], folder)
    check = shlex.split(task["check"])
    assert run(check, folder)[0] != 0
    command = task["prompt"].split("`")[1]
    code, output = run(shlex.split(command), folder)
    assert code == 1
    assert run(check, folder)[0] != 0
    about = [one for one in lessons if digest(signature(output)) in one["errors"]]
    if task["family"] not in TAUGHT:
        assert not about
        return
    (lesson,) = about
    module = task["name"].partition("-")[2]
    mended = lesson["content"].partition("works: ")[2].replace("orders", module)
    steps = [mended] if mended else [*lesson["mends"].values(), command]
    assert "orders" not in task["prompt"]
    for step in steps:
        assert run(shlex.split(step), folder)[0] == 0, step
    assert run(check, folder)[0] == 0
    assert os.path.exists(folder / "out" / f"{module}.txt")


def test_the_figures_that_are_reported_are_those_of_the_rows() -> None:
    def value(text: str) -> Any:
        return {"True": True, "False": False}.get(text, float(text) if text.replace(".", "", 1).isdigit() else text)

    read = csv.DictReader((STUDY / "runs.csv").read_text().splitlines())
    rows = [Row(**{name: value(text) for name, text in row.items()}) for row in read]
    plan = Plan(tuple(ProofTask(task["name"], "", "", "", task["family"], "", "", "") for task in TASKS), "agent")
    assert [(row.n, row.task, row.arm) for row in rows] == [(run.n, run.task.name, run.arm) for run in plan.runs()]
    report = proof_report(plan, rows)
    page = (STUDY / "README.md").read_text()
    for arm in report.arms:
        assert f"| {arm.arm} | {arm.solved.count} of {arm.runs} |" in page
    for name, one in report.differences.items():
        form = "+.0f" if name == "tokens" else "+.2f"
        line = (
            f"{one.value:{form}}** | {one.low:{form}}" if name == "solved" else f"{one.value:{form}} | {one.low:{form}}"
        )
        assert name == "seconds" or line in page
