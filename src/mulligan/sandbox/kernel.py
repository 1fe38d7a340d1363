"""System calls that Python does not offer, through ctypes. Linux only.

Numbers from 424 on are the same on every architecture; the older ones are reached through libc's own functions.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_MOUNT_RDONLY, _MOUNT_IDMAP = 1, 0x00100000
_OPEN_TREE_CLONE, _MOVE_FROM_FD = 1, 4
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x4000, 0x40000, 2, 4
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER, _PR_CAPBSET_DROP = 22, 38, 36, 24
_PR_SET_DUMPABLE = 4
_CAPABILITIES = b"\x22\x05\x08\x20" + bytes(4)  # version 3, this process

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttr(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _syscall(what: str, number: int, *args: object) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *args), what)


def _prctl(what: str, option: int, *args: object) -> None:
    padded = (*args, *(ctypes.c_ulong(0) for _ in range(4 - len(args))))
    _checked(_libc.prctl(ctypes.c_int(option), *padded), what)


def landlock_abi() -> int:
    """The version of Landlock that the kernel has; 0 where it has none or it is switched off."""
    if sys.platform != "linux":
        return 0
    version = _libc.syscall(ctypes.c_long(_LANDLOCK_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return max(0, version)


def landlock_ruleset(attributes: bytes) -> int:
    """A file descriptor. `attributes` is the packed struct landlock_ruleset_attr of the ABI in use."""
    return _syscall(
        "landlock_create_ruleset", _LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)
    )


def landlock_add(ruleset: int, rule: bytes) -> None:
    """Adds a packed struct landlock_path_beneath_attr."""
    _syscall("landlock_add_rule", _LANDLOCK_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))


def landlock_restrict(ruleset: int) -> None:
    _syscall("landlock_restrict_self", _LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))


def no_new_privileges() -> None:
    _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))


def seccomp(program: bytes) -> None:
    """Installs a BPF program, 8 bytes an instruction. Needs `no_new_privileges` before."""
    packed = _Program(len(program) // 8, program)
    _prctl("seccomp", _PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(packed))


def become_subreaper() -> None:
    """From now on, descendants that lose their parent become children of this process."""
    _prctl("subreaper", _PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))


def drop_bounding_set() -> None:
    """No program started from here gets a capability, not even one that runs as root."""
    for capability in range(64):
        if _libc.prctl(ctypes.c_int(_PR_CAPBSET_DROP), ctypes.c_ulong(capability), 0, 0, 0) < 0:
            return


def drop_capabilities() -> None:
    """Gives up all capabilities, and lets /proc show this process to its user: both as the start of a program does."""
    _checked(_libc.capset(_CAPABILITIES, bytes(24)), "capset")
    _prctl("dumpable", _PR_SET_DUMPABLE, ctypes.c_ulong(1))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        os.fsencode(data) if data else None,
    )
    _checked(result, f"mount {target}")


def private_mounts() -> None:
    """What is mounted from here on stays in this mount namespace."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def mount_tmpfs(target: str, options: str) -> None:
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def mount_readonly(target: str) -> None:
    """Makes the mount at `target` and all below it read-only."""
    _set_mount(_AT_FDCWD, target, _AT_RECURSIVE, _MountAttr(_MOUNT_RDONLY, 0, 0, 0))


def clone_mount(path: str, *, writable: bool, ids: int | None) -> int:
    """A copy of what is mounted at `path`, not attached yet, as a file descriptor.

    `ids`: a user namespace whose map says as which uid each owner of a file appears (an id-mapped mount, Linux 5.12).
    """
    flags = ctypes.c_uint(_OPEN_TREE_CLONE | os.O_CLOEXEC)
    tree = _syscall(f"open_tree {path}", _OPEN_TREE, ctypes.c_int(_AT_FDCWD), os.fsencode(path), flags)
    wanted = _MountAttr(0 if writable else _MOUNT_RDONLY, _MOUNT_RDONLY if writable else 0, 0, 0)
    if ids is not None:
        wanted.set |= _MOUNT_IDMAP
        wanted.userns = ids
    _set_mount(tree, "", _AT_EMPTY_PATH, wanted)
    return tree


def attach_mount(tree: int, target: str) -> None:
    """Mounts what `clone_mount` returned."""
    to = (ctypes.c_int(_AT_FDCWD), os.fsencode(target), ctypes.c_uint(_MOVE_FROM_FD))
    _syscall(f"move_mount {target}", _MOVE_MOUNT, ctypes.c_int(tree), b"", *to)


def _set_mount(at: int, path: str, flags: int, wanted: _MountAttr) -> None:
    packed = (ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)))
    where = (ctypes.c_int(at), os.fsencode(path), ctypes.c_uint(flags))
    _syscall(f"mount_setattr {path}", _MOUNT_SETATTR, *where, *packed)
