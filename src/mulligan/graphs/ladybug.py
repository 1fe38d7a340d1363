"""`LadybugGraph`: a file of Ladybug, the embedded graph database, opened read-only in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from mulligan.graphs._guarded import MEMORY, GuardedGraph, Worker
from mulligan.plugins import InvalidInput, require

NOTES = (  # for the model that writes the queries
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


class LadybugGraph(GuardedGraph):
    """A database file. Queries see its state when it was opened; it is opened again when the file has changed.

    Args:
        path: The database file.
        memory: The megabytes that one query may take.
        procedures: Procedures and functions that only read, beside those that the guard knows.

    Raises:
        InvalidInput: There is no file, or a folder, at the path, or Ladybug is not installed.
    """

    language: str = "Cypher (Ladybug dialect)"
    notes: Sequence[str] = NOTES

    def __init__(self, path: str | Path, *, memory: int = MEMORY, procedures: Collection[str] = ()) -> None:
        require("Graphs in a file need Ladybug", "ladybug", "kg")
        file = Path(path).expanduser().absolute()
        if not file.exists():
            raise InvalidInput(f"There is no graph at {path}. To create one from CSV files, run: mulligan graph load.")
        if file.is_dir():
            raise InvalidInput(
                f"{path} is a folder, not a graph file. Load it: mulligan graph load {path} --into FILE."
            )
        setup = {"engine": "ladybug", "path": str(file)}
        worker = Worker(str(path), setup, memory)
        super().__init__(str(path), worker, _watch(file), procedures=procedures)


def _watch(path: Path) -> Callable[[], bool]:
    """Return a function that tells whether the file or its write-ahead log has changed since the last call."""
    files = (path, path.with_name(path.name + ".wal"))

    def stamps() -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        for file in files:
            with suppress(FileNotFoundError):  # the log goes at each checkpoint
                stat = file.stat()
                found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return found

    seen = stamps()

    def changed() -> bool:
        nonlocal seen
        before, seen = seen, stamps()
        return before != seen

    return changed
