"""The job's own view of the file system: all read-only, its scratch folder a small disk in memory.

Runs in the job's process before it is confined further; vanishes with it. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Generator

from mulligan.sandbox import kernel

TYPE_CHECKING = False

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

# The scratch folder holds this many files of the largest size.
_SCRATCH_FILES = 4
_SCRATCH_ENTRIES = 16_384
SHARED_MEMORY = "/dev/shm"
"""Where semaphores of `multiprocessing` are: the job has its own, empty and small."""


def private_files(spec: Spec, uid: int | None) -> None:
    """Enter the view. `uid`: whom the job will run as when this process is root; None keeps the user.

    Folders that `uid` could not pass (such as /root) are covered by an empty one that holds what the job may see;
    what the job itself asked for appears as owned by `uid` where its real owner is the folder's.
    """
    inside, group = (os.geteuid(), os.getegid()) if uid is None else (uid, uid)
    writable = {path for path in spec["writable"] if os.path.isdir(path) and path != spec["scratch"]}
    shown = {path for path in (*spec["readable"], *spec["writable"]) if os.path.exists(path)} - {spec["scratch"]}
    kernel.unshare(kernel.CLONE_NEWNS | (0 if os.geteuid() == 0 else kernel.CLONE_NEWUSER))
    if uid is None:
        _map_myself(inside, group)
    kernel.private_mounts()
    covers = sorted({found for path in (*shown, spec["scratch"]) if (found := _closed_ancestor(path, inside))})
    hidden = {path for path in shown if any(path.startswith(cover + "/") for cover in covers)}
    trees: dict[str, int] = {}
    for path in sorted(hidden | writable | (set() if uid is None else set(spec["given"]))):
        with _ids(path, uid if path in spec["given"] else None) as ids:
            trees[path] = kernel.clone_mount(path, writable=path in writable, ids=ids)
    if not spec["bwrap"]:  # which writes to /proc, and makes its own view read-only
        kernel.mount_readonly("/")
    for cover in covers:
        kernel.mount_tmpfs(cover, "size=64k,mode=0755")
    for path, tree in trees.items():
        if not os.path.lexists(path):
            _make_place(tree, path)
        kernel.attach_mount(tree, path)
    os.makedirs(spec["scratch"], exist_ok=True)
    room = f"size={spec['file_size'] * _SCRATCH_FILES},nr_inodes={_SCRATCH_ENTRIES}"
    kernel.mount_tmpfs(spec["scratch"], f"{room},mode=0700,uid={inside},gid={group}")
    if os.path.isdir(SHARED_MEMORY):
        kernel.mount_tmpfs(SHARED_MEMORY, f"size=16m,nr_inodes=1024,mode=0700,uid={inside},gid={group}")


def _map_myself(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


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


def _make_place(tree: int, path: str) -> None:
    """Something to mount `tree` on: a folder for a folder, a file for a file."""
    if stat.S_ISDIR(os.fstat(tree).st_mode):
        os.makedirs(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))


@contextlib.contextmanager
def _ids(path: str, uid: int | None) -> Generator[int | None]:
    """A user namespace in which the owner of `path` is `uid`; None when the owner is to stay as he is."""
    if uid is None:
        yield None
        return
    owner = os.stat(path)
    ready, tell = os.pipe()
    holder = os.fork()
    if holder == 0:
        kernel.unshare(kernel.CLONE_NEWUSER)
        os.write(tell, b"x")
        signal.pause()
    try:
        os.read(ready, 1)
        for name, mine in (("uid_map", owner.st_uid), ("gid_map", owner.st_gid)):
            with open(f"/proc/{holder}/{name}", "w") as file:
                file.write(f"{mine} {uid} 1")
        ids = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        yield ids
        os.close(ids)
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.close(ready)
        os.close(tell)
