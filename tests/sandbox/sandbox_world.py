"""What a hostile job would like to reach, set up outside the sandbox, so that effects are looked for from outside."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

VICTIM = """
import os, signal, sys, time
def seen(number, frame):
    with open(sys.argv[1], "a") as file: file.write(f"{number} ")
for number in (signal.SIGURG, signal.SIGIO, signal.SIGUSR1): signal.signal(number, seen)
print("ready", flush=True)
while True: time.sleep(60)
"""
PUBLIC = ("/etc", "/var/tmp", "/dev/shm", "/tmp", os.path.expanduser("~"), "/dev/mqueue")


class World:
    """A folder with a secret, a victim process with a secret, and listeners that remember who came."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(12)
        self.folder = Path(tempfile.mkdtemp(prefix="attacked-"))
        self.folder.chmod(0o777)
        self.secret = self.folder / "secret.txt"
        self.secret.write_text(self.token)
        self.secret.chmod(0o666)
        os.utime(self.secret, (1_000_000_000, 1_000_000_000))
        self.signals = self.folder / "signals"
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", VICTIM, str(self.signals)],
            env={"SECRET": self.token},
            stdout=subprocess.PIPE,
        )
        assert self.victim.stdout is not None
        assert self.victim.stdout.readline() == b"ready\n"
        self._nice = os.getpriority(os.PRIO_PROCESS, self.victim.pid)
        self.listeners = {
            "tcp": _bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "path": _bound(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "stream")),
            "gram": _bound(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "gram")),
            "abstract": _bound(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.token}"),
        }
        for name in ("stream", "gram"):
            (self.folder / name).chmod(0o777)

    def facts(self) -> str:
        """What the attacker is told, as JSON; the token comes in two halves, so that printing them proves nothing."""
        return json.dumps(
            {
                "folder": str(self.folder),
                "secret": str(self.secret),
                "victim": self.victim.pid,
                "mulligan": os.getpid(),
                "home": os.path.expanduser("~"),
                "tcp": self.listeners["tcp"].getsockname()[1],
                "udp": self.listeners["udp"].getsockname()[1],
                "halves": [self.token[:12], self.token[12:]],
            }
        )

    def harm(self) -> list[str]:
        """All that an attack has done out here; empty when it held."""
        done = [f"{name} was reached" for name, listener in self.listeners.items() if _came(listener)]
        if self.victim.poll() is not None:
            done.append("the victim is dead")
        elif _state(self.victim.pid) in "Tt":
            done.append("the victim is stopped")
        elif os.getpriority(os.PRIO_PROCESS, self.victim.pid) != self._nice:
            done.append("the victim's priority changed")
        elif sys.platform == "linux" and os.sched_getaffinity(self.victim.pid) != os.sched_getaffinity(0):
            done.append("the victim's affinity changed")
        if self.signals.exists():
            done.append(f"the victim got signals {self.signals.read_text()}")
        if self._changed():
            done.append("the secret was changed, moved or linked")
        wanted = {"secret.txt", "stream", "gram", "signals"}
        done += [f"{path} was written" for path in self.folder.glob("*") if path.name not in wanted]
        for folder in PUBLIC:
            if os.path.isdir(folder) and any(self.token in name for name in os.listdir(folder)):
                done.append(f"{folder} was written")
        done += [f"process {pid} is left" for pid in self.processes()]
        key = str(int(self.token[:7], 16))
        with contextlib.suppress(FileNotFoundError):
            if any(line.split()[:1] == [key] for line in Path("/proc/sysvipc/shm").read_text().splitlines()):
                done.append("a shared memory segment is left")
        return done

    def _changed(self) -> bool:
        try:
            info = self.secret.stat()
            text = self.secret.read_text()
        except OSError:
            return True
        as_was = (self.token, 0o100666, 1_000_000_000, 1)
        return (text, info.st_mode, info.st_mtime, info.st_nlink) != as_was

    def processes(self) -> list[int]:
        """Living processes that carry the token in their arguments, as every job here does."""
        found: list[int] = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f'"{self.token[:12]}"'.encode() in path.read_bytes() and _state(int(path.parent.name)) != "Z":
                    found.append(int(path.parent.name))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for listener in self.listeners.values():
            listener.close()
        with contextlib.suppress(ProcessLookupError):
            self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        if self.victim.stdout:
            self.victim.stdout.close()
        for folder in (str(self.folder), str(self.folder) + self.token):  # the second where an attack moved the first
            shutil.rmtree(folder, ignore_errors=True)
        for folder in PUBLIC:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, self.token))


def _bound(family: int, kind: int, address: object) -> socket.socket:
    listener = socket.socket(family, kind)
    listener.bind(address)  # pyright: ignore[reportArgumentType]
    if kind == socket.SOCK_STREAM:
        listener.listen(8)
    listener.setblocking(False)
    return listener


def _came(listener: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(100)
        return True
    return False


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    return "X"
