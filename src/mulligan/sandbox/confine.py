"""Confines the process of a job, between fork and exec.

Each step takes rights away, so what a later step needs comes before it. Runs in the job's own process, which the
supervisor started.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import sys
from collections.abc import Mapping

from mulligan.sandbox import kernel, landlock, mounts, own_python, seatbelt, seccomp

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

# A job that root starts runs as this uid plus the process id of its supervisor, so no other job has the uid.
_FIRST_UID = 1_800_000_000
_MAX_PIDS = 1 << 22  # Linux's highest pid_max
# The same in a container that maps only 65536 uids. There, two jobs can get the same one.
_FIRST_UID_SMALL, _UIDS_SMALL = 20_000, 40_000
_TASKS_GUESSED = 512  # without /proc, as on macOS: more threads than a user runs


def enter(spec: Spec, *, scoped: bool) -> None:
    """Confine this process for the job.

    Args:
        scoped: the supervisor's Landlock domain already keeps signals inside.

    Raises:
        OSError: the system refuses a step that the level promises.
    """
    uid = job_uid() if spec["unprivileged"] and os.geteuid() == 0 else None
    alone = spec["namespaces"] or uid is not None  # in a user namespace, or with a uid, that it shares with nobody
    # As the user who started it: a job's uid may neither mount nor give its folder away.
    if spec["namespaces"]:
        mounts.private_files(spec, uid)
    elif uid is not None:
        os.chown(spec["scratch"], uid, uid)
    if uid is not None:
        _become(uid)
    elif os.geteuid() == 0 and spec["landlock"]:
        kernel.drop_bounding_set()
    write_files(spec)  # before the limits, which hold the size of files, and before Landlock
    _limit(spec, 0 if alone else _tasks_of(os.getuid()))
    if sys.platform == "linux":
        kernel.no_new_privileges()
    if spec["landlock"]:
        writable = [*spec["writable"], *([mounts.SHARED_MEMORY] if spec["namespaces"] else [])]
        landlock.restrict(spec["landlock"], readable=spec["readable"], writable=writable, network=spec["network"])
    if own_python.suits(spec):
        kernel.drop_capabilities()  # which the start of a program would do
    if spec["seccomp"] and not spec["bwrap"]:  # last, as it forbids most of the above; bubblewrap sets it itself
        kernel.seccomp(_filter(spec, alone=alone, scoped=scoped))


def enter_unconfined(spec: Spec) -> None:
    """Confine at most the writes of a job that runs as by hand. Raises `OSError` as `enter` does."""
    write_files(spec)
    if spec["landlock"]:
        kernel.no_new_privileges()
        landlock.restrict_writes(spec["landlock"], spec["writable"])


def command(spec: Spec) -> list[str]:
    """The command that runs the job, by bubblewrap or sandbox-exec if the level has them. Called after `enter`."""
    if spec["seatbelt"]:
        return seatbelt.command(spec)
    if not spec["bwrap"]:
        return spec["argv"]
    read, write = os.pipe()
    os.write(write, _filter(spec, alone=True, scoped=True))
    os.close(write)
    os.set_inheritable(read, True)
    wrapper = [spec["bwrap"], "--unshare-all", "--die-with-parent", "--new-session", "--seccomp", str(read)]
    wrapper += ["--share-net"] if spec["network"] else []
    wrapper += ["--dev", "/dev", "--tmpfs", mounts.SHARED_MEMORY]
    for path in spec["readable"]:
        if path.startswith("/dev/") or not os.path.lexists(path):
            continue
        wrapper += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    for path in spec["writable"]:
        wrapper += [] if path.startswith("/dev/") else ["--bind", path, path]
    return [*wrapper, "--remount-ro", "/", "--chdir", spec["cwd"], "--", *spec["argv"]]


def job_uid() -> int:
    """The uid for the job that the calling process becomes. Its parent has to be the supervisor."""
    supervisor = os.getppid()
    highest = 1 << 32
    with contextlib.suppress(FileNotFoundError), open("/proc/self/uid_map") as file:
        highest = max(int(first) + int(count) for first, _, count in (line.split() for line in file))
    if highest > _FIRST_UID + _MAX_PIDS:
        return _FIRST_UID + supervisor
    return _FIRST_UID_SMALL + supervisor % _UIDS_SMALL


def write_files(spec: Spec) -> None:
    for name, text in spec["files"].items():
        path = os.path.join(spec["scratch"], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)


def _filter(spec: Spec, *, alone: bool, scoped: bool) -> bytes:
    return seccomp.program(
        network=spec["network"],
        metadata=alone,
        signals_to=None if alone or scoped else os.getpid(),
        truncate=alone or spec["landlock"] >= 3,  # since ABI 3 Landlock refuses it
    )


def _become(uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def _limit(spec: Spec, already: int) -> None:
    """Set the limits of the job. already: processes that the same uid has besides the job's."""
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
        try:
            resource.setrlimit(name, (value, value))
        except ValueError:
            if sys.platform != "darwin" or name != resource.RLIMIT_AS:  # which macOS refuses for some values
                raise


def _tasks_of(uid: int) -> int:
    """The threads that run as `uid`, which the kernel counts against RLIMIT_NPROC."""
    tasks = 0
    if not os.path.isdir("/proc/self"):
        return _TASKS_GUESSED
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if entry.stat().st_uid == uid:
                    tasks += os.stat(f"{entry.path}/task").st_nlink - 2
    return tasks


def default_signals() -> None:
    """Handle all signals as usual: a program that is started would inherit those that Python ignores."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def close_all_but_standard(streams: Mapping[int, int], keep: int) -> int:
    """Make `streams` 0, 1 and 2, and close the other descriptors except `keep`. Returns its new number."""
    copies = {number: os.dup(source) for number, source in streams.items()}  # first, as they may overlap
    keep = os.dup(keep)
    for number, source in copies.items():
        os.dup2(source, number)
    os.dup2(keep, 3, inheritable=False)
    os.closerange(4, own_python.MAX_DESCRIPTORS)
    return 3
