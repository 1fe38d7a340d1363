"""Finds a benchmark's data: in --data, else MULLIGAN_DATA, the cache that `fetch` fills, or the package."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from mulligan.core.benchmarks import Benchmark, HasData
from mulligan.core.errors import InvalidInput
from mulligan.core.home import home


def cache() -> Path:
    """The folder that `fetch` fills. It has a folder for each benchmark."""
    return home() / "data"


def find_data(benchmark: Benchmark, given: str | os.PathLike[str] | None) -> Sequence[Path]:
    """The files that the benchmark reads, in order. If none are found, those in the package.

    Args:
        given: a file, or a folder to search. Of several files with the name, the one nearest to its top is used.

    Raises:
        InvalidInput: there is no data. The message says where it was looked for, and what to do.
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
        places = (os.environ.get("MULLIGAN_DATA"), cache())
        folders = [Path(place).expanduser().resolve() for place in places if place]
    for folder in folders:
        if files := _matches(folder, benchmark.data):
            return files
    if given is None and isinstance(benchmark, HasData):
        return list(benchmark.own)
    name = type(benchmark).__module__.rpartition(".")[2]
    fetch = f"Fetch it: mulligan bench fetch {name}" if benchmark.sources else benchmark.where
    looked = " and ".join(map(str, folders))
    raise InvalidInput(
        f"There is no {benchmark.data} in {looked}. {fetch}, or specify its folder with --data or MULLIGAN_DATA."
    )


def _matches(folder: Path, pattern: str) -> list[Path]:
    """All files that match a pattern. If the pattern is a plain name, only the file nearest to the top."""
    files = [path for path in folder.rglob(pattern) if path.is_file()] if folder.is_dir() else []
    if any(wildcard in pattern for wildcard in "*?["):
        return sorted(files)
    return sorted(files, key=lambda path: (len(path.parts), path))[:1]


def hashed(files: Sequence[Path]) -> dict[str, str]:
    """The sha256 of each file, by its path in their common folder, which stays the same if the data is moved."""
    top = Path(os.path.commonpath([path.parent for path in files])) if files else Path()
    return {str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
