"""What a job uses while it runs and leaves behind when it ends: processes found, killed and reaped; its folder removed.

Reads /proc where there is one. Called by the supervisor, which is the subreaper of all that the job starts.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time

from mulligan.core.light import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_KILL_SECONDS = 10.0


class DiskUsage(NamedTuple):
    """Of all processes of a job together; memory and disk in bytes. Shared memory counts once for each process."""

    processes: int
    memory: int
    disk: int
    entries: int


def usage(supervisor: int, scratch: str, most: int) -> DiskUsage:
    """What the descendants of `supervisor` use. Stops counting files at `most`."""
    family = descendants(supervisor)
    disk, entries = _disk(scratch, most)
    return DiskUsage(len(family), sum(family.values()), disk, entries)


def descendants(of: int) -> dict[int, int]:
    """Resident bytes of each living descendant by process id; empty where there is no /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
                    if fields[0] != b"Z":
                        children.setdefault(int(fields[1]), []).append((int(name), int(fields[21]) * _PAGE))
    found: dict[int, int] = {}
    todo = [of]
    while todo:
        for pid, resident in children.get(todo.pop(), ()):
            found[pid] = resident
            todo.append(pid)
    return found


def kill_rest(child: int, status: int | None, *, scoped: bool) -> int:
    """Kill everything that the job started, wait until it is gone, and return the wait status of `child`.

    `scoped`: this process is in a Landlock domain of its own, so that kill(-1) reaches the job and nobody else.
    """
    until = time.monotonic() + _KILL_SECONDS
    pause = 0.0005
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status if status is not None else signal.SIGKILL
        if pid == child:
            status = ended
        if pid == 0:
            if time.monotonic() > until:
                raise TimeoutError("the job's processes could not be stopped")
            _kill(child if status is None else None, scoped)
            time.sleep(pause)
            pause = min(0.02, pause * 2)


def _kill(child: int | None, scoped: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if scoped:
            os.kill(-1, signal.SIGKILL)
            return
        if child is not None:
            os.killpg(child, signal.SIGKILL)
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _disk(folder: str, most: int) -> tuple[int, int]:
    """Bytes and entries below `folder`, counted up to `most` entries."""
    size = entries = 0
    todo = [folder]
    while todo and entries <= most:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as found:
            for entry in found:
                entries += 1
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                else:
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entries > most:
                    break
    return size, entries


def remove_tree(folder: str) -> None:
    """Remove a folder that hostile code has filled: any depth, any mode, links never followed. Leaves what it cannot.

    Descends by descriptor with one open at a time, lifting deep folders up, so that no path is too long.
    """
    with contextlib.suppress(FileNotFoundError, OSError):
        os.rmdir(folder)
        return
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        while names := os.listdir(top):
            for name in names:
                _remove(top, name)
    except OSError:
        pass
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _remove(top: int, name: str) -> None:
    """Remove an entry of `top`; a folder's own folders are moved up into `top`, to be removed by a later round."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
        os.unlink(name, dir_fd=top)
        return
    os.chmod(name, 0o700, dir_fd=top)
    inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for entry in os.listdir(inside):
            if stat.S_ISDIR(os.lstat(entry, dir_fd=inside).st_mode):
                os.chmod(entry, 0o700, dir_fd=inside)
                os.rename(entry, os.urandom(16).hex(), src_dir_fd=inside, dst_dir_fd=top)
            else:
                os.unlink(entry, dir_fd=inside)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=top)
