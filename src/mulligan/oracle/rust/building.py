"""The crate that code and tests become, and the sandboxed job that compiles and runs it.

The root of the crate comes to the compiler by a pipe and holds the tests; the judged code is the one file there
is, so that its `include_str!` finds nothing but itself, and no brace of it can reach out of its module. The tests are
laid into that module by a macro whose name is drawn for the run.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mulligan.core.errors import SandboxError
from mulligan.core.protocols import Job
from mulligan.oracle.rust.program import Program, ours
from mulligan.text.rust import masked

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


COMPILING = 30.0
"""Seconds that the compiler may take, beside those of the tests."""
FILE = "solution.rs"
MODULE = "solution"
_ROOTED = re.compile(r"(?<!\w)crate\s*::\s*")
ROOT = "<anon>"
_COMPILER_MB = 4096
_START = """read -r secret
env -i PATH="$0" TMPDIR=. "$@" 1>&2 || exit 90
exec env -i ./judged <<-END
	$secret
	END
"""
NONE_MADE = 90
"""The job compiles and then becomes the program; this status says that there is none. Neither sees an environment from
which code could learn where it is."""


@dataclass(frozen=True)
class Crate:
    """root: the source. lay: the macro that lays the tests into the judged module. secret: what a report begins with,
    in no file.

    lines: by test (its number in the program) the lines of the root that it stands on, from 1 and without the last.
    """

    root: str
    lay: str
    secret: str
    lines: Mapping[int, tuple[int, int]]

    def test_at(self, line: int) -> int | None:
        """The test that stands on this line of the root."""
        return next((number for number, (first, end) in self.lines.items() if first <= line < end), None)


def crate(program: Program, active: Sequence[int], toolchain: Toolchain, seconds: float, memory: int) -> Crate:
    """`active`: the tests that are in it. seconds: for all of them, of which one may take a fourth where there are four
    or more. memory: MB for each."""
    lay, inside, secret = (f"{word}_{secrets.token_hex(12)}" for word in ("lay", "inside", "secret"))
    judge = toolchain.crate
    lines = [
        "#![allow(warnings)]",
        f"macro_rules! {lay} {{ () => {{",
        f"pub(crate) mod {inside} {{",
        "use super::*;",
        *ours(program.items, judge).split("\n"),
    ]
    places = dict[int, tuple[int, int]]()
    for number in active:
        lines.append(f"pub fn t{number}() {{")
        first = len(lines) + 1
        lines += ours(program.tests[number].code, judge).split("\n")
        places[number] = first, len(lines) + 1
        lines.append("}")
    times = round(seconds * 1000), round(seconds * 1000 / (4 if len(active) >= 4 else 1)), memory << 20
    lines += [
        f"pub const ALL: &[fn()] = &[{', '.join(f't{number}' for number in active)}];",
        "} } }",
        f'#[path = "{FILE}"] mod {MODULE};',
        f"fn main() {{ ::{judge}::run({MODULE}::{inside}::ALL, {', '.join(map(str, times))}) }}",
    ]
    return Crate("\n".join(lines) + "\n", lay, secret, places)


def _rooted(code: str) -> str:
    """The code with its paths from the root of the crate, which for its author it is, made those of its module."""
    pieces, at = list[str](), 0
    for found in _ROOTED.finditer(masked(code)):
        pieces.append(f"{code[at : found.end()]}{MODULE}::")
        at = found.end()
    return "".join([*pieces, code[at:]])


def job(made: Crate, code: str, toolchain: Toolchain, seconds: float) -> Job:
    """Compiles and runs it. What the compiler says comes on the standard error, one JSON object a line."""
    compiler = (
        *(toolchain.rustc, "--edition", "2021", "--crate-name", "judged", "--error-format", "json", "-A", "warnings"),
        *("-C", "prefer-dynamic", "-C", "debuginfo=0", "--extern", f"{toolchain.crate}={toolchain.library}"),
        *("-C", f"link-arg=-Wl,-rpath,{toolchain.shared}", "-o", "judged", "-"),
    )
    return Job(
        ("/bin/sh", "-c", _START, toolchain.path, *compiler),
        files={FILE: f"{_rooted(code)}\n{made.lay}!{{}}\n"},
        stdin=f"{made.secret}\n{made.root}",
        readable=toolchain.readable,
        seconds=seconds + COMPILING,
        memory=_COMPILER_MB,
        processes=128,
        output=200_000 + 8_000 * len(made.lines),
    )
