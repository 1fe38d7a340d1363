"""Ladybug, the embedded graph database: a file, opened read-only by a process of its own that can be killed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.core.extras import MissingExtra
from mulligan.graphs._asking import MEMORY, Asking
from mulligan.graphs._process import Engine

NOTES = (
    "Labels, relationship types and properties other than those of the schema are errors.",
    "label(n) is a node's label and label(r) a relationship's type; there is no type().",
    "A path of several steps is -[:TYPE*1..3]->; at most 30 steps.",
    "The shortest path is MATCH p = (a)-[:TYPE* SHORTEST 1..10]->(b); there is no shortestPath().",
    "A subquery is EXISTS { MATCH ... } or COUNT { MATCH ... }; there is no CALL { ... }.",
    "There are no list or pattern comprehensions: use collect(), list_transform(list, x -> ...) and list_filter().",
    "ORDER BY behind WITH needs a SKIP or LIMIT behind it.",
    "Values are converted by cast(x, 'INT64'); dates are date('2020-01-31'), times timestamp('2020-01-31 12:00:00').",
    "A regular expression has to match the whole text: n.name =~ '.*kinase.*'.",
)


class LadybugGraph(Asking):
    """A database file. What is read is its state when it was opened; it is opened again when the file has changed.

    memory: MB that one query may take. Raises `InvalidInput` where there is no such file, or no Ladybug installed.
    """

    language: str = "Cypher (Ladybug dialect)"
    notes: Sequence[str] = NOTES

    def __init__(self, path: str | Path, *, memory: int = MEMORY) -> None:
        if find_spec("ladybug") is None:
            raise MissingExtra("Graphs in a file need Ladybug", "kg")
        self._path = Path(path).expanduser().absolute()
        if not self._path.exists():
            raise InvalidInput(f"There is no graph at {path}: mulligan graph load makes one from CSV files.")
        if self._path.is_dir():
            raise InvalidInput(f"{path} is a folder, and a graph is a file: mulligan graph load {path} --into FILE.")
        setup = {"engine": "ladybug", "path": str(self._path)}
        super().__init__(str(path), Engine(str(path), setup, memory), _Watched(self._path).changed)


class _Watched:
    """The files of a database: itself, and what was written to it and is not yet in it."""

    def __init__(self, path: Path) -> None:
        self._paths = (path, path.with_name(path.name + ".wal"))
        self._seen = [_stamp(path) for path in self._paths]

    def changed(self) -> bool:
        before, self._seen = self._seen, [_stamp(path) for path in self._paths]
        return before != self._seen


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
