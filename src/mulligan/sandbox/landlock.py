"""Landlock rules: which paths a process may read, run and write, and what else its domain closes.

Handles ABI 1 to 7: what an older kernel cannot close is left out here and closed by the seccomp filter where it can.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from mulligan.sandbox import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_ABI = (1 << 13) - 1
_TCP_BIND_CONNECT = 3
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

# The first ABI that keeps signals and abstract sockets inside the domain.
SCOPED_SINCE = 6

# The first ABI that lets a process move files between folders, without which few tools work.
WRITES_SINCE = 2

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def _handled(abi: int) -> int:
    newer = (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL_DEV if abi >= 5 else 0)
    return _FIRST_ABI | newer


def _attributes(abi: int, files: int, tcp: int, scope: int) -> bytes:
    """struct landlock_ruleset_attr, as long as this ABI knows it."""
    packed = struct.pack("<QQQ", files, tcp, scope)
    return packed[: 8 if abi < 4 else 16 if abi < SCOPED_SINCE else 24]


def restrict(abi: int, *, readable: Iterable[str], writable: Iterable[str], network: bool) -> None:
    """Confine this process and its children for good. Paths that do not exist are left out.

    Needs no_new_privs (or CAP_SYS_ADMIN). `network` leaves TCP open.
    """
    scope = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS
    ruleset = kernel.landlock_ruleset(_attributes(abi, _handled(abi), 0 if network else _TCP_BIND_CONNECT, scope))
    write = _handled(abi) & ~(_MAKE_CHAR | _MAKE_BLOCK | _MAKE_SOCK | _IOCTL_DEV)
    _enter(ruleset, (readable, _READ), (writable, write))


def restrict_writes(abi: int, writable: Iterable[str]) -> None:
    """Only keep this process and its children from changing files and folders outside of these, for good.

    What Landlock has no right for stays open: modes, owners and times of files; before ABI 3 also truncate(2).
    """
    write = _handled(abi) & ~(_READ | _IOCTL_DEV)
    _enter(kernel.landlock_ruleset(_attributes(abi, write, 0, 0)), (writable, write & ~(_MAKE_CHAR | _MAKE_BLOCK)))


def _enter(ruleset: int, *rules: tuple[Iterable[str], int]) -> None:
    for paths, rights in rules:
        for path in paths:
            _allow(ruleset, path, rights)
    kernel.landlock_restrict(ruleset)
    os.close(ruleset)


def restrict_scope(abi: int) -> bool:
    """Only keep signals of this process and its children inside; False where the kernel cannot."""
    if abi < SCOPED_SINCE:
        return False
    ruleset = kernel.landlock_ruleset(_attributes(abi, 0, 0, _SCOPE_SIGNALS))
    kernel.landlock_restrict(ruleset)
    os.close(ruleset)
    return True


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _ON_FILES
        kernel.landlock_add(ruleset, struct.pack("<Qi", allowed, fd))
    finally:
        os.close(fd)
