"""Forged claims: none ends as passed that the goal's boundary keeps out; the others are listed in docs/goal.md."""

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from elsewhere import ELSEWHERE, SWAP
from forged import BEYOND, COMMANDS, EDIT, ENVIRONMENT, FILES, HIDDEN, KINDS, UNPROTECTED
from goal_kit import Folder, folder, git
from repetition import repeats

from mulligan.goals.surroundings import Record, differing, surroundings

PROTECT = ("tests", "check.sh", "pyproject.toml")
QUICK = {
    ("edits the tests", 0),
    ("ends the process with 0", 1),
    ("puts a runner of its own before the real one", 1),
    ("changes what git gives", 2),
}
WAYS = [
    (kind, n, script)
    for kind, scripts in KINDS.items()
    for n, script in enumerate(scripts)
    if n < repeats(2) or (kind, n) in QUICK
]
"""Two or three of each kind, and all of them with `make long`."""


@pytest.fixture
def wrong(place: Folder, tmp_path: Path) -> Folder:
    """A project whose code is wrong, and which only a change of calc.py makes right."""
    return folder(tmp_path / "forged", FILES)


def claims(there: Folder, script: str, session: str = "s1") -> str:
    there.prompt(session=session)
    there.command(script, session)
    return there.stop(session)


def marked(kind: str, n: int, script: str) -> object:
    slow = [] if (kind, n) in QUICK else [pytest.mark.slow]
    return pytest.param(kind, script, marks=slow, id=f"{kind} {n + 1}")


@pytest.mark.light_cases(2)
@pytest.mark.parametrize(("kind", "script"), [marked(*way) for way in WAYS])
def test_a_forged_claim_does_not_end_as_passed(wrong: Folder, kind: str, script: str) -> None:
    seconds = 3.0 if kind == "hangs" else 600.0
    wrong.goal("sh check.sh", protect=PROTECT, seconds=seconds)
    said = claims(wrong, script)
    assert wrong.now().state == "active", said
    assert "try 1 of 5" in said


@pytest.mark.slow
@pytest.mark.parametrize("script", UNPROTECTED)
def test_fewer_tests_than_at_the_start_are_no_success(wrong: Folder, script: str) -> None:
    wrong.goal("sh check.sh")
    said = claims(wrong, script)
    assert wrong.now().state == "active", said
    assert wrong.tries()[0][1] is not True


