"""A check whose test runner reported nothing is not passed, whoever made it end with status 0."""

import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from command_project import PYTEST, git, project, write
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Finding, Task, Trial
from mulligan.evaluators.command import Command
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore
from mulligan.text.evidence import evidence_of
from mulligan.text.runner_reports import Report, changed_test_files, fewer, objection, reports_of, runner_of
from mulligan.workspace.git_workspace import GitWorkspace

PYTHON = quote(sys.executable)
UNITTEST = f"{PYTHON} -m unittest -q"
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"
TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_true():\n    assert True\n"
CASES = (
    "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
    "        self.assertEqual(add(1, 2), 3)\n"
)


async def verdict(folder: Path, check: str, before: dict[str, str], attempt: dict[str, str]) -> Feedback:
    """What the check says of an attempt that writes these files, after it was run without it."""
    for name, text in before.items():
        write(folder, name, text)
    judge = Command(check, sandbox=LocalSandbox(level="none"), seconds=60)
    first = await judge.try_out(str(folder), {})
    assert first.passed is False, first.text
    for name, text in attempt.items():
        write(folder, name, text)
    diff = "".join(f"diff --git a/{name} b/{name}\n" for name in attempt)
    made = Attempt(diff, artifacts=(Artifact("git", "0" * 40, str(folder)),))
    return await judge.evaluate(Episode("e", Task("t"), trials=(Trial(1, made),)))


EXITS = "import os\nos._exit(0)\n"
EXITS_AT_END = f"import atexit, os\natexit.register(os._exit, 0)\n{WRONG}"


@pytest.mark.light_cases(2)
@pytest.mark.parametrize(
    ("check", "attempt", "passed", "why"),
    [
        (PYTEST, {"calc.py": RIGHT}, True, "status 0"),
        (PYTEST, {"calc.py": EXITS}, None, "pytest printed no summary"),
        (f"sh -c {quote(f'cd . && {PYTEST} -q')}", {"calc.py": EXITS}, None, "pytest printed no summary"),
        (PYTEST, {"calc.py": EXITS_AT_END}, None, "pytest reports failures"),
        (PYTEST, {"conftest.py": "import os\ndef pytest_configure():\n    os._exit(0)\n"}, None, "no summary"),
        (
            PYTEST,
            {"conftest.py": "import pytest\ndef pytest_collection():\n    pytest.exit('done', returncode=0)\n"},
            None,
            "no test passed",
        ),
        (f"env PYTHONPATH=. {PYTEST}", {"sitecustomize.py": EXITS}, None, "pytest printed no summary"),
        (UNITTEST, {"calc.py": RIGHT}, True, "status 0"),
        (UNITTEST, {"calc.py": EXITS}, None, "unittest printed no summary"),
        ("sh check.sh", {"check.sh": "exit 0\n"}, None, "pytest printed no summary"),
        ("make -s test", {"Makefile": "test:\n\ttrue\n"}, None, "pytest printed no summary"),
        ("sh check.sh", {"check.sh": f"{UNITTEST}\n", "calc.py": RIGHT}, True, "status 0"),
        (f"sh -c {quote(f'{PYTEST} > log || {{ cat log; exit 1; }}')}", {"calc.py": RIGHT}, True, "status 0"),
    ],
)
async def test_status_0_counts_if_the_runner_reported_as_it_did_before(
    tmp_path: Path, check: str, attempt: dict[str, str], passed: bool | None, why: str
) -> None:
    tests = CASES if "unittest" in check or "unittest" in attempt.get("check.sh", "") else TESTS
    before = {"calc.py": WRONG, "test_calc.py": tests, "check.sh": f"{PYTEST}\n", "Makefile": f"test:\n\t{PYTEST}\n"}
    feedback = await verdict(tmp_path, check, before, attempt)
    assert (feedback.passed, why in feedback.text) == (passed, True), feedback.text
    named = [name for name in attempt if name != "calc.py"]
    assert all(any(name in note for note in feedback.notes) for name in named)


