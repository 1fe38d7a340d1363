"""The tasks of the study, with the asserts that the loop judges by and the hidden ones that score afterwards."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.bench.harness.data import find_data
from mulligan.bench.programming.humaneval import HumanEval
from mulligan.core.errors import InvalidInput
from mulligan.text.json_lines import objects

STUDIES = Path(__file__).parents[1]
EVERY = 4
"""Of HumanEval's 164 items, as in `studies/humaneval/cases.py`."""
FAMILIES = {"information": "tasks", "forms": "forms"}
"""Sets of families of three tasks, and the folders that hold them."""
SETS = (*FAMILIES, "humaneval", "tasks_b")


@dataclass(frozen=True)
class Item:
    """group: names the tasks that depend on each other. max_tokens: of an attempt, enough for every reference."""

    set: str
    name: str
    group: str
    prompt: str
    visible: str
    hidden: str
    max_tokens: int = 400


def load(name: str, data: str | None = None) -> Sequence[Item]:
    """The tasks of a set, in the order in which they are run. data: where HumanEval is, else MULLIGAN_DATA says."""
    if name in FAMILIES:
        return families(name)
    if name == "tasks_b":
        return [_folder(name, folder, folder.name, "tests.py") for folder in _tasks(STUDIES / "second_tries/tasks_b")]
    return humaneval(data)


def families(name: str) -> Sequence[Item]:
    """The families in rotation: the first task of each, then the second, then the third."""
    found = [
        (folder.name, family.name, folder)
        for family in _tasks(STUDIES / "information" / FAMILIES[name])
        for folder in _tasks(family)
    ]
    found.sort(key=lambda one: (one[0].partition("_")[0], one[1]))
    return [_folder(name, folder, family, "hidden.py") for _, family, folder in found]


def humaneval(data: str | None) -> Sequence[Item]:
    """Every fourth item; the even-numbered asserts (the second, the fourth, …) are visible, the others hidden."""
    (file,) = find_data(HumanEval("openai", judges=_nobody), data)
    rows = [row for _, row in objects(file.read_bytes(), str(file))][::EVERY]
    found: list[Item] = []
    for row in rows:
        visible, hidden = split(str(row["test"]), str(row["entry_point"]))
        found.append(
            Item("humaneval", str(row["task_id"]), str(row["task_id"]), str(row["prompt"]), visible, hidden, 600)
        )
    return found


def split(test: str, name: str) -> tuple[str, str]:
    """The asserts of HumanEval's `check`, as asserts on the function `name`: the even-numbered, and the others.

    A loop of asserts counts as one. The only check of an item (HumanEval/32, a hundred random rounds) is in both. An
    assert that does not call the function is left out, and so are messages, which say nothing of the value.
    """
    (check,) = [node for node in ast.parse(test).body if isinstance(node, ast.FunctionDef) and node.name == "check"]
    checks: list[str] = []
    setting: list[str] = []
    for node in check.body:
        asserts = [each for each in ast.walk(node) if isinstance(each, ast.Assert)]
        calls = any(isinstance(each, ast.Name) and each.id == "candidate" for each in ast.walk(node))
        for each in asserts:
            each.msg = None
        if calls and asserts:
            checks.append(ast.unparse(_Named(name).visit(node)))
        elif not asserts:
            setting.append(ast.unparse(node))
    visible, hidden = checks[1::2] or checks, checks[0::2]
    return "\n".join([*setting, *visible]) + "\n", "\n".join([*setting, *hidden]) + "\n"


class _Named(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._name, node.ctx) if node.id == "candidate" else node


def _tasks(folder: Path) -> Sequence[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir())


def _folder(set: str, folder: Path, group: str, hidden: str) -> Item:
    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    name = folder.name if group == folder.name else f"{group}/{folder.name}"
    return Item(set, name, group, text("task.md"), text("tests.py"), text(hidden))


def _nobody(spec: object) -> object:
    raise InvalidInput("This benchmark is only asked where its data is.")
