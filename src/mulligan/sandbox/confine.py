"""What happens between fork and exec of a confined job, in the order that makes each step possible.

Runs in the job's own process, started by the supervisor; it knows nothing of asyncio or of records.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import signal
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import TypedDict

from mulligan.sandbox import kernel, landlock, seccomp

_FIRST_UID = 1_800_000_000
"""A job started by root runs as this uid plus its supervisor's process id: nobody's, and nobody else's meanwhile."""
_FIRST_UID_SMALL = 20_000
"""The same inside a container that maps only 65536 uids."""


class Spec(TypedDict):
    """A job as the supervisor gets it, in plain values. Paths are absolute and real; sizes in bytes."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    scratch: str
    files: dict[str, str]
    readable: list[str]
    writable: list[str]
    network: bool
    seconds: float
    memory: int
    file_size: int
    processes: int
    limits: bool
    landlock: int
    seccomp: bool
    unprivileged: bool
    namespaces: bool
    bwrap: str


def enter(spec: Spec, *, scoped: bool) -> None:
    """Confine this process for the job. `scoped`: the supervisor's Landlock domain already holds signals back.

    Raises `OSError` when a step that the level promises is refused.
    """
    uid = job_uid() if spec["unprivileged"] and os.geteuid() == 0 else None
    own = spec["namespaces"] or uid is not None
    if spec["namespaces"]:
        _private_files(spec, uid)
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
        landlock.restrict(
            spec["landlock"], readable=spec["readable"], writable=spec["writable"], network=spec["network"]
        )
    if spec["seccomp"] and not spec["bwrap"]:
        kernel.seccomp(_filter(spec, own=own, scoped=scoped))


def command(spec: Spec) -> list[str]:
    """The job's arguments, inside bubblewrap at the level that has it. To be called after `enter`."""
    if not spec["bwrap"]:
        return spec["argv"]
    read, write = os.pipe()
    os.write(write, _filter(spec, own=True, scoped=True))
    os.close(write)
    os.set_inheritable(read, True)
    around = [spec["bwrap"], "--unshare-all", "--die-with-parent", "--new-session", "--seccomp", str(read)]
    around += ["--share-net"] if spec["network"] else []
    around += ["--dev", "/dev"]
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
    with open("/proc/self/uid_map") as file:
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
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


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


def _private_files(spec: Spec, uid: int | None) -> None:
    """A mount namespace in which all is read-only but the writable folders, and the scratch folder a small tmpfs.

    Folders that the job's uid could not pass (such as /root) are covered by an empty one that holds what it may see.
    """
    inside, group = (os.geteuid(), os.getegid()) if uid is None else (uid, uid)
    kernel.unshare(kernel.CLONE_NEWNS | (0 if os.geteuid() == 0 else kernel.CLONE_NEWUSER))
    if uid is None:
        _map_myself(inside, group)
    kernel.private_mounts()
    if not spec["bwrap"]:  # which writes to /proc, and makes its own view read-only
        kernel.mount_readonly("/", True)
    handles = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in _existing(spec)}
    for cover in sorted({found for path in (*handles, spec["scratch"]) if (found := _closed_ancestor(path, inside))}):
        kernel.mount_tmpfs(cover, "size=64k,mode=0755")
        for path, handle in handles.items():
            if path.startswith(cover + "/"):
                _bind(handle, path)
    for path in spec["writable"]:
        if path in handles and path != spec["scratch"] and os.path.isdir(path):
            kernel.mount_bind(path, path)
            kernel.mount_readonly(path, False)
    os.makedirs(spec["scratch"], exist_ok=True)
    size = spec["file_size"] * 4
    kernel.mount_tmpfs(spec["scratch"], f"size={size},nr_inodes=16384,mode=0700,uid={inside},gid={group}")


def _map_myself(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _existing(spec: Spec) -> Iterable[str]:
    return [path for path in (*spec["readable"], *spec["writable"]) if os.path.exists(path)]


def _closed_ancestor(path: str, uid: int) -> str | None:
    """The outermost folder above `path` that `uid` may not pass."""
    parts = path.split("/")[1:-1]
    for depth in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:depth])
        info = os.stat(folder)
        needed = stat.S_IXUSR if info.st_uid == uid else stat.S_IXOTH
        if not info.st_mode & needed:
            return folder
    return None


def _bind(handle: int, path: str) -> None:
    """Show what `handle` refers to at `path`, which is covered by now."""
    source = f"/proc/self/fd/{handle}"
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
    kernel.mount_bind(source, path)


def default_signals(numbers: Iterable[int] = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT)) -> None:
    """Python ignores some signals, and what is ignored stays so in the program that is started."""
    for number in numbers:
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