async def test_a_check_whose_tool_is_missing_cannot_judge(tmp_path: Path) -> None:
    judge = Command(f"{PYTHON} -m pytets -q", sandbox=LocalSandbox(level="none"))
    feedback = await judge.try_out(str(tmp_path), {})
    assert feedback.passed is None
    assert "No module named pytets" in feedback.text
    other = Command(f"{PYTHON} -m app", sandbox=LocalSandbox(level="none"))
    assert (await other.try_out(str(tmp_path), {})).passed is False, "an attempt may have to write it"


async def test_any_other_command_is_judged_by_its_status(tmp_path: Path) -> None:
    assert (await verdict(tmp_path, "sh lint.sh", {"lint.sh": "exit 1"}, {"lint.sh": "exit 0"})).passed is True


OUTPUTS = {
    "pytest": ("=== 1 failed, 1 passed in 0.02s ===", "2 passed, 1 warning in 0.02s"),
    "pytest-sugar": (
        "Results (0.05s):\n       1 failed\n       1 passed\n         - test_x.py:3 test_a",
        "Results (0.03s):\n       2 passed",
    ),
    "stestr": (
        "Ran: 2 tests in 0.1 sec.\n - Passed: 1\n - Unexpected Success: 0\n - Failed: 1\nSum of times: 0.1 sec.",
        "Ran: 2 tests in 0.1 sec.\n - Passed: 2\n - Failed: 0",
    ),
    "ava": ("  1 test failed", "  3 tests passed"),
    "karma": ("Executed 3 of 3 (1 FAILED) (0.01 secs / 0 secs)", "Chrome 9 (Linux): Executed 3 of 3 SUCCESS (0 secs)"),
    "catch2": (
        "test cases: 2 | 1 passed | 1 failed\nassertions: 3 | 2 passed | 1 failed",
        "All tests passed (3 assertions in 2 test cases)",
    ),
    "jest": ("Tests:       1 failed, 2 passed, 3 total", "\x1b[1mTests:\x1b[22m       3 passed, 3 total"),
    "vitest": ("      Tests  1 failed | 12 passed (13)", "      Tests  13 passed (13)"),
    "mocha": ("  2 passing (5ms)\n  1 failing\n", "  3 passing (5ms)\n"),
    "node --test": ("# tests 3\n# suites 0\n# pass 2\n# fail 1", "ℹ tests 3\nℹ suites 0\nℹ pass 3\nℹ fail 0"),
    "go test": ("--- FAIL: TestX\nFAIL\nFAIL\texample.org/x\t0.002s\nFAIL", "ok  \texample.org/x\t(cached)"),
    "cargo test": (
        "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured",
        "test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: ok. 0 passed; 0 failed; 0 ignored",
    ),
    "maven": (
        "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
    ),
    "gradle": ("> Task :test FAILED\nBUILD FAILED in 3s", "> Task :test\nBUILD SUCCESSFUL in 3s"),
    "rspec": ("3 examples, 1 failure", "3 examples, 0 failures"),
    "minitest": ("3 runs, 3 assertions, 1 failures, 0 errors, 0 skips", "3 runs, 3 assertions, 0 failures, 0 errors"),
    "phpunit": ("FAILURES!\nTests: 3, Assertions: 3, Failures: 1.", "OK (3 tests, 5 assertions)"),
    "dotnet test": (
        "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3, Duration: 5 ms",
        "Test summary: total: 3, failed: 0, succeeded: 3, skipped: 0, duration: 1.2s",
    ),
    "ctest": ("67% tests passed, 1 tests failed out of 3", "100% tests passed, 0 tests failed out of 3"),
    "bun test": (" 2 pass\n 1 fail\nRan 3 tests across 1 file. [5ms]", " 3 pass\n 0 fail\nRan 3 tests across 1 file."),
    "deno test": ("FAILED | 2 passed | 1 failed (5ms)", "ok | 3 passed | 0 failed (5ms)"),
    "pre-commit": ("tests........(no cache)Failed\n- hook id: tests", "tests........................Passed"),
}


