"""Landlock and the filter as older kernels would have them, tried one by one in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.sandbox import kernel, landlock, seccomp

SRC = str(Path(__file__).parent.parent.parent / "src")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="isolation is for Linux")

FILES = """
import os, sys
from mulligan.sandbox import kernel, landlock, seccomp
abi, own, other = int(sys.argv[1]), sys.argv[2], sys.argv[3]
kernel.no_new_privileges()
landlock.restrict(abi, readable=["/usr"], writable=[own], network=False)
kernel.seccomp(seccomp.program(network=False, metadata=False, signals_to=os.getpid(), truncate=abi >= 3))
def tries(do):
    try: do(); return "done"
    except OSError as error: return type(error).__name__
def put(path):
    with open(path, "w") as file: file.write("x")
print(*map(tries, [
    lambda: put(own + "/x"), lambda: os.rename(own + "/x", own + "/y"), lambda: put(other),
    lambda: open(other).close(), lambda: os.truncate(other, 0), lambda: os.open(other, os.O_TRUNC),
    lambda: os.chmod(other, 0), lambda: os.kill(os.getppid(), 0), lambda: os.kill(os.getpid(), 0),
]))
"""


@pytest.mark.skipif(not seccomp.supported(), reason="no filter for this architecture")
@pytest.mark.parametrize("abi", range(1, 8))
def test_every_version_of_landlock_keeps_files(abi: int, tmp_path: Path) -> None:
    if abi > kernel.landlock_abi():
        pytest.skip(f"this kernel's Landlock is of version {kernel.landlock_abi()}")
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.write_text("secret")
    argv = [sys.executable, "-c", FILES, str(abi), str(own), str(other)]
    ran = subprocess.run(argv, env={"PYTHONPATH": SRC}, capture_output=True, text=True, timeout=30)
    got = ran.stdout.split()
    assert got[:2] == ["done", "done"], ran.stderr
    assert got[2:8] == ["PermissionError"] * 6
    assert got[8] == "done"
    assert other.read_text() == "secret"


WRITES = """
import os, sys
from mulligan.sandbox import kernel, landlock
abi, own, other = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.makedirs(own + "/a/b"); open(own + "/a/b/x", "w").close()
kernel.no_new_privileges()
landlock.restrict_writes(abi, [own])
def tries(do):
    try: do(); return "done"
    except OSError as error: return type(error).__name__
print(*map(tries, [
    lambda: os.rename(own + "/a/b/x", own + "/x"), lambda: os.mkfifo(own + "/p"), lambda: open(other).close(),
    lambda: os.kill(os.getppid(), 0), lambda: open(other, "a"), lambda: open(other + "2", "w"),
    lambda: os.unlink(other), lambda: os.link(other, other + "2"), lambda: os.symlink(other, other + "2"),
    lambda: os.mknod(own + "/n", 0o20600),
]))
"""


@pytest.mark.parametrize("abi", range(landlock.WRITES_SINCE, 8))
def test_every_version_of_landlock_can_hold_the_writes_alone(abi: int, tmp_path: Path) -> None:
    if abi > kernel.landlock_abi():
        pytest.skip(f"this kernel's Landlock is of version {kernel.landlock_abi()}")
    other = tmp_path / "other"
    other.write_text("kept")
    argv = [sys.executable, "-c", WRITES, str(abi), str(tmp_path / "own"), str(other)]
    ran = subprocess.run(argv, env={"PYTHONPATH": SRC}, capture_output=True, text=True, timeout=30)
    assert ran.stdout.split() == [*["done"] * 4, *["PermissionError"] * 6], ran.stderr
    assert other.read_text() == "kept"


@pytest.mark.skipif(not seccomp.supported(), reason="no filter for this architecture")
def test_the_filter_is_a_program_that_always_returns() -> None:
    for network in (True, False):
        for pid in (None, os.getpid()):
            program = seccomp.program(network=network, metadata=False, signals_to=pid, truncate=False)
            steps = [program[at : at + 8] for at in range(0, len(program), 8)]
            assert len(steps) < 4096
            assert steps[-1][0] == 0x06
            jumps = [max(step[2], step[3]) + at + 1 for at, step in enumerate(steps) if step[0] & 7 == 5]
            assert max(jumps) < len(steps)
