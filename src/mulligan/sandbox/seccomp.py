"""A seccomp filter, written by hand: which system calls a confined job may not make. syscalls.txt has their numbers.

A deny list: what is not named passes, except calls newer than this file, which answer "no such call" so that the
C library falls back. Refused calls fail with an error; only a call of a foreign architecture kills.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import TypeAlias

# Audit number of each architecture, and its column in the tables below.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

Program: TypeAlias = list[tuple[int, int, int, int]]
Numbers: TypeAlias = tuple[int | None, int | None]

_NEWER = 451


def _read(file: str) -> dict[str, list[Numbers]]:
    """The tables of a file of system calls, by the name of their section."""
    tables: dict[str, list[Numbers]] = {}
    section = ""
    with open(file, encoding="ascii") as text:
        lines = text.read().splitlines()
    for line in lines:
        if line.startswith("["):
            section = line.strip("[]")
            tables[section] = []
        elif line and not line.startswith("#"):
            _, x86, arm = line.split()
            tables[section].append((None if x86 == "-" else int(x86), None if arm == "-" else int(arm)))
    return tables


# Read when the module is imported: a job that is being confined could not open the file any more.
_TABLES = _read(os.path.join(os.path.dirname(__file__), "syscalls.txt"))
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3 = (41, 198), (53, 199), (56, 220), (435, 435)
_KILL, _TGKILL, _FCNTL, _IOCTL, _PRLIMIT = (62, 129), (234, 131), (72, 25), (16, 29), (302, 261)
_OPEN, _OPENAT, _OPENAT2 = (2, None), (257, 56), (437, 437)
# Where chmod, fchmod, fchmodat, creat, mknod and mknodat take a mode.
_MODES = (((90, None), 1), ((91, 52), 1), ((268, 53), 2), ((85, None), 1), ((133, None), 1), ((259, 33), 2))

_NEW_NAMESPACES = 0x7E020000
_FCNTL_SIGNALS = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY
_IOCTL_REFUSED = (0x5412, 0x541C, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
_O_TRUNC, _O_ACCMODE = 0o1000, 3
_O_MAKES = 0o20000100  # O_CREAT and O_TMPFILE
_SET_ID = 0o6000

_LOAD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _FAIL | errno.EPERM


def supported() -> bool:
    """Whether the numbers of this machine's architecture are known here."""
    return os.uname().machine in _ARCHITECTURES


def program(*, network: bool, metadata: bool, signals_to: int | None, truncate: bool) -> bytes:
    """The filter as struct sock_filter bytes.

    Args:
        network: whether sockets of IPv4 and IPv6 are allowed.
        metadata: whether chmod, chown, utime and xattr are allowed.
        signals_to: the only process that may be signalled (for kernels whose Landlock does not scope signals). None:
            any.
        truncate: False refuses the calls that shorten a file by its name (for Landlock before ABI 3).
    """
    audit, column = _ARCHITECTURES[os.uname().machine]
    out: Program = [(_LOAD, 0, 0, 4), (_JEQ, 1, 0, audit), (_RET, 0, 0, _KILL_PROCESS), (_LOAD, 0, 0, 0)]
    out += [(_JGE, 0, 1, _NEWER), (_RET, 0, 0, _FAIL | errno.ENOSYS)]
    sections = {"refused": True, "metadata": not metadata, "answering": not network}
    sections |= {"signals": signals_to is not None, "truncating": not truncate}
    for section, refused in sections.items():
        for numbers in _TABLES[section] if refused else ():
            out += _when(numbers[column], [(_RET, 0, 0, _REFUSE)])
    out += _when(_CLONE3[column], [(_RET, 0, 0, _FAIL | errno.ENOSYS)])
    out += _when(_OPENAT2[column], [(_RET, 0, 0, _FAIL | errno.ENOSYS)])
    out += _when(_CLONE[column], [_arg(0), (_JSET, 0, 1, _NEW_NAMESPACES), (_RET, 0, 0, _REFUSE), (_RET, 0, 0, _ALLOW)])
    out += _when(_SOCKET[column], _only(0, (2, 10)) if network else [(_RET, 0, 0, _REFUSE)])
    out += _when(_SOCKETPAIR[column], [*_paired(), *_only(0, (1,))])
    out += _when(_FCNTL[column], _never(1, _FCNTL_SIGNALS))
    out += _when(_IOCTL[column], _never(1, _IOCTL_REFUSED))
    out += _when(_PRLIMIT[column], _only(0, (0,)))
    if signals_to is not None:
        out += _when(_KILL[column], _only(0, (0, signals_to)))
        out += _when(_TGKILL[column], _only(0, (signals_to,)))
    for numbers, argument in _MODES:
        out += _when(numbers[column], [_arg(argument), *_NO_SET_ID])
    for numbers, argument in ((_OPEN, 1), (_OPENAT, 2)):
        out += _when(numbers[column], _opening(argument, truncate))
    out.append((_RET, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", code, yes, no, value) for code, yes, no, value in out)


# With a mode loaded: no file of a hostile job may lend its owner's rights to whoever runs it.
_NO_SET_ID: Program = [(_JSET, 0, 1, _SET_ID), (_RET, 0, 0, _REFUSE), (_RET, 0, 0, _ALLOW)]


def _opening(flags: int, truncate: bool) -> Program:
    """Opening a file; the mode follows the flags, and counts only when a file is made."""
    out: Program = []
    if not truncate:
        out = [_arg(flags), (_AND, 0, 0, _O_TRUNC | _O_ACCMODE), (_JEQ, 0, 1, _O_TRUNC), (_RET, 0, 0, _REFUSE)]
    return [*out, _arg(flags), (_JSET, 1, 0, _O_MAKES), (_RET, 0, 0, _ALLOW), _arg(flags + 1), *_NO_SET_ID]


def _arg(number: int) -> tuple[int, int, int, int]:
    """Load the low half of an argument."""
    return (_LOAD, 0, 0, 16 + 8 * number)


def _paired() -> Program:
    """Only pairs of SOCK_STREAM and SOCK_SEQPACKET, which stay with each other; Rust's library makes one of the latter
    for each program that it starts."""
    return [_arg(1), (_AND, 0, 0, 15), (_JEQ, 2, 0, 1), (_JEQ, 1, 0, 5), (_RET, 0, 0, _REFUSE)]


def _when(number: int | None, then: Program) -> Program:
    """`then` (which must return) if the call is this one; nothing where the architecture has no such call."""
    return [] if number is None else [(_JEQ, 0, len(then), number), *then]


def _only(argument: int, values: Iterable[int]) -> Program:
    allowed = [step for value in values for step in ((_JEQ, 0, 1, value), (_RET, 0, 0, _ALLOW))]
    return [_arg(argument), *allowed, (_RET, 0, 0, _REFUSE)]


def _never(argument: int, values: Iterable[int]) -> Program:
    refused = [step for value in values for step in ((_JEQ, 0, 1, value), (_RET, 0, 0, _REFUSE))]
    return [_arg(argument), *refused, (_RET, 0, 0, _ALLOW)]
