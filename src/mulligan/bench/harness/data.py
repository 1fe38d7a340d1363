"""Finds a benchmark's data: in --data, else `MULLIGAN_DATA`, else the cache that `fetch` fills, else in the package."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from mulligan.core.benchmarks import Benchmark, HasData
from mulligan.core.errors import InvalidInput
from mulligan.core.home import home


def cache() -> Path:
    """The folder that `fetch` fills, one folder for each benchmark in it."""
    return home() / "data"


def find_data(benchmark: Benchmark, given: str | os.PathLike[str] | None) -> Sequence[Path]:
    """The files that the benchmark reads, in order; those that the package brings where no others are found.

    Args:
        given: a file, or a folder to search; of several matches the one nearest to its top is taken.

    Raises:
        InvalidInput: there is no data; the message says where it was looked for, and what to do.
    """
    if not benchmark.data and given is None:
        return []
    if given is not None:
        path = Path(given).expanduser().resolve()
        if path.is_file():
            return [path]
        if not path.is_dir():
            raise InvalidInput(f"The data {path} does not exist.")
        folders = [path]
    else:
        folders = [Path(p).expanduser().resolve() for p in (os.environ.get("MULLIGAN_DATA"), cache()) if p]
    for folder in folders:
        if found := _matches(folder, benchmark.data):
            return found
    if given is None and isinstance(benchmark, HasData):
        return list(benchmark.own)
    name = type(benchmark).__module__.rpartition(".")[2]
    fetch = f"Fetch it: mulligan bench fetch {name}" if benchmark.sources else benchmark.where
    looked = " and ".join(map(str, folders))
    raise InvalidInput(f"No {benchmark.data} in {looked}. {fetch}; or name its folder with --data or MULLIGAN_DATA.")


def _matches(folder: Path, pattern: str) -> list[Path]:
    """All files that match a pattern; of a plain name only the one nearest to the top."""
    found = sorted(folder.rglob(pattern), key=lambda path: (len(path.parts), path)) if folder.is_dir() else []
    found = [path for path in found if path.is_file()]
    return sorted(found) if any(c in pattern for c in "*?[") else found[:1]


def hashed(files: Sequence[Path]) -> dict[str, str]:
    """The sha256 of each file, by its path below their common folder: moved data keeps its hashes."""
    top = Path(os.path.commonpath([path.parent for path in files])) if files else Path()
    return {str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