@pytest.mark.slow
@pytest.mark.parametrize("protect", [PROTECT, ()], ids=["protected", "open"])
@pytest.mark.parametrize("kind", ELSEWHERE)
def test_what_git_does_not_keep_makes_no_success_that_is_not_named(
    wrong: Folder, monkeypatch: pytest.MonkeyPatch, kind: str, protect: tuple[str, ...]
) -> None:
    """With --protect none passes; without it, what has changed is named."""
    if not protect and "compiled" in kind:
        return
    places = {"python": sys.executable, "packages": sysconfig.get_path("purelib")}
    check, claim, named, before = (text.format(**places) for text in ELSEWHERE[kind])
    subprocess.run(["sh", "-c", before], cwd=wrong.path, check=True)
    git(wrong.path, "add", "-A")
    git(wrong.path, "commit", "-q", "--allow-empty", "-m", "prepared")
    monkeypatch.setenv("PATH", f"{wrong.path.parent / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("BASH_ENV", str(wrong.path.parent / "env.sh"))
    wrong.goal(check, protect=protect)
    assert wrong.now().first["passed"] is False
    said = claims(wrong, claim)
    assert wrong.now().state == "active" or (not protect and named and named in said), said


def test_a_file_outside_git_that_is_rewritten_with_its_size_and_time_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Untouched files are not read again, and the program cannot wait until a file has not been touched for long."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)
    settings, folder = tmp_path / "pytest.ini", tmp_path / "project"
    settings.write_text("[pytest]\n")
    at = settings.stat()

    def look(before: Mapping[str, Record] | None = None) -> dict[str, Record]:
        return surroundings({}, ["true"], str(folder), "", (), before)

    before = look()
    assert differing(before, look(before)) == []
    settings.write_text("[pytesT]\n")
    os.utime(settings, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert differing(before, look(before)) == [str(settings)]


@pytest.mark.slow
@pytest.mark.parametrize("protect", [PROTECT, ()], ids=["protected", "open"])
def test_a_process_that_changes_the_code_while_the_check_runs_is_named(wrong: Folder, protect: tuple[str, ...]) -> None:
    wrong.goal("sh check.sh", protect=protect)
    said = claims(wrong, SWAP.format(python=sys.executable))
    assert wrong.now().state == "active" or "files were written while the check ran: calc.py" in said


@pytest.mark.parametrize(("name", "script"), HIDDEN.items())
def test_a_file_that_git_does_not_look_at_is_named(wrong: Folder, name: str, script: str) -> None:
    wrong.goal("sh check.sh")
    assert name in claims(wrong, script)


def test_without_the_state_of_the_start_nothing_passes(wrong: Folder) -> None:
    wrong.goal("sh check.sh")
    said = claims(wrong, f"rm -rf .git; {EDIT}")
    assert wrong.tries() == [(1, None, False)], said
    assert "it is unknown what has changed" in said


def test_a_command_of_the_agent_that_calls_the_hook_sets_no_goal(
    wrong: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong.goal("sh check.sh")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    for line in ("clear", "pause", "true"):
        assert "Only a person can set a goal" in wrong.prompt(f"/mulligan-goal {line}")
    assert (wrong.now().state, wrong.now().label) == ("active", "sh check.sh")


@pytest.mark.slow
@pytest.mark.parametrize("environ", ENVIRONMENT)
def test_the_check_has_the_environment_of_when_the_goal_was_set(
    wrong: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    fake = tmp_path / "fake"
    fake.mkdir()
    for name in ("python3", "sh", "git"):
        (fake / name).write_text("#!/bin/sh\nexit 0\n")
        (fake / name).chmod(0o755)
    for name in ("sitecustomize.py", "exit.py"):
        (fake / name).write_text("import os; os._exit(0)\n")
    wrong.goal("sh check.sh")
    wrong.prompt()
    wrong.write("notes.txt", "changed\n")
    with monkeypatch.context() as changed:
        for name, value in environ.items():
            changed.setenv(name, value.format(fake=fake))
        wrong.stop()
    assert wrong.now().state == "active"
    assert all(passed is not True for _, passed, _ in wrong.tries())


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS)
def test_an_agent_cannot_change_its_goal(wrong: Folder, words: list[str]) -> None:
    wrong.goal("sh check.sh")
    env = {**os.environ, "CLAUDECODE": "1"}
    command = [sys.executable, "-m", "mulligan", "goal", *words]
    ran = subprocess.run(command, cwd=wrong.path, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2
    assert "Only a person can" in ran.stderr
    assert (wrong.now().state, wrong.now().label) == ("active", "sh check.sh")
    shown = subprocess.run(command[: -len(words)], cwd=wrong.path, env=env, capture_output=True, text=True, timeout=60)
    assert "refused" in shown.stdout


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.0, 0.05, 0.1, 0.3, 0.6])
def test_a_hook_that_is_killed_is_no_success(wrong: Folder, after: float) -> None:
    wrong.goal("sh check.sh")
    wrong.prompt()
    wrong.write("notes.txt", "changed\n")
    payload = f'{{"session_id": "s1", "cwd": "{wrong.path}", "hook_event_name": "Stop"}}'
    command = [sys.executable, "-m", "mulligan.hooks.entry", "claude", "Stop"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as hook:
        try:
            hook.communicate(payload, timeout=after)
        except subprocess.TimeoutExpired:
            hook.kill()
    assert wrong.now().state == "active"
    assert "of 5)" in wrong.stop(), "the next stop is judged"
    assert len(wrong.tries()) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", BEYOND)
def test_what_is_beyond_the_boundary_is_known(wrong: Folder, kind: str) -> None:
    script, noticed = BEYOND[kind]
    wrong.goal("sh check.sh", protect=PROTECT)
    claims(wrong, script)
    assert (wrong.now().state == "passed") == noticed.startswith("nothing")


def test_the_table_is_as_large_as_it_says() -> None:
    kinds = {**KINDS, "fewer": UNPROTECTED, "environment": ENVIRONMENT, "commands": COMMANDS, "killed": range(5)}
    assert len(kinds) >= 20
    assert all(len(ways) == 5 for ways in kinds.values())
