"""The rules of a job for macOS's own sandbox, `sandbox-exec`, in its profile language.

They follow what the system documents (sandbox-exec(1), the profiles in /System/Library/Sandbox/Profiles) and were not
run by us: on each Mac a trial job decides whether they hold there. Paths are parameters, so no path can become a rule.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

PROGRAM = "/usr/bin/sandbox-exec"

_ALWAYS = """\
(version 1)
(deny default)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read* (literal "/") (literal "/dev/autofs_nowait") (subpath "/private/var/db/dyld"))
(allow file-read* (subpath "/private/var/db/timezone"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
"""
_NETWORK = """\
(allow network*)
(allow system-socket)
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))
(allow mach-lookup (global-name "com.apple.trustd.agent"))
"""


def command(spec: Spec) -> list[str]:
    """The job's arguments, run under its rules. Whatever the job starts is under them, too."""
    readable = _real([*spec["readable"], *spec["writable"]])
    writable = _real(path for path in spec["writable"] if not path.startswith("/dev/"))
    names = {path: f"P{number}" for number, path in enumerate(readable)}
    rules = [
        _rule("file-read* file-map-executable process-exec*", [names[path] for path in readable]),
        _rule("file-write*", [names[path] for path in writable]),
    ]
    profile = _ALWAYS + "".join(rules) + (_NETWORK if spec["network"] else "")
    parameters = [part for path, name in names.items() for part in ("-D", f"{name}={path}")]
    return [spec["seatbelt"], *parameters, "-p", profile, *spec["argv"]]


def _rule(operations: str, names: list[str]) -> str:
    """Allows the operations on each path and on all below it."""
    paths = " ".join(f'(subpath (param "{name}"))' for name in names)
    return f"(allow {operations} {paths})\n"


def _real(paths: Iterable[str]) -> list[str]:
    """The paths as the kernel sees them, once each: /tmp and /etc are links on a Mac."""
    return list(dict.fromkeys(map(os.path.realpath, paths)))
