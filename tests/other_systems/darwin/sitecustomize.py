"""Makes a Python on Linux look like one on a Mac: its name, no /proc, none of the calls that only Linux has.

Python imports this at start when the folder is on PYTHONPATH. The processes that Mulligan starts without it (`-I -S`) are
given it in front of their code.
"""

import os
import resource
import select
import signal
import socket
import subprocess
import sys
import sysconfig
from typing import Any

LINUX_ONLY = {
    os: (
        *("sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "splice", "copy_file_range"),
        *(
            "posix_fallocate",
            "posix_fadvise",
            "getrandom",
            "eventfd",
            "setresuid",
            "getresuid",
            "setresgid",
            "getresgid",
        ),
        *("unshare", "setns", "O_PATH", "O_TMPFILE", "sched_setscheduler", "getxattr", "setxattr", "listxattr"),
    ),
    select: ("epoll",),
    signal: ("pidfd_send_signal", "sigtimedwait"),
    socket: ("AF_NETLINK", "AF_PACKET", "AF_VSOCK", "SO_PEERCRED"),
    resource: ("prlimit",),
}
_stat, _lstat, _start = os.stat, os.lstat, subprocess.Popen.__init__


def of_linux(path: Any) -> bool:
    try:
        name = os.fsdecode(path)
    except TypeError:  # a file descriptor
        return False
    return name in ("/proc", "/sys") or name.startswith(("/proc/", "/sys/"))


def refuse(event: str, args: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir", "os.readlink") and args and of_linux(args[0]):
        raise FileNotFoundError(2, "No such file or directory (a Mac has no such folder)", os.fsdecode(args[0]))


def stat(path: Any, **how: Any) -> os.stat_result:
    refuse("open", (path,))
    return _stat(path, **how)


def lstat(path: Any, **how: Any) -> os.stat_result:
    refuse("open", (path,))
    return _lstat(path, **how)


def start(self: Any, args: Any, *more: Any, **how: Any) -> None:
    if args[1:4] == ["-I", "-S", "-c"]:
        args = [*args[:4], f"exec(compile(open({__file__!r}).read(), {__file__!r}, 'exec'))\n{args[4]}", *args[5:]]
    _start(self, args, *more, **how)


def uname() -> os.uname_result:
    return os.uname_result(("Darwin", "mac", "24.0.0", "Darwin Kernel Version 24.0.0", "arm64"))


sysconfig.get_config_vars()  # read for the real system, before it has another name
sys.platform = "darwin"
for module, names in LINUX_ONLY.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
os.uname = uname
os.stat, os.lstat = stat, lstat
subprocess.Popen.__init__ = start
sys.addaudithook(refuse)
