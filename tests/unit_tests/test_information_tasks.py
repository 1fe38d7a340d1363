"""The tasks of studies/information are what its README says. No model runs here."""

import ast
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

from mulligan.core.records import Feedback

STUDY = Path(__file__).parents[2] / "studies" / "information"
SETS = ("tasks", "forms")
FOLDERS = sorted(folder for name in SETS for folder in (STUDY / name).glob("*/*/"))
NAMES = [folder.relative_to(STUDY).as_posix() for folder in FOLDERS]
each_task = pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)


def asserted(tests: str) -> list[tuple[str, str]]:
    """The call and the expected value of each assert, as Python source."""
    rows: list[tuple[str, str]] = []
    for line in ast.parse(tests).body:
        assert isinstance(line, ast.Assert)
        assert isinstance(line.test, ast.Compare)
        assert isinstance(line.test.left, ast.Call)
        rows.append((ast.unparse(line.test.left), ast.unparse(line.test.comparators[0])))
    return rows


def function(task: str) -> str:
    (name,) = [line.split()[1].partition("(")[0] for line in task.splitlines() if line.startswith("    def ")]
    return name


def looked_up(folder: Path) -> str:
    """A program that knows the visible answers and nothing else."""
    name = function((folder / "task.md").read_text())
    calls = asserted((folder / "tests.py").read_text())
    table = ", ".join(f"({call.replace(name, 'repr_of', 1)}, {value})" for call, value in calls)
    return (
        "def repr_of(*given):\n    return repr(given)\n\n"
        f"def {name}(*given):\n    return dict([{table}]).get(repr(given))\n"
    )


def passes(program: str, tests: str) -> bool:
    scope: dict[str, Any] = {}
    exec(program, scope)
    try:
        exec(tests, scope)
    except AssertionError:
        return False
    return True


def test_each_set_has_twelve_families_of_three_and_each_name_is_used_once() -> None:
    for name in SETS:
        families = [folder.parent for folder in FOLDERS if folder.is_relative_to(STUDY / name)]
        assert list(Counter(families).values()) == [3] * 12
    names = [function((folder / "task.md").read_text()) for folder in FOLDERS]
    assert len(set(names)) == 72
    assert [folder.name.partition("_")[2] for folder in FOLDERS] == names


@each_row("family", sorted((STUDY / "forms").iterdir()))
def test_in_forms_the_first_tasks_checks_hold_all_that_the_others_ask_for(family: Path) -> None:
    """What stands around the values is the same text in all expected values of a family."""
    around: set[str] = set()
    for folder in family.iterdir():
        for _, value in asserted((folder / "tests.py").read_text() + (folder / "hidden.py").read_text()):
            literal: Any = ast.literal_eval(value)
            texts: list[str] = [*literal] if isinstance(literal, list) else [literal]
            around |= {"".join(re.findall(r"[^\w .]", text)) for text in texts}
    assert len({frozenset(one) for one in around}) == 1


@each_task
def test_a_task_tells_solution_naive_and_written_down_answers_apart(folder: Path) -> None:
    visible, hidden = (folder / "tests.py").read_text(), (folder / "hidden.py").read_text()
    solution, naive = (folder / "solution.py").read_text(), (folder / "naive.py").read_text()
    assert passes(solution, visible)
    assert passes(solution, hidden)
    assert not passes(naive, visible)
    assert not passes(naive, hidden)
    assert passes(looked_up(folder), visible)
    assert not passes(looked_up(folder), hidden)


@each_task
def test_hidden_asserts_are_four_or_more_on_other_inputs_and_the_task_holds_no_answer(folder: Path) -> None:
    visible, hidden = asserted((folder / "tests.py").read_text()), asserted((folder / "hidden.py").read_text())
    assert 1 <= len(visible) <= 2
    assert len(hidden) >= 4
    assert not {call for call, _ in visible} & {call for call, _ in hidden}
    task = (folder / "task.md").read_text()
    assert "this project uses for" in task
    for call, value in (*visible, *hidden):
        assert call not in task
        assert value in ("None", "[]") or value not in task
    assert len((folder / "solution.py").read_text().splitlines()) <= 6


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("folder", FOLDERS[::9], ids=NAMES[::9])
async def test_the_evaluator_judges_as_plain_python_does(
    folder: Path, judge: Callable[..., Awaitable[Feedback]]
) -> None:
    visible, hidden = (folder / "tests.py").read_text(), (folder / "hidden.py").read_text()
    solution, naive = (folder / "solution.py").read_text(), (folder / "naive.py").read_text()
    assert (await judge(solution, visible)).passed is True
    assert (await judge(solution, hidden)).passed is True
    failed = await judge(naive, visible)
    assert failed.passed is False
    assert all(line in failed.text for line in visible.splitlines())
    assert (await judge(looked_up(folder), visible)).passed is True
    assert (await judge(looked_up(folder), hidden)).passed is False
