"""What a job may see and use, from the job and the level: paths, environment, sizes."""

from __future__ import annotations

import glob
import os
import shutil
import sys
from functools import cache
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Job
from mulligan.sandbox import kernel, landlock, seatbelt
from mulligan.sandbox.levels import NONE, WRITES, Level
from mulligan.sandbox.spec import Spec

_MB = 1 << 20
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/opt/homebrew", "/System", "/Library")
_FILES = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone"),
    *("/etc/alternatives", "/etc/mime.types", "/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/sys/devices/system/cpu"),
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
_NETWORK_FILES = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols"),
    *("/etc/gai.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/run/systemd/resolve"),
)
# What programs that are run by hand write to, as patterns.
_DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"),
    *("/dev/shm", "/dev/dri", "/dev/kfd", "/dev/kvm", "/dev/nvidia*"),
)


def unconfined(job: Job, abi: int) -> Level:
    """The level of a job that runs as by hand: its writes are held if it names folders and Landlock `abi` can.

    Folders that include "/" leave nothing to hold.
    """
    held = bool(job.writable) and "/" not in map(os.path.realpath, job.writable)
    return WRITES if held and abi >= landlock.WRITES_SINCE else NONE


def specify(job: Job, level: Level, scratch: str) -> Spec:
    """The job in the supervisor's terms. Raises `InvalidInput` for a job that no sandbox could run."""
    _check(job)
    cwd = os.path.realpath(job.cwd) if job.cwd is not None else scratch
    writable = [os.path.realpath(path) for path in job.writable]
    given = [*(os.path.realpath(path) for path in job.readable), *([] if job.cwd is None else [cwd])]
    system = [*_interpreter(), *_SYSTEM, *_FILES, *(_NETWORK_FILES if job.network else ())]
    return {
        "argv": [part.replace("{scratch}", scratch) for part in job.argv],
        "env": _environment(job, level, scratch),
        "cwd": cwd,
        "scratch": scratch,
        "files": dict(job.files),
        "readable": [*system, *given],
        "writable": [scratch, *(["/dev/null"] if job.confined else _devices()), *writable],
        "given": [*given, *writable],
        "network": job.network,
        "seconds": float(job.seconds),
        "memory": job.memory * _MB,
        "file_size": job.file_size * _MB,
        "processes": job.processes,
        "limits": level.limits,
        "landlock": kernel.landlock_abi() if level.landlock else 0,
        "seccomp": level.seccomp,
        "unprivileged": level.unprivileged,
        "namespaces": level.namespaces,
        "bwrap": bwrap() or "" if level.bwrap else "",
        "seatbelt": seatbelt.PROGRAM if level.seatbelt else "",
    }


def bwrap() -> str | None:
    """Where bubblewrap is installed, in the system's own folders only."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")


def _check(job: Job) -> None:
    if not job.argv:
        raise InvalidInput("A job needs at least a program to run: Job.argv is empty.")
    for text in (*job.argv, *job.env, *job.env.values(), *job.files, job.cwd or ""):
        if "\0" in text:
            raise InvalidInput(f"A job's arguments, environment and paths cannot contain a zero byte: {text[:80]!r}.")
    for name in job.files:
        if os.path.isabs(name) or ".." in Path(name).parts or not Path(name).parts:
            raise InvalidInput(f"Job.files accepts paths inside the scratch folder; {name!r} is outside it.")
    for folder in (*job.readable, *job.writable, *([] if job.cwd is None else [job.cwd])):
        if not os.path.isdir(folder) and not os.path.isfile(folder):
            raise InvalidInput(f"The job names a folder that does not exist: {folder}")


def _devices() -> list[str]:
    return [path for pattern in _DEVICES for path in glob.glob(pattern)]


def _environment(job: Job, level: Level, scratch: str) -> dict[str, str]:
    given = {name: value.replace("{scratch}", scratch) for name, value in job.env.items()}
    if not job.confined:
        # As it may not write to /tmp; the second is where zsh puts here-documents.
        own = {"TMPDIR": scratch, "TMPPREFIX": f"{scratch}/zsh"} if level is WRITES else {}
        return {**os.environ, **own, **given}
    path = ":".join(dict.fromkeys([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]))
    return {
        "PATH": path,
        "HOME": scratch,
        "TMPDIR": scratch,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **given,
    }


@cache
def _interpreter() -> tuple[str, ...]:
    """What the Python that runs Mulligan consists of, and nothing else of the folders that it is in."""
    found = [sys.executable, os.path.realpath(sys.executable)]
    home = os.path.realpath(os.path.expanduser("~"))
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)):
        real = os.path.realpath(prefix)
        if os.path.commonpath((home, real)) != real:
            found += [prefix, real]
        else:
            found += [os.path.join(prefix, part) for part in ("bin", "lib", "lib64", "pyvenv.cfg")]
    return tuple(dict.fromkeys(path for path in found if os.path.exists(path)))
