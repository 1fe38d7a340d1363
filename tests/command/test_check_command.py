"""Any command as the judge: of a text, of code, of a workspace."""

import sys
from pathlib import Path
from shlex import quote

import pytest

from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.command import Command
from mulligan.sandbox.local import LocalSandbox

PYTHON = quote(sys.executable)


async def judged(check: Command, output: str = "", folder: Path | None = None) -> Feedback:
    artifacts = (Artifact("git", "0" * 40, str(folder)),) if folder else ()
    return await check.evaluate(Episode("e", Task("t"), trials=(Trial(1, Attempt(output, artifacts=artifacts)),)))


async def test_an_attempt_is_a_file_where_the_placeholder_stands_else_on_standard_input() -> None:
    sandbox = LocalSandbox()
    reads = "import sys; t = open(sys.argv[1]).read() if len(sys.argv) > 1 else sys.stdin.read()"
    code = quote(f"{reads}; print(t); sys.exit(t != 'yes')")
    by_file = Command(f"{PYTHON} -c {code} {{attempt}}", sandbox=sandbox)
    assert by_file.expects == "text"
    assert (await judged(by_file, "yes")).passed is True
    no = await judged(by_file, "no {attempt}")
    assert no.passed is False
    assert no.text == "The check ended with status 1.\nno {attempt}"
    assert no.source == "command"
    assert no.score is None
    on_stdin = Command(f"{PYTHON} -c {code}", sandbox=sandbox, expects="text")
    assert (await judged(on_stdin, "yes")).passed is True


async def test_code_is_a_python_file() -> None:
    check = Command(f"{PYTHON} {{attempt}}", sandbox=LocalSandbox(), expects="code")
    assert (await judged(check, "raise SystemExit(0)")).passed is True
    assert "ZeroDivisionError" in (await judged(check, "1/0")).text


async def test_a_check_that_cannot_run_is_an_error_at_once_and_no_verdict_once_it_has_run(tmp_path: Path) -> None:
    sandbox = LocalSandbox(level="none")
    with pytest.raises(InvalidInput, match="'no-such-command-here' was not found"):
        Command("no-such-command-here -q", sandbox=sandbox)
    (tmp_path / "script").write_text("echo not executable")
    for command in ("sh -c no-such-command-here", "./no-such-script", "./script", f"{tmp_path}"):
        with pytest.raises(MulliganError, match="could not run, so no attempt can be judged"):
            await judged(Command(command, sandbox=sandbox), folder=tmp_path)
    check = Command("sh ./check", sandbox=sandbox)
    (tmp_path / "check").write_text("exit 1")
    assert (await check.try_out(str(tmp_path), {})).passed is False
    (tmp_path / "check").write_text("no-such-command-here")  # by the attempt, so that the next one may correct it
    feedback = await judged(check, folder=tmp_path)
    assert feedback.passed is None
    assert "a command was not found" in feedback.text
    gone = await judged(Command("true", sandbox=sandbox), folder=tmp_path / "gone")
    assert gone.passed is None
    assert "is gone" in gone.text
    assert "changed no workspace" in (await judged(Command("true", sandbox=sandbox))).text


@pytest.mark.slow
async def test_a_confined_check_has_the_users_files_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("import sys; sys.exit('water' not in open(sys.argv[1]).read())")
    (tmp_path / "secret.txt").write_text("water")
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\ngrep -q water $1\n")
    tool.chmod(0o755)
    for script in (f"{PYTHON} mine.py", f"{PYTHON} ./mine.py", f"{PYTHON} {tmp_path / 'mine.py'}", "./tool"):
        check = Command(f"{script} {{attempt}}", sandbox=LocalSandbox())
        assert (await judged(check, "water")).passed is True, script
        assert (await judged(check, "tea")).passed is False, script
    reads = "print(open('secret.txt').read())"
    unnamed = Command(f'{PYTHON} -c "{reads}" {{attempt}}', sandbox=LocalSandbox())
    assert "No such file" in (await judged(unnamed, "tea")).text


def test_what_cannot_judge_is_refused_before_anything_is_tried(tmp_path: Path) -> None:
    for check, seconds, said in (
        ("no-such-tool {attempt}", 1, "'no-such-tool' was not found"),
        ("true", 0, "greater than 0"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Command(check, sandbox=LocalSandbox(), seconds=seconds)


async def test_a_check_that_hangs_has_failed(tmp_path: Path) -> None:
    check = Command("sh -c 'echo begun; sleep 60'", sandbox=LocalSandbox(level="none"), seconds=1)
    feedback = await judged(check, folder=tmp_path)
    assert feedback.passed is False
    assert "stopped after 1 second." in feedback.text


@pytest.mark.parametrize(
    ("summary", "score"),
    [
        ("2 failed, 1 passed in 0.12s", 1 / 3),
        ("=== 3 passed, 1 skipped, 2 warnings in 1.02s ===", 1.0),
        ("==== 1 failed, 3 passed, 2 errors in 61.30s (0:01:01) ====", 0.5),
        ("no tests ran in 0.01s", None),
        ("3 passed the post", None),
        ("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out", 2 / 3),
        ("Tests:       1 failed, 2 skipped, 3 passed, 6 total", 0.75),
    ],
)
async def test_the_share_of_tests_is_read_from_the_summary_of_the_runner(
    tmp_path: Path, summary: str, score: float
) -> None:
    check = Command(f"sh -c {quote(f'echo {quote(summary)}; exit 1')}", sandbox=LocalSandbox(level="none"))
    assert (await judged(check, folder=tmp_path)).score == score


async def test_long_output_keeps_its_head_and_its_tail(tmp_path: Path) -> None:
    body = quote("print('first'); print('x y ' * 20000); print('last'); raise SystemExit(1)")
    feedback = await judged(Command(f"{PYTHON} -c {body}", sandbox=LocalSandbox(level="none")), folder=tmp_path)
    assert len(feedback.text) < 10_000
    assert "first" in feedback.text
    assert "last" in feedback.text
    assert "cut" in feedback.text


def test_bad_checks_are_refused() -> None:
    for check, expects, says in [
        ("", None, "is empty"),
        ("echo 'open", None, "cannot be parsed"),
        ("grep x {attempt}", "workspace", "cannot use {attempt}"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            Command(check, sandbox=LocalSandbox(level="none"), expects=expects)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("path", "noted"),
    [
        ("tests/data.json", True),
        ("pkg/test_calc.py", True),
        ("conftest.py", True),
        ("src/button.test.tsx", True),
        ("pkg/calc_test.go", True),
        ("src/latest.py", False),
        ("contest/entry.py", False),
        ("testament.txt", False),
    ],
)
async def test_an_attempt_that_changed_tests_is_noted(tmp_path: Path, path: str, noted: bool) -> None:
    check = Command(f"{PYTHON} -c pass", sandbox=LocalSandbox())
    feedback = await judged(check, f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n", tmp_path)
    assert feedback.passed is True
    assert feedback.notes == ((f"the attempt changed tests, or files that a test run reads: {path}",) if noted else ())
