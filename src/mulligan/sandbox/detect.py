"""Finds out which levels work on this machine: a small job at each level tries what the level forbids."""

from __future__ import annotations

import os
import sys
from functools import cache

from mulligan.core.errors import SandboxError
from mulligan.core.protocols import Job
from mulligan.sandbox import client, kernel, policy, seatbelt, seccomp
from mulligan.sandbox.levels import LEVELS, LIMITS, STRICT, Level, level_named
from mulligan.sandbox.process import scratch_name

_PROBE = """
import os, sys
files, seccomp, unprivileged, seatbelt = (flag == "1" for flag in sys.argv[1:])
home = os.environ["HOME"]
if unprivileged and os.getuid() == 0: sys.exit("runs as root all the same")
if files:
    try: open("/etc/passwd").close()
    except OSError: pass
    else: sys.exit("can read a file that it should not")
    try: open(home + "-beside", "w").close()
    except OSError: pass
    else: os.unlink(home + "-beside"); sys.exit("can write a file that it should not")
if seatbelt:
    import _socket
    try: _socket.socket().connect(("127.0.0.1", 9))
    except PermissionError: pass
    except OSError: sys.exit("can reach the network")
    else: sys.exit("can reach the network")
if seccomp:
    import _socket
    try: _socket.socket()
    except OSError: pass
    else: sys.exit("can open a socket")
open(os.path.join(home, "own"), "w").close()
"""
_SECONDS = 20.0


@cache
def problem(level: Level) -> str:
    """Why this level does not work here, in a sentence; "" if it works."""
    if not level.limits:
        return ""
    if reason := _what_is_missing(level):
        return reason
    flags = (not level.open, level.seccomp, level.unprivileged, level.seatbelt)
    argv = (sys.executable, "-I", "-S", "-c", _PROBE, *("1" if flag else "0" for flag in flags))
    return _try_job(level, Job(argv, seconds=_SECONDS))


def choose(wanted: str) -> Level:
    """The level for "auto", "strict" or a name.

    Raises:
        UnknownName: there is no such level.
        SandboxError: it does not work here. The message says how to get a stronger level.
    """
    lowest = STRICT if wanted == "strict" else LIMITS
    if not lowest.fits(sys.platform):
        raise SandboxError(
            f"sandbox='strict' needs Linux. The strongest level on {sys.platform} is {usable()[-1].name!r}, which is "
            "untested: sandbox='auto' uses it if a test job shows that it works."
        )
    if wanted not in ("auto", "strict"):
        level = level_named(wanted)
        if why := problem(level):
            raise SandboxError(f"The sandbox level {wanted!r} does not work here: {why}")
        return level
    for level in reversed(usable(lowest)):
        if not problem(level):
            return level
    raise SandboxError(
        f"No sandbox level at or above {lowest.name!r} works here: {problem(lowest)} `mulligan doctor` explains "
        "how to get a stronger level."
    )


def usable(lowest: Level = LEVELS[0]) -> list[Level]:
    """The levels that this system can have, weakest first, from `lowest` up."""
    return [level for level in LEVELS[LEVELS.index(lowest) :] if level.fits(sys.platform)]


def fallback(level: Level) -> str:
    """A warning if code runs at a level that leaves files open because no stronger level works here; else ""."""
    if not level.open:
        return ""
    stronger = next((candidate for candidate in usable() if not candidate.open), None)
    why = (
        f"{stronger.name} does not work here ({problem(stronger).rstrip('.')})"
        if stronger
        else "no level here protects files"
    )
    return f"sandbox: {why}, so code from a model runs at the level {level.name}: {level.holds}. See: mulligan doctor"


def _what_is_missing(level: Level) -> str:
    if level.seatbelt and sys.platform != "darwin":
        return "seatbelt is part of macOS."
    if level.seatbelt and not os.access(seatbelt.PROGRAM, os.X_OK):
        return f"{seatbelt.PROGRAM} is missing."
    if level.landlock and not kernel.landlock_abi():
        return (
            "the kernel has no Landlock, or Landlock is switched off (it needs Linux 5.13 or newer and lsm=landlock)."
        )
    if level.seccomp and not (sys.platform == "linux" and seccomp.supported()):
        return f"no seccomp filter is known for this machine ({sys.platform}, {os.uname().machine})."
    if level.namespaces and sys.platform != "linux":
        return "namespaces exist only on Linux."
    if level.bwrap and not policy.bwrap():
        return "bubblewrap is not installed (apt install bubblewrap, dnf install bubblewrap)."
    return ""


def _try_job(level: Level, job: Job) -> str:
    """Run a job without asyncio. Returns "" if it ended well, else what it or its supervisor said."""
    read, write = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    with os.fdopen(read, "rb") as errors:
        try:
            control, request = client.submit(policy.specify(job, level, scratch_name()), null, null, write)
        except SandboxError as error:
            return str(error)
        finally:
            os.close(write)
            os.close(null)
        control.settimeout(_SECONDS + 5)
        try:
            with control:
                control.sendall(request)
                verdict = control.recv(65536).decode("utf-8", "replace")
                message = errors.read(4000).decode("utf-8", "replace").strip()
        except OSError:
            return "the test job did not finish."
    if verdict == "exited 0":
        return ""
    return f"a test job ended with: {verdict} {message}".strip() + "."
