"""The process that starts jobs, and one small supervisor per job that outlives it and cleans up.

`serve` forks a supervisor for each job that comes over its socket: a fork of this small process costs a millisecond,
a fresh interpreter ten. The supervisor forks the job, watches time, memory, disk and processes, and when the job
ends, or Mulligan closes the control socket (also by dying), kills all that the job left behind and removes the
scratch folder. Wire: see `mulligan.sandbox.client`. Little is imported: the first job waits for it.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import select
import signal
import socket
import sys
import time

from mulligan.core.light import TYPE_CHECKING, cast
from mulligan.sandbox import confine, kernel, landlock, own_python
from mulligan.sandbox.remains import DiskUsage, kill_rest, remove_tree, usage

if TYPE_CHECKING:
    from mulligan.sandbox.spec import Spec

_WATCH_EVERY = 0.25
_ENTRIES = 20_000
# A job may fill its scratch folder with this many files of the largest size.
_DISK_FILES = 4


def serve(listen: socket.socket) -> bool:
    """Forks a supervisor for each message of one byte and four descriptors, until the other end closes.

    All are waited for: only so does the time that jobs take count as that of Mulligan's children.

    Returns:
        True in a fork that has become a job, whose code this interpreter then runs. False in the end.
    """
    signal.signal(signal.SIGCHLD, lambda number, frame: _reap(os.WNOHANG))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    gc.freeze()
    while True:
        message, fds, _, _ = socket.recv_fds(listen, 1, 4)
        if not message:
            listen.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.alarm(1)  # a job that still runs does not hold up the end
            _reap(0)
            return False
        if os.fork() == 0:
            listen.close()
            _supervise(fds)
            return True
        for fd in fds:
            os.close(fd)


def _reap(options: int) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _supervise(fds: list[int]) -> None:
    """Returns only in the process of a job that this interpreter runs."""
    control = socket.socket(fileno=fds[0])
    try:
        verdict = _run(control, fds[1:])
        if verdict is None:
            return
    except BaseException as error:
        verdict = f"failed {type(error).__name__}: {error}"
    with contextlib.suppress(OSError):
        control.sendall(verdict.encode("utf-8", "replace"))
    os._exit(0)


def _run(control: socket.socket, streams: list[int]) -> str | None:
    """How the job ended; None in the process of a job that this interpreter runs."""
    spec = _received(control)
    os.mkdir(spec["scratch"], 0o700)
    verdict: str | None = ""
    try:
        verdict = _run_in(spec, control, streams)
    finally:
        if verdict is not None:
            remove_tree(spec["scratch"])
    return verdict


def _run_in(spec: Spec, control: socket.socket, streams: list[int]) -> str | None:
    woken, wake = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    scoped = _prepare(spec)
    failed, fail = os.pipe()
    child = os.fork()
    if child == 0:
        for end in (control, woken, wake):
            end.detach()  # the job has other files under these numbers, which nothing here may close
        _become_job(spec, streams, fail, scoped)
        return None
    for fd in (*streams, fail):
        os.close(fd)
    why = ""
    status = None
    try:
        status, why = _watch(spec, control, woken, child)
    finally:
        status = kill_rest(child, status, scoped=scoped)
    message = os.read(failed, 4000)
    if message and not why:
        return "failed " + message.decode("utf-8", "replace")
    number, code = os.WTERMSIG(status), os.WEXITSTATUS(status)
    if spec["bwrap"] and 128 < code < 128 + signal.NSIG:
        number = code - 128  # which is how bubblewrap passes on what ended the job
    return f"killed {number} {why}" if why or number else f"exited {code}"


def _received(control: socket.socket) -> Spec:
    """A length of 8 bytes, then the marshalled specification. From Mulligan itself, so trusted."""
    with control.makefile("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        data = file.read(length)
    if len(data) < length or not length:
        raise EOFError("the job was cancelled before it started")
    return cast("Spec", marshal.loads(data))


def _prepare(spec: Spec) -> bool:
    """Make sure that nothing the job starts can get away. True when its signals stay in a Landlock domain."""
    if sys.platform != "linux":
        return False
    kernel.become_subreaper()
    if not spec["limits"]:
        return False
    if os.geteuid():
        kernel.no_new_privileges()
    if not landlock.restrict_scope(kernel.landlock_abi()):
        return False
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True  # so that kill(-1) later reaches this job's processes and no others
    return False


def _become_job(spec: Spec, streams: list[int], fail: int, scoped: bool) -> None:
    """Becomes the job, or writes to `fail` why not. Returns only if this interpreter runs the job."""
    signal.set_wakeup_fd(-1)
    fail = confine.close_all_but_standard(dict(enumerate(streams)), fail)
    try:
        confine.default_signals()
        os.setsid()
        if spec["limits"]:
            confine.enter(spec, scoped=scoped)
        else:
            confine.enter_unconfined(spec)
        argv = confine.command(spec)
        os.chdir(spec["cwd"])
        if own_python.suits(spec):
            own_python.renew(spec)  # closes `fail`, as the start of a program does
            return
        os.execvpe(argv[0], argv, spec["env"])
    except BaseException as error:
        os.write(fail, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:4000])
    os._exit(127)


def _watch(spec: Spec, control: socket.socket, woken: socket.socket, child: int) -> tuple[int | None, str]:
    """Wait for the end: the job's wait status, or None and why it has to be killed."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    deadline = time.monotonic() + spec["seconds"]
    look = time.monotonic() + _WATCH_EVERY
    while True:
        now = time.monotonic()
        if now >= deadline:
            return None, "time"
        if spec["limits"] and now >= look:
            if over := _over(spec, usage(os.getpid(), spec["scratch"], _ENTRIES)):
                return None, over
            look = time.monotonic() + _WATCH_EVERY
        wait = min(deadline, look) - now if spec["limits"] else deadline - now
        ready = {fd for fd, _ in poll.poll(max(1, wait * 1000))}
        if control.fileno() in ready:
            return None, "given up"
        if woken.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                woken.recv(4096)
        pid, status = os.waitpid(-1, os.WNOHANG)
        while pid not in (0, child):
            pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return status, ""


def _over(spec: Spec, used: DiskUsage) -> str:
    """What the job has too much of, all its processes together; "" for nothing."""
    if used.memory > spec["memory"]:
        return f"more than {spec['memory'] >> 20} MB of memory in all its processes"
    if used.processes > spec["processes"]:
        return f"more than {spec['processes']} processes"
    if used.disk > _DISK_FILES * spec["file_size"] or used.entries > _ENTRIES:
        return "more files than the scratch folder may hold"
    return ""