@each_row("runner", OUTPUTS)
def test_summaries_of_runners(runner: str) -> None:
    failing, passing = map(reports_of, OUTPUTS[runner])
    assert [(one.runner, one.failing) for one in (*failing, *passing)] == [(runner, True), (runner, False)]
    assert passing[0].passed
    assert objection(failing, passing, ()) == ""
    assert "no summary" in objection(failing, (), ())
    assert "reports failures" in objection(failing, failing, ())


@each_row(
    ("runner", "before", "now"),
    [
        (
            "unittest",
            "Ran 2 tests in 0.1s\n\nFAILED (failures=1, successes=1)",
            "Ran 2 tests in 0.1s\n\nPASSED (successes=2)",
        ),
        (
            "unittest",
            "Ran 2 tests in 0.1s using 4 processes\n\nFAILED (errors=1)",
            "Ran 2 tests in 0.1s using 4 processes\n\nOK",
        ),
        ("node --test", "# tests 3\n# pass  2\n# fail  1", "# tests 3\n# pass  3\n\n# ok"),
        ("pytest", "web-1  | 1 failed in 0.1s", "web-1  | 1 passed in 0.1s"),
        ("jest", "web:test: Tests:       1 failed, 1 total", "web:test: Tests:       1 passed, 1 total"),
        ("pytest", "[0] 1 failed in 0.1s", "[0] 1 passed in 0.1s"),
        ("pytest", "2026-01-02T03:04:05.6Z 1 failed in 0.1s", "2026-01-02T03:05:05.6Z 1 passed in 0.1s"),
        ("pytest", "2026-01-02T03:04:05-05:00 1 failed in 0.1s", "2026-01-02T03:05:05-05:00 1 passed in 0.1s"),
    ],
)
def test_summaries_in_other_forms(runner: str, before: str, now: str) -> None:
    failing, passing = reports_of(before), reports_of(now)
    assert [(one.runner, one.failing) for one in (*failing, *passing)] == [(runner, True), (runner, False)]
    assert objection(failing, passing, ()) == ""
    assert "no summary" in objection(failing, (), ())


@each_row(
    "output",
    [
        "3 deselected in 0.01s",
        "3 skipped in 0.01s",
        "2 xfailed in 0.01s",
        "no tests ran in 0.01s",
        "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
        "Ran 3 tests in 0.001s\n\nOK (skipped=3)",
        "Tests:       3 skipped, 3 total",
        "# Subtest: /p/a.test.js\nok 1 - /p/a.test.js\n# tests 1\n# pass 1\n# fail 0",
        "✔ a.test.js (41.2ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0",
        "ok  \texample.org/x\t0.01s [no tests to run]",
    ],
)
def test_a_summary_of_no_test_is_no_success(output: str) -> None:
    assert "no test passed" in objection([Report("pytest", 0, 2)], reports_of(output), ())


def test_what_a_runner_prints_only_on_failure_is_not_missed() -> None:
    assert reports_of("[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0") == ()  # mvn -q
    assert reports_of("3 tests completed, 1 failed\nBUILD FAILED in 3s") == ()  # gradle -q
    within = reports_of("1 failed in 0.1s\n0% tests passed, 1 tests failed out of 1")  # ctest --output-on-failure
    assert [(one.runner, one.last) for one in within] == [("pytest", False), ("ctest", True)]
    assert objection(within, reports_of("100% tests passed, 0 tests failed out of 1"), ()) == ""


def test_fewer_tests_are_named() -> None:
    assert fewer([Report("pytest", 1, 2)], [Report("pytest", 2)]) == "pytest reports 2 tests, and reported 3 before"
    assert fewer([Report("pytest", 1, 2)], [Report("pytest", 3)]) == ""


@given(st.lists(st.sampled_from([*sum(OUTPUTS.values(), ()), "text", "...", "\n", "\r", "Ran 3 tests in 1s"])))
def test_any_output_is_read_and_only_the_last_summary_is_the_last(parts: list[str]) -> None:
    reports = reports_of("\n".join(parts))
    assert sum(one.last for one in reports) == bool(reports)
    assert all((one.passed or 0) >= 0 and one.failed >= 0 for one in reports)


