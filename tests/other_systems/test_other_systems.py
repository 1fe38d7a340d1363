"""Mulligan on a Python that looks like one on another system. None of this shows that the real system behaves so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


def mulligan(system: str, home: Path, *args: str, code: str = "", stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command line on a Python that looks like this system's; or this code in place of it."""
    environment = {**os.environ, "PYTHONPATH": str(HERE / system), "MULLIGAN_HOME": str(home)}
    way = ["-c", code] if code else ["-m", "mulligan"]
    return subprocess.run(
        [sys.executable, *way, *args], env=environment, input=stdin, capture_output=True, text=True, timeout=120
    )


def solve(system: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests.py").write_text("assert double(2) == 4\n")
    answers = ["def double(x):\n    return x", "double(x) is twice x.", "def double(x):\n    return 2 * x"]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    model = f"scripted:{folder / 'answers.jsonl'}"
    return mulligan(
        system, folder, "solve", "Write double(x).", "--tests", f"{folder}/tests.py", "--model", model, *options
    )


def initialize(system: str, home: Path) -> dict[str, object]:
    """The names of the server's tools."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    ran = mulligan(system, home, "serve", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert ran.returncode == 0, ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    return next(answer["result"] for answer in answers if answer.get("id") == 2)


@pytest.mark.parametrize("system", ["darwin", "windows"])
def test_the_bank_works(system: str, tmp_path: Path) -> None:
    added = mulligan(system, tmp_path, "memory", "add", "--title", "Round halves up", "--content", "Use ROUND_HALF_UP.")
    assert added.returncode == 0, added.stderr
    found = mulligan(system, tmp_path, "memory", "search", "round halves")
    assert "Round halves up" in found.stdout, found.stderr


@pytest.mark.parametrize("system", ["darwin", "windows"])
def test_the_server_lists_its_tools(system: str, tmp_path: Path) -> None:
    assert "reflexion-thinking" in json.dumps(initialize(system, tmp_path))


def test_a_mac_solves(tmp_path: Path) -> None:
    ran = solve("darwin", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "2 * x" in ran.stdout
    notes = [line for line in ran.stderr.splitlines() if line.startswith("sandbox: ")]
    assert len(notes) == 1, ran.stderr
    assert "seatbelt does not work here" in notes[0]
    assert "files and the network" in notes[0]


def test_a_mac_refuses_strict_with_what_it_has(tmp_path: Path) -> None:
    ran = solve("darwin", tmp_path, "--sandbox", "strict")
    assert ran.returncode == 3
    assert "--sandbox strict needs Linux" in ran.stderr
    assert "'seatbelt'" in ran.stderr


def test_the_doctor_gives_a_mac_no_advice_for_linux(tmp_path: Path) -> None:
    ran = mulligan("darwin", tmp_path, "doctor")
    assert "level seatbelt" in ran.stdout
    for word in ("apt", "dnf", "Landlock", "landlock", "kernel", "sysctl", "seccomp", "namespaces", "bwrap"):
        assert word not in ran.stdout, ran.stdout


def test_a_sandbox_exec_that_holds_nothing_is_not_taken(tmp_path: Path) -> None:
    """The trial job finds out: a program in its place that only starts the job."""
    program = tmp_path / "sandbox-exec"
    program.write_text('#!/bin/sh\nwhile [ "$1" = -D ]; do shift 2; done\nshift 2\nexec "$@"\n')
    program.chmod(0o755)
    code = (
        f"from mulligan.sandbox import seatbelt; seatbelt.PROGRAM = {str(program)!r}\n"
        "from mulligan.sandbox.detect import choose, fallback, problem\n"
        "from mulligan.sandbox.levels import level_named\n"
        "print(problem(level_named('seatbelt')))\n"
        "print(choose('auto').name)\n"
        "print(fallback(choose('auto')))\n"
    )
    ran = mulligan("darwin", tmp_path, code=code)
    why, level, note = ran.stdout.splitlines()
    assert "can read a file that it should not" in why, ran
    assert level in ("limits", "limits+unprivileged")
    assert "can read a file that it should not" in note


def test_solve_on_windows_says_where_it_runs(tmp_path: Path) -> None:
    ran = solve("windows", tmp_path)
    assert ran.returncode == 3
    assert ran.stderr.strip().endswith("On Windows, run Mulligan inside WSL 2.")
