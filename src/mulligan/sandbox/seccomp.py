"""A seccomp filter, written by hand: which system calls a confined job is refused. It installs nothing itself.

A deny list: what is not named passes, except calls newer than this file, which answer "no such call" so that the
C library falls back. Refused calls fail with an error; only a call of a foreign architecture kills.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Audit number of each architecture, and its column in the tables below."""

_NEWER = 451
_X32 = 0x40000000

# fmt: off
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes: looking into them, steering them
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "setpriority": (141, 140),
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    # file systems
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "swapon": (167, 224),
    "swapoff": (168, 225), "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    # wide doors into the kernel
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "unshare": (272, 97), "setns": (308, 268), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "acct": (163, 89), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "iopl": (172, None),
    "ioperm": (173, None), "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116),
    "vhangup": (153, 58), "personality": (135, 92), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    "uselib": (134, None),
    # memory that no limit counts, and that outlives the process
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192), "mq_open": (240, 180),
    "mq_unlink": (241, 181), "mq_notify": (244, 184),
}
_METADATA: dict[str, tuple[int | None, int | None]] = {
    # Landlock does not guard these, so where the job has the user's own uid nothing else would
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "utimensat": (280, 88), "futimesat": (261, None), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}
_SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_ANSWERING: dict[str, tuple[int | None, int | None]] = {
    "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
}
_TRUNCATING: dict[str, tuple[int | None, int | None]] = {"truncate": (76, 45), "creat": (85, None)}
# fmt: on
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3 = (41, 198), (53, 199), (56, 220), (435, 435)
_KILL, _TGKILL, _FCNTL, _IOCTL, _PRLIMIT = (62, 129), (234, 131), (72, 25), (16, 29), (302, 261)
_OPEN, _OPENAT, _OPENAT2 = (2, None), (257, 56), (437, 437)
_MODES = (((90, None), 1), ((91, 52), 1), ((268, 53), 2), ((85, None), 1), ((133, None), 1), ((259, 33), 2))
"""Where chmod, fchmod, fchmodat, creat, mknod and mknodat take a mode."""

_NEW_NAMESPACES = 0x7E020000
_FCNTL_SIGNALS = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY
_IOCTL_REFUSED = (0x5412, 0x541C, 0x8901, 0x8902)  # TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
_O_TRUNC, _O_ACCMODE = 0o1000, 3
_O_MAKES = 0o20000100  # O_CREAT and O_TMPFILE
_SET_ID = 0o6000

_LOAD, _AND, _JEQ, _JGE, _JSET, _RET = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _FAIL | errno.EPERM

Program = list[tuple[int, int, int, int]]


def supported() -> bool:
    """Whether the numbers of this machine's architecture are known here."""
    return os.uname().machine in _ARCHITECTURES


def program(*, network: bool, metadata: bool, signals_to: int | None, truncate: bool) -> bytes:
    """The filter as struct sock_filter bytes.

    network: sockets of IPv4 and IPv6 are allowed. metadata: chmod, chown, utime and xattr are allowed.
    signals_to: when given, the only process that may be signalled (for kernels whose Landlock does not scope signals).
    truncate: False refuses the calls that shorten a file by its name (for Landlock before ABI 3).
    """
    audit, column = _ARCHITECTURES[os.uname().machine]
    out: Program = [(_LOAD, 0, 0, 4), (_JEQ, 1, 0, audit), (_RET, 0, 0, _KILL_PROCESS), (_LOAD, 0, 0, 0)]
    out += [(_JGE, 0, 1, _NEWER), (_RET, 0, 0, _FAIL | errno.ENOSYS)]
    tables = [_REFUSED]
    tables += [] if metadata else [_METADATA]
    tables += [] if network else [_ANSWERING]
    tables += [] if signals_to is None else [_SIGNALS]
    tables += [] if truncate else [_TRUNCATING]
    for table in tables:
        for numbers in table.values():
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


_NO_SET_ID: Program = [(_JSET, 0, 1, _SET_ID), (_RET, 0, 0, _REFUSE), (_RET, 0, 0, _ALLOW)]
"""With a mode loaded: no file of a hostile job may lend its owner's rights to whoever runs it."""


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
