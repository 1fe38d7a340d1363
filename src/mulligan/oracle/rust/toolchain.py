"""The Rust compiler of this machine, and the judge's own part compiled once for it: the warm folder of this process.

What stands in that folder is ours alone; code that is judged is compiled and run elsewhere, see `building`.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mulligan.core.errors import SandboxError

_INSTALL = "Install Rust: `apt-get install rustc` on Debian or Ubuntu, else https://rustup.rs"
_JUDGE = Path(__file__).parent / "judge.rs"
_SECONDS = 120.0


@dataclass(frozen=True)
class Toolchain:
    """rustc: the compiler itself, not rustup's stand-in for it. sysroot: the folder that it and its library are in, the
    shared one under `shared`. path: where its linker is looked for.

    folder: the warm one. crate: what our part is called there, by a name that no code can foresee.
    """

    rustc: str
    sysroot: str
    shared: str
    path: str
    version: str
    folder: str
    crate: str

    @property
    def readable(self) -> tuple[str, ...]:
        return (self.sysroot, self.folder)

    @property
    def library(self) -> str:
        return os.path.join(self.folder, f"lib{self.crate}.rlib")


@cache
def toolchain() -> Toolchain:
    """Looked for and set up once per process. Raises `SandboxError` that says what to install."""
    rustc = shutil.which("rustc") or shutil.which("rustc", path=os.path.expanduser("~/.cargo/bin"))
    if rustc is None:
        raise SandboxError(f"Judging Rust needs the compiler rustc, which is not found here. {_INSTALL}")
    linker = shutil.which("cc")
    if linker is None:
        raise SandboxError("Judging Rust needs a linker, and there is no cc here: install gcc (`apt-get install gcc`).")
    sysroot = os.path.realpath(_said([rustc, "--print", "sysroot"]))
    own = os.path.join(sysroot, "bin", "rustc")
    own = own if os.access(own, os.X_OK) else os.path.realpath(rustc)
    folder = tempfile.TemporaryDirectory(prefix="mulligan-rust-")
    _kept.append(folder)
    os.chmod(folder.name, 0o755)  # jobs may run as another user
    path = ":".join(dict.fromkeys([os.path.dirname(linker), "/usr/local/bin", "/usr/bin", "/bin"]))
    shared, version = _said([own, "--print", "target-libdir"]), _said([own, "--version"])
    found = Toolchain(own, sysroot, shared, path, version, folder.name, f"judge_{secrets.token_hex(8)}")
    how = ("--edition", "2021", "--crate-type", "rlib", "--crate-name", found.crate, "-O", "-A", "warnings")
    _said([own, *how, "-o", found.library, str(_JUDGE)])
    os.chmod(found.library, 0o644)
    return found


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when this process ends."""


def _said(command: list[str]) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"The Rust compiler does not run: {error}. {_INSTALL}") from error
    if ran.returncode:
        raise SandboxError(f"The Rust compiler {command[0]} failed: {ran.stderr.strip()[:600]}\n{_INSTALL}")
    return ran.stdout.strip()
