"""A process that ends while it tries the check out: what it made is known, can be gone on with, and can be removed."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHECK = """
import pathlib, socket, sys
if not pathlib.Path({go!r}).exists():
    with socket.create_connection(("127.0.0.1", {port})) as test:
        test.recv(1)  # until the test goes away
sys.exit(open("value.txt").read() != "right")
"""
AGENT = 'open("value.txt", "w").write("right")'


pytestmark = pytest.mark.slow


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *args], capture_output=True, text=True, check=True).stdout


def mulligan(*args: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "mulligan", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class Started:
    """A run whose check waits, once it is tried out. `go` lets the next check judge."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.repository, self.go = folder / "repository", folder / "go"
        self.repository.mkdir()
        (self.repository / "value.txt").write_text("empty")
        for command in ("init -q", "add .", "-c user.name=u -c user.email=u@e commit -qm x"):
            git(self.repository, *command.split())
        (folder / "agent.py").write_text(AGENT)
        (folder / "check.py").write_text(CHECK.format(go=str(self.go), port=listener.getsockname()[1]))
        python = sys.executable
        options = ("--actor", f"command:{python} {folder / 'agent.py'}", "--check", f"{python} {folder / 'check.py'}")
        options += ("--workspace", str(self.repository))
        self.process = subprocess.Popen(
            [python, "-m", "mulligan", "solve", "x", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, by: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(by)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err

    @property
    def left(self) -> tuple[int, int, int]:
        """Worktrees, states, and folders of data."""
        data = Path(os.environ["MULLIGAN_HOME"], "workspaces")
        folders = list(data.iterdir()) if data.is_dir() else []
        worktrees = git(self.repository, "worktree", "list").count("\n") - 1
        return worktrees, git(self.repository, "for-each-ref", "refs/mulligan").count("\n"), len(folders)


@contextmanager
def started(folder: Path) -> Generator[Started]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        run = Started(folder, listener)
        try:
            with listener.accept()[0]:
                yield run
        finally:
            run.process.kill()
            run.process.communicate(timeout=30)


def runs() -> list[str]:
    return [run["run"] for run in json.loads(mulligan("runs", "list", "--json").stdout or "[]")]


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_one_that_is_asked_to_stop_leaves_nothing(tmp_path: Path, by: signal.Signals) -> None:
    with started(tmp_path) as run:
        status, err = run.end(by)
        assert (status, err.splitlines()[-1]) == (3, "Interrupted before anything started.")
        assert run.left == (0, 0, 0)
        assert "No runs recorded" in mulligan("runs", "list").stderr


def test_one_that_is_killed_can_be_resumed(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        run.end(signal.SIGKILL)
        assert run.left == (1, 1, 1)
        (id,) = runs()
        run.go.touch()
        resumed = mulligan("runs", "resume", id)
        assert resumed.returncode == 0, resumed.stderr
        assert git(run.repository, "branch", "--list", "mulligan/*").split() == [f"mulligan/{id}"]


def test_one_that_is_killed_can_be_removed(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        run.end(signal.SIGKILL)
        (id,) = runs()
        pruned = mulligan("runs", "prune", "--yes")
        assert pruned.stdout == (
            f"{id}.1  stays: the run is not finished. To remove it: mulligan runs rm {id}.1 --yes  (its working folder)\n"
        )
        listed = mulligan("runs", "rm", id)
        assert listed.stdout.startswith(f"{id}  would be removed  (cut off, 0 tries; its working folder; 1 state in ")
        assert run.left == (1, 1, 1)
        assert mulligan("runs", "rm", id, "--yes").returncode == 0
        assert run.left == (0, 0, 0)
        assert "No runs recorded" in mulligan("runs", "list").stderr
