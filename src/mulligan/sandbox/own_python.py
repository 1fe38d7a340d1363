"""Runs code for a job in a fork of the supervisor's own interpreter, if that is the one that the job asks for.

A new interpreter costs 10 ms of CPU time, a fork a fifth of that. The job is confined like any other, and its
interpreter is like a new one: everything that Mulligan imported, opened and set is gone before the code runs
(design/172).
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import types

from mulligan.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from mulligan.sandbox.spec import Spec

MAX_DESCRIPTORS = 4096
"""As many as the server closed when it started."""
_OPTIONS = ["-I", "-S", "-c"]
_IMPORTED = frozenset({"mulligan", "ctypes", "_ctypes", "socket", "_socket", "select", "selectors", "resource"})
"""Modules, and packages of modules, that only the supervisor needs."""
_VARIABLES = frozenset({"PATH", "HOME", "TMPDIR", "LANG", "PYTHONDONTWRITEBYTECODE"})
"""The variables that `policy` sets for every job. Others could change how Python starts."""


def suits(spec: Spec) -> bool:
    """Whether this interpreter can run the job: it asks for the same Python with the same options, and is confined in
    this process."""
    confined = spec["seccomp"] and not spec["bwrap"]
    return confined and spec["argv"][:-1] == [sys.executable, *_OPTIONS] and spec["env"].keys() <= _VARIABLES


def renew(spec: Spec) -> None:
    """Makes this interpreter like one that has just started for the job, whose code is then in `sys.orig_argv[-1]`.

    Closes all descriptors but 0, 1 and 2 in the end, so that an error can still be reported.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(spec["env"])
    sys.stdin = sys.__stdin__ = _stream(0, "<stdin>", sys.stdin.errors)
    sys.stdout = sys.__stdout__ = _stream(1, "<stdout>", sys.stdout.errors)
    sys.stderr = sys.__stderr__ = _stream(2, "<stderr>", "backslashreplace")
    sys.argv[:], sys.orig_argv[:] = ["-c"], spec["argv"]
    for name in [name for name in sys.modules if name.partition(".")[0] in _IMPORTED]:
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    vars(sys.modules["__main__"])["__builtins__"] = sys.modules["builtins"]
    if linecache := sys.modules.get("linecache"):  # from Python 3.13 on, tracebacks show the lines of `-c CODE`
        getattr(linecache, "_interactive_cache", {}).clear()
        lines = [f"{line}\n" for line in spec["argv"][-1].splitlines()]
        linecache.cache["<string>"] = (len(spec["argv"][-1]), None, lines, "<string>")
    gc.enable()
    os.closerange(3, MAX_DESCRIPTORS)


def _stream(number: int, name: str, errors: str | None) -> io.TextIOWrapper:
    mode, buffering = ("w" if number else "r"), (1 if number == 2 else -1)
    stream: Any = open(number, mode, buffering, "utf-8", errors, "\n", closefd=False)  # noqa: SIM115
    stream.buffer.raw.name = name
    return stream
