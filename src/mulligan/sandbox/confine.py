"""What happens between fork and exec of a confined job, in the order that makes each step possible.

Runs in the job's own process, which the supervisor started.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import sys
from collections.abc import Mapping

from mulligan.sandbox import kernel, landlock, mounts, seatbelt, seccomp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

# A job started by root runs as this uid plus its supervisor's process id: nobody's, and nobody else's meanwhile.
_FIRST_UID = 1_800_000_000
# The same inside a container that maps only 65536 uids.
_FIRST_UID_SMALL = 20_000


def enter(spec: Spec, *, scoped: bool) -> None:
    """Confine this process for the job. `scoped`: the supervisor's Landlock domain already holds signals back.

    Raises `OSError` when a step that the level promises is refused.
    """
    uid = job_uid() if spec["unprivileged"] and os.geteuid() == 0 else None
    own = spec["namespaces"] or uid is not None
    if spec["namespaces"]:
        mounts.private_files(spec, uid)
    elif uid is not None:
        os.chown(spec["scratch"], uid, uid)
    if uid is not None:
        _become(uid)
    elif os.geteuid() == 0 and spec["landlock"]:
        kernel.drop_bounding_set()
    write_files(spec)
    _limit(spec, 0 if own else _tasks_of(os.getuid()))
    if sys.platform == "linux":
        kernel.no_new_privileges()
    if spec["landlock"]:
        writable = [*spec["writable"], *([mounts.SHARED_MEMORY] if spec["namespaces"] else [])]
        landlock.restrict(spec["landlock"], readable=spec["readable"], writable=writable, network=spec["network"])
    if spec["seccomp"] and not spec["bwrap"]:
        kernel.seccomp(_filter(spec, own=own, scoped=scoped))


def enter_unconfined(spec: Spec) -> None:
    """The same for a job that runs as by hand: at most its writes are held. Raises `OSError` likewise."""
    write_files(spec)
    if spec["landlock"]:
        kernel.no_new_privileges()
        landlock.restrict_writes(spec["landlock"], spec["writable"])


def command(spec: Spec) -> list[str]:
    """The job's arguments, inside bubblewrap or under sandbox-exec at the level that has it. Called after `enter`."""
    if spec["seatbelt"]:
        return seatbelt.command(spec)
    if not spec["bwrap"]:
        return spec["argv"]
    read, write = os.pipe()
    os.write(write, _filter(spec, own=True, scoped=True))
    os.close(write)
    os.set_inheritable(read, True)
    around = [spec["bwrap"], "--unshare-all", "--die-with-parent", "--new-session", "--seccomp", str(read)]
    around += ["--share-net"] if spec["network"] else []
    around += ["--dev", "/dev", "--tmpfs", mounts.SHARED_MEMORY]
    for path in spec["readable"]:
        if path.startswith("/dev/") or not os.path.lexists(path):
            continue
        around += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for path in spec["writable"]:
        around += [] if path.startswith("/dev/") else ["--bind", path, path]
    return [*around, "--remount-ro", "/", "--chdir", spec["cwd"], "--", *spec["argv"]]


def job_uid() -> int:
    """The uid for the job that the calling process becomes; its parent is the supervisor."""
    supervisor = os.getppid()
    highest = 1 << 32
    with contextlib.suppress(FileNotFoundError), open("/proc/self/uid_map") as file:
        highest = max(int(first) + int(count) for first, _, count in (line.split() for line in file))
    if highest > _FIRST_UID + (1 << 22):
        return _FIRST_UID + supervisor
    return _FIRST_UID_SMALL + supervisor % 40_000


def write_files(spec: Spec) -> None:
    for name, text in spec["files"].items():
        path = os.path.join(spec["scratch"], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def _filter(spec: Spec, *, own: bool, scoped: bool) -> bytes:
    return seccomp.program(
        network=spec["network"],
        metadata=own,
        signals_to=None if own or scoped else os.getpid(),
        truncate=own or spec["landlock"] >= 3,
    )


def _become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _limit(spec: Spec, already: int) -> None:
    """`already`: processes that count against the same uid from before."""
    seconds = math.ceil(spec["seconds"]) + 1
    wanted = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: spec["memory"],
        resource.RLIMIT_FSIZE: spec["file_size"],
        resource.RLIMIT_NPROC: already + spec["processes"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
    }
    for name, value in wanted.items():
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError):  # macOS refuses some values of RLIMIT_AS
            resource.setrlimit(name, (value, value))


def _tasks_of(uid: int) -> int:
    """Threads that run as `uid`: what the kernel counts against RLIMIT_NPROC."""
    tasks = 0
    if not os.path.isdir("/proc/self"):
        return 512
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == uid:
                    tasks += os.stat(f"{entry.path}/task").st_nlink - 2
    return tasks


def default_signals() -> None:
    """Python ignores some signals, and what is ignored stays so in the program that is started."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def close_all_but_standard(streams: Mapping[int, int], keep: int) -> int:
    """`streams` become 0, 1 and 2; every other descriptor is closed but `keep`, whose new number is returned."""
    high = {to: os.dup(source) for to, source in streams.items()}
    keep = os.dup(keep)
    for to, source in high.items():
        os.dup2(source, to)
    os.dup2(keep, 3, inheritable=False)
    os.closerange(4, 4096)
    return 3
