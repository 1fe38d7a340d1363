"""Makes a crate of code and tests, and the sandboxed job that compiles and runs it.

The compiler reads the root of the crate, with the tests, from a pipe. The judged code is the only file, so that its
`include_str!` can read nothing else, and its braces cannot end its module. A macro with a random name puts the tests
into that module.
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
    """The Rust compiler, and our compiled part of each judged program.

    Attributes:
        rustc: the compiler itself, not rustup's wrapper.
        sysroot: the folder of the compiler and its library.
        shared: the folder of the shared library.
        path: where the linker is looked for.
        folder: the folder of our part.
        crate: the name of our part, which code cannot guess.
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
    """Find and set up the toolchain, once per process. Raises `SandboxError` with what to install."""
    rustc = shutil.which("rustc") or shutil.which("rustc", path=os.path.expanduser("~/.cargo/bin"))
    if rustc is None:
        raise SandboxError(f"Judging Rust needs the compiler rustc, which was not found here. {_INSTALL}")
    linker = shutil.which("cc")
    if linker is None:
        raise SandboxError("Judging Rust needs a linker, but there is no cc here: install gcc (`apt-get install gcc`).")
    sysroot = os.path.realpath(_output_of([rustc, "--print", "sysroot"]))
    compiler = os.path.join(sysroot, "bin", "rustc")
    compiler = compiler if os.access(compiler, os.X_OK) else os.path.realpath(rustc)
    folder = tempfile.TemporaryDirectory(prefix="mulligan-rust-")
    _folders.append(folder)
    os.chmod(folder.name, 0o755)  # jobs may run as another user
    path = ":".join(dict.fromkeys([os.path.dirname(linker), "/usr/local/bin", "/usr/bin", "/bin"]))
    shared, version = _output_of([compiler, "--print", "target-libdir"]), _output_of([compiler, "--version"])
    tools = Toolchain(compiler, sysroot, shared, path, version, folder.name, f"judge_{secrets.token_hex(8)}")
    options = ("--edition", "2021", "--crate-type", "rlib", "--crate-name", tools.crate, "-O", "-A", "warnings")
    _output_of([compiler, *options, "-o", tools.library, str(_JUDGE)])
    os.chmod(tools.library, 0o644)
    return tools


_folders: list[tempfile.TemporaryDirectory[str]] = []
"""Removed when this process ends."""


def _output_of(command: list[str]) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"The Rust compiler does not run: {error}. {_INSTALL}") from error
    if ran.returncode:
        raise SandboxError(f"The Rust compiler {command[0]} failed: {ran.stderr.strip()[:600]}\n{_INSTALL}")
    return ran.stdout.strip()


COMPILER_SECONDS = 30.0
"""Seconds that the compiler may take, in addition to those of the tests."""
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
NO_PROGRAM = 90
"""The exit status if there is no program: the job compiles, and then becomes the program. Neither gets an environment
from which code could learn where it runs."""


@dataclass(frozen=True)
class Crate:
    """The source of a crate.

    Attributes:
        root: the source of its root.
        lay: the macro that puts the tests into the judged module.
        secret: the beginning of each line of a report. It is in no file.
        lines: by the number of the test, its first line in the root, from 1, and the line after its last.
    """

    root: str
    lay: str
    secret: str
    lines: Mapping[int, tuple[int, int]]

    def test_at(self, line: int) -> int | None:
        """The number of the test on this line of the root; None for none."""
        return next((number for number, (first, end) in self.lines.items() if first <= line < end), None)


def crate(program: Program, active: Sequence[int], toolchain: Toolchain, seconds: float, memory: int) -> Crate:
    """Make the crate of some tests.

    Args:
        active: the numbers of the tests.
        seconds: for all tests. With four or more, each may take a fourth of it.
        memory: MB for each test.
    """
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
    limits = round(seconds * 1000), round(seconds * 1000 / (4 if len(active) >= 4 else 1)), memory << 20
    lines += [
        f"pub const ALL: &[fn()] = &[{', '.join(f't{number}' for number in active)}];",
        "} } }",
        f'#[path = "{FILE}"] mod {MODULE};',
        f"fn main() {{ ::{judge}::run({MODULE}::{inside}::ALL, {', '.join(map(str, limits))}) }}",
    ]
    return Crate("\n".join(lines) + "\n", lay, secret, places)


def _rooted(code: str) -> str:
    """The code with paths such as `crate::f` changed, as it is a module here, and not the root of the crate."""
    pieces, end = list[str](), 0
    for match in _ROOTED.finditer(masked(code)):
        pieces.append(f"{code[end : match.end()]}{MODULE}::")
        end = match.end()
    return "".join([*pieces, code[end:]])


def job(source: Crate, code: str, toolchain: Toolchain, seconds: float) -> Job:
    """The job that compiles and runs a crate. The compiler writes JSON objects to standard error, one a line."""
    compiler = (
        *(toolchain.rustc, "--edition", "2021", "--crate-name", "judged", "--error-format", "json", "-A", "warnings"),
        *("-C", "prefer-dynamic", "-C", "debuginfo=0", "--extern", f"{toolchain.crate}={toolchain.library}"),
        *("-C", f"link-arg=-Wl,-rpath,{toolchain.shared}", "-o", "judged", "-"),
    )
    return Job(
        ("/bin/sh", "-c", _START, toolchain.path, *compiler),
        files={FILE: f"{_rooted(code)}\n{source.lay}!{{}}\n"},
        stdin=f"{source.secret}\n{source.root}",
        readable=toolchain.readable,
        seconds=seconds + COMPILER_SECONDS,
        memory=_COMPILER_MB,
        processes=128,
        output=200_000 + 8_000 * len(source.lines),
    )
