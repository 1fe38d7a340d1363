"""Problems in an agent's files: where each is, what is wrong and what to do. They are collected and shown together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class Problem:
    """A problem with a file. `line` counts from 1; None: the whole file, or a missing one. A warning stops nothing."""

    file: Path
    line: int | None
    message: str
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """`file:line: message`, as compilers write it; inside the working folder, the path is relative to it."""
        cwd = Path.cwd()
        shown = self.file.relative_to(cwd) if self.file.is_relative_to(cwd) else self.file
        where = f"{shown}:{self.line or 1}"
        return f"{where}: {'warning: ' if self.level == 'warning' else ''}{self.message}"


def problem_of(file: Path, error: InvalidInput) -> Problem | None:
    """The problem that an error of the form `file:line: message` describes; None for an error about another file."""
    match = re.match(r"(?::(\d+))?[:,]? *(.*)", str(error).removeprefix(str(file)), re.DOTALL)
    if match is None or not str(error).startswith(str(file)):
        return None
    return Problem(file, int(match[1]) if match[1] else None, match[2])


def refuse(problems: Iterable[Problem]) -> None:
    """Raises `InvalidInput` with a line for each error, if there is one. The caller shows warnings."""
    errors = [str(problem) for problem in problems if problem.level == "error"]
    if errors:
        raise InvalidInput("\n".join(errors))