@given(st.text(alphabet=".F=[]()0123456789 pased,in\n\t|:%✔#", max_size=300))
def test_text_of_any_kind_is_read(text: str) -> None:
    reports_of(text)


@each_row(
    ("argv", "runner"),
    [
        (["pytest", "-q"], "pytest"),
        (["/usr/bin/python3", "-X", "dev", "-m", "pytest"], ""),
        (["env", "A=1", "uv", "run", "python", "-m", "pytest", "-x"], "pytest"),
        (["poetry", "run", "pytest"], "pytest"),
        (["bash", "-c", "cd app && python -m unittest"], "unittest"),
        (["cargo", "test", "--workspace"], "cargo test"),
        (["npx", "jest"], "jest"),
        (["pytest", "-qq"], ""),
        (["pytest", "--collect-only"], ""),
        (["sh", "-c", "pytest > log"], ""),
        (["sh", "-c", "pytest | tee log"], ""),
        (["make", "test"], ""),
        (["python", "-c", "print('pytest')"], ""),
    ],
)
def test_without_a_run_before_the_command_line_names_the_runner(argv: list[str], runner: str) -> None:
    assert runner_of(argv) == runner


async def test_a_text_that_ends_its_test_run_is_not_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    judge = Command(f"{PYTHON} -m unittest -q {{attempt}}", sandbox=LocalSandbox(), expects="code")
    attempt = Trial(1, Attempt("import os\nos._exit(0)\n"))
    feedback = await judge.evaluate(Episode("e", Task("t"), trials=(attempt,)))
    assert feedback.passed is None
    assert "unittest printed no summary" in feedback.text
    told = Command(f"{PYTHON} -m unittest -q {{attempt}}", sandbox=LocalSandbox(), expects="code", summary=False)
    assert (await told.evaluate(Episode("e", Task("t"), trials=(attempt,)))).passed is True


@each_row(
    ("path", "check"),
    [
        ("scripts/judge.sh", ["sh", "scripts/judge.sh"]),
        ("app/judge.py", ["sh", "-c", "cd app && ./judge.py --all"]),
        ("tools/check.py", ["python", "-m", "tools.check"]),
        ("cases/numbers.py", ["pytest", "cases/numbers.py::test_one"]),
        *(
            (name, ["make"])
            for name in (
                *("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", "sitecustomize.py", "lib/a.pth", "Makefile"),
                *("jest.config.ts", "web/vitest.config.mjs", "package.json", "Cargo.toml", ".cargo/config.toml"),
                *(
                    "pom.xml",
                    "build.gradle.kts",
                    "CMakeLists.txt",
                    "pytest/__init__.py",
                    ".mocharc.json",
                    "pkg/x_test.go",
                ),
            )
        ),
    ],
)
def test_files_that_a_test_run_reads_are_named(path: str, check: list[str]) -> None:
    diff = f"diff --git a/src/x.py b/src/x.py\n+diff\ndiff --git a/{path} b/{path}\n"
    assert changed_test_files(diff, check) == [path]
    assert changed_test_files("diff --git a/tests/a.py b/notes.txt\n", check) == ["tests/a.py"], "it was moved away"


AGENT = """import sys, os
os.makedirs("tests", exist_ok=True)
open("tests/test_sums.py", "w").write("def test_add():\\n    pass\\n")
open("tests/conftest.py", "w").write("import os\\nos._exit(0)\\n")
open(".gitignore", "a").write("tests/hidden_test.py\\n")
open("tests/hidden_test.py", "w").write("def test_hidden():\\n    assert False\\n")
if "1 failed" in sys.stdin.read():
    open("calc.py", "w").write("def add(a, b):\\n    return a + b\\n")
"""


