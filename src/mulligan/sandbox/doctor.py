"""Reports for `mulligan doctor` which sandbox levels work here, and what would raise the level."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from mulligan.core.errors import SandboxError
from mulligan.sandbox import kernel, policy, seatbelt, seccomp
from mulligan.sandbox.detect import choose, problem, usable
from mulligan.sandbox.landlock import SCOPED_SINCE, WRITES_SINCE
from mulligan.sandbox.levels import LEVELS, STRICT, Level


class DoctorRow(NamedTuple):
    """One finding. `remedy`: what would help; empty if nothing is wrong."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def report() -> list[DoctorRow]:
    """The level in force first, then each that is stronger, then what they are made of. Runs a few small jobs."""
    try:
        level = choose("auto")
    except SandboxError as error:
        return [DoctorRow("sandbox", False, str(error), "run Mulligan on Linux 5.13 or newer")]
    rows = [_in_force(level)]
    rows += [DoctorRow(f"level {above.name}", False, problem(above), _remedy(above)) for above in usable(level)[1:]]
    if sys.platform == "linux":
        rows += [_landlock(), _seccomp(), _user()]
    else:
        rows.append(DoctorRow("platform", True, f"{sys.platform}: untested; Linux confines more, and is tested"))
    return rows


def _in_force(level: Level) -> DoctorRow:
    enough = level.seatbelt or LEVELS.index(level) >= LEVELS.index(STRICT)
    lacking = f"; --sandbox strict refuses to run below {STRICT.name}" if STRICT.fits(sys.platform) else ""
    remedy = "" if enough else f"see the lines below{lacking}"
    return DoctorRow("sandbox", enough, f"{level.name}: {level.holds}", remedy)


def _remedy(level: Level) -> str:
    """What to try when the level does not work, by what it is made of."""
    if level.seatbelt:
        return "start Mulligan outside any other sandbox-exec" if os.path.exists(seatbelt.PROGRAM) else ""
    if level.bwrap and not policy.bwrap():
        return "install bubblewrap"
    if level.namespaces:
        return (
            "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, "
            "user.max_user_namespaces > 0 elsewhere); as root in a container, add the capability SYS_ADMIN"
        )
    if os.geteuid() == 0:
        return (
            "start Mulligan as a user other than root, or with a Python that other users can run (currently "
            f"{sys.executable})"
        )
    return "use a kernel with Landlock (5.13 or newer, in the lsm= list) and seccomp"


def _landlock() -> DoctorRow:
    abi = kernel.landlock_abi()
    if not abi:
        return DoctorRow("landlock", False, "not available", "use Linux 5.13 or newer with landlock in the lsm= list")
    if abi < SCOPED_SINCE:
        detail = f"ABI {abi}: the seccomp filter limits signals and abstract sockets instead"
        detail += "; writes of command-line agents are not limited" if abi < WRITES_SINCE else ""
        return DoctorRow("landlock", True, detail, "use Linux 6.12 or newer, which scopes them itself")
    return DoctorRow("landlock", True, f"ABI {abi}")


def _seccomp() -> DoctorRow:
    machine = os.uname().machine
    if seccomp.supported():
        return DoctorRow("seccomp", True, f"a filter for {machine}")
    return DoctorRow("seccomp", False, f"no filter for {machine}", "use x86_64 or aarch64")


def _user() -> DoctorRow:
    if os.geteuid():
        return DoctorRow("user", True, f"uid {os.geteuid()}")
    return DoctorRow("user", True, "root: each job gets its own unused uid", "")
