"""Reads a task: a sentence, or a folder with `task.md` and `tests.py` or `evaluate.toml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mulligan.app.config import parse
from mulligan.app.plugin_files import real_path
from mulligan.app.plugins import examine, file_of, parse_spec
from mulligan.app.recipe import read_file
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json, Spec, Task


@dataclass(frozen=True)
class TaskFolder:
    """The task, and the evaluator of its folder, if it has one."""

    task: Task
    evaluator: Spec | None = None


def read_task(given: str | Task | os.PathLike[str]) -> TaskFolder:
    """Reads a task. Raises `InvalidInput` if it is empty, a folder without `task.md`, a file, or a missing path."""
    if isinstance(given, Task):
        return TaskFolder(given)
    if not str(given).strip():  # an empty path would mean the working folder
        raise InvalidInput("The task is empty: describe what to do.")
    folder = Path(given)
    try:
        is_folder, is_file = folder.is_dir(), folder.is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL: so a sentence
        is_folder = is_file = False
    if is_folder:
        return TaskFolder(Task(read_file(str(folder / "task.md"), "task file").strip()), _evaluator(folder))
    text = str(given)
    if is_file:
        raise InvalidInput(
            f"The task {text} is a file. Write the task as a sentence, specify a folder that contains task.md, or "
            f"pass the file on standard input: mulligan solve - < {text}"
        )
    if any("\ud800" <= c <= "\udfff" for c in text):  # how Python decodes bytes that are not UTF-8
        raise InvalidInput("The task is not valid UTF-8. Save it as UTF-8 in a folder, as task.md.")
    if not isinstance(given, str) or (os.sep in text and not any(c.isspace() for c in text.strip())):
        raise InvalidInput(f"The task folder {text} does not exist.")
    return TaskFolder(Task(text))


def tests_spec(path: str | os.PathLike[str]) -> Spec:
    """The unit tests in a file, as an evaluator. Raises `InvalidInput` when it cannot be read."""
    file = Path(path).expanduser().resolve()
    read_file(str(file), "test file")
    return Spec("unit_tests", {"tests": {"file": str(file)}, "name": file.name})


def judge_spec(judge: Any) -> Spec | None:
    """The evaluator for a judge that is a name or the path of a test file. None for another judge."""
    if isinstance(judge, str):
        return parse_spec("evaluators", judge)
    return tests_spec(judge) if hasattr(judge, "__fspath__") else None


def _evaluator(folder: Path) -> Spec | None:
    tests, settings = folder / "tests.py", folder / "evaluate.toml"
    if tests.exists() and settings.exists():
        raise InvalidInput(f"{folder} has both tests.py and evaluate.toml: keep the one that should judge.")
    if tests.exists():
        return tests_spec(tests)
    if not settings.exists():
        return None
    values = parse(settings, read_file(str(settings), "evaluator file"))
    name = values.pop("evaluator", None)
    if not isinstance(name, str):
        raise InvalidInput(f'{settings} needs the line evaluator = "name".')
    return spec_beside("evaluators", folder, name, values)


def spec_beside(role: str, folder: Path, name: str, settings: Mapping[str, Json]) -> Spec:
    """A plug-in that a file in this folder names. Plug-in files and settings {"file": name} are relative to the folder.

    Raises `UnknownName` and `InvalidInput` as `plugins.find` does.
    """
    spec = plugin_beside(role, folder, name)
    examine(role, spec.name)
    return Spec(spec.name, {**spec.settings, **{key: _beside(folder, value) for key, value in settings.items()}})


def plugin_beside(role: str, folder: Path, name: str) -> Spec:
    """A plug-in that a file in this folder names. A plug-in file is relative to the folder."""
    return parse_spec(role, str(real_path(name, folder)) if file_of(name) else name)


def _beside(folder: Path, value: Json) -> Json:
    """A setting {file = "name"} means a file in the task's folder."""
    if isinstance(value, dict) and set(value) == {"file"}:  # pyright: ignore[reportUnknownArgumentType]
        value = {"file": str(folder.resolve() / str(value["file"]))}  # pyright: ignore[reportUnknownArgumentType]
    return cast(Json, value)