def protected_project(tmp_path: Path) -> tuple[Path, str]:
    folder = project(tmp_path / "user")
    for name, text in {"calc.py": WRONG, "tests/test_sums.py": TESTS, "check.py": "", "test_calc.py": ""}.items():
        write(folder, name, text)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "tests")
    write(tmp_path, "agent.py", AGENT)
    return folder, f"command:{PYTHON} {quote(str(tmp_path / 'agent.py'))}"


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("mode", ["worktree", "copy"])
async def test_protected_files_are_judged_as_they_were(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # where a patch is left
    folder, actor = protected_project(tmp_path)
    settings = {"workspace": {"mode": mode, "protect": ["tests/"]}}
    store = SqliteStore(tmp_path / "store.db")
    check = f"env PYTHONPATH=. {PYTEST}"
    episode = await mulligan.solve(
        "Correct add.", actor=actor, check=check, workspace=folder, settings=settings, trials=3, store=store
    )
    assert [trial.feedback and trial.feedback.passed for trial in episode.trials] == [False, True]
    last = episode.trials[-1]
    assert last.feedback is not None
    assert (
        "protected files as they were before the first trial: tests/conftest.py, tests/hidden_test.py, "
        "tests/test_sums.py" in (last.feedback.notes[-1])
    )
    assert "tests/conftest.py" in last.attempt.output, "what the agent made is in its state"
    assert {row.key for row in await store.steps(episode.id)} >= {"baseline#1"}
    assert (folder / "tests" / "test_sums.py").read_text() == TESTS
    await store.close()


@pytest.mark.slow
async def test_what_cannot_be_protected_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # where a patch is left
    folder, actor = protected_project(tmp_path)
    for settings, says in [
        ({"protect": ["tests"], "mode": "in_place"}, "use mode worktree or copy"),
        ({"protect": ["no/such"]}, "'no/such'"),
        ({"protect": ["."]}, "not '.'"),
        ({"protect": ["../elsewhere"]}, "inside"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            await mulligan.solve(
                "t", actor=actor, check=PYTEST, workspace=folder, settings={"workspace": settings}, trials=1
            )


@pytest.mark.slow
async def test_a_run_that_is_resumed_knows_what_was_reported_before_its_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)  # where a patch is left
    folder, actor = protected_project(tmp_path)
    write(folder, "Makefile", f"test:\n\tenv PYTHONPATH=. {PYTEST}\n")
    store = SqliteStore(tmp_path / "store.db")
    options: Any = {"actor": actor, "check": "make -s test", "workspace": folder, "trials": 1, "store": store}
    episode = await mulligan.solve("Correct add.", **options)
    assert episode.trials[0].feedback is not None
    assert episode.trials[0].feedback.passed is None
    again = await mulligan.resume(episode.run, fork=True, limits={"trials": 2}, store=store)
    assert again.trials[-1].feedback is not None
    assert again.trials[-1].feedback.passed is None
    assert "pytest printed no summary" in again.trials[-1].feedback.text
    await store.close()


async def test_changed_tests_are_named_in_a_change_that_is_too_long_to_be_kept(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    workspace, episode = GitWorkspace(folder=str(folder), data=str(tmp_path / "data")), Episode("e1", Task("t"))
    place = await workspace.open(episode)
    write(place.folder, "a.txt", "a line of text\n" * 10_000)
    write(place.folder, "tests/z_test.py", "")
    state, _ = await place.save(1, place.start)
    assert changed_test_files(await place.diff(state), ["make"]) == ["tests/z_test.py"]
    await workspace.close(episode)


async def test_a_first_try_that_hangs_does_not_make_a_missing_summary_acceptable(tmp_path: Path) -> None:
    judge = Command("python -m unittest -q", sandbox=LocalSandbox(level="none"), seconds=60)
    hung = Feedback(False, "stopped", source="command", evidence=evidence_of([Finding("python -m unittest -q")]))
    write(tmp_path, "test_calc.py", EXITS)
    made = Attempt("", artifacts=(Artifact("git", "0" * 40, str(tmp_path)),))
    episode = Episode("e", Task("t"), trials=(Trial(1, made, hung), Trial(2, made)))
    assert (await judge.evaluate(episode)).passed is None
