"""Small programs in the manner of course exercises (`course/*.txt`): code, tests that pass in plain Python, a mistake.

As a program, reads a list of [code, tests] as JSON and writes for each what plain Python says of it: "" or the failure.

    python tests/unit_tests/course_programs.py < pairs.json
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

COURSE = Path(__file__).parent / "course"


@dataclass(frozen=True)
class Program:
    name: str
    code: str
    tests: str
    mistaken: str


def programs(folder: Path = COURSE, pattern: str = "*.txt") -> list[Program]:
    """Each begins with a line `# name`; then the code, `-- tests`, the tests, and `-- mistake: old ==> new`."""
    found: list[Program] = []
    for file in sorted(folder.glob(pattern)):
        for part in ("\n" + file.read_text(encoding="utf-8")).split("\n# ")[1:]:
            name, _, rest = part.partition("\n")
            code, _, rest = rest.partition("\n-- tests\n")
            tests, _, mistake = rest.partition("\n-- mistake: ")
            old, _, new = mistake.strip("\n").partition(" ==> ")
            assert code.count(old) >= 1, f"{name}: the code lacks {old!r}"
            found.append(Program(name, code + "\n", tests + "\n", code.replace(old, new, 1) + "\n"))
    return found


def plain(pairs: list[tuple[str, str]]) -> list[str]:
    """What plain Python says of each: pytest runs the test file, where `solution` is the code. "" when it passed."""
    ran = subprocess.run(
        [sys.executable, __file__], input=json.dumps(pairs), capture_output=True, text=True, timeout=300, check=True
    )
    return json.loads(ran.stdout.rpartition("\n===\n")[2])


PREAMBLE = """\
import signal, sys, types
def _ring(*_): raise TimeoutError("took too long")
signal.signal(signal.SIGALRM, _ring)
signal.alarm(5)
sys.modules["solution"] = _solution = types.ModuleType("solution")
exec(compile({code!r}, "solution.py", "exec"), _solution.__dict__)
from solution import *
"""


class _Reports:
    """What failed in each file. A test has five seconds."""

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.setdefault(Path(report.nodeid).stem, str(report.longrepr))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        signal.alarm(5)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.setdefault(Path(report.nodeid.partition("::")[0]).stem, str(report.longrepr))


def _said(pairs: list[tuple[str, str]]) -> list[str]:
    reports = _Reports()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (code, tests) in enumerate(pairs):
            text = PREAMBLE.format(code=code) + tests
            Path(f"test_{number}.py").write_text(text, encoding="utf-8")
        options = ("-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "--assert=plain", "--import-mode=importlib")
        pytest.main([*options, "--continue-on-collection-errors", "-W", "ignore", folder], plugins=[reports])
        signal.alarm(0)
        os.chdir("/")
    return [reports.failed.get(f"test_{number}", "") for number in range(len(pairs))]


if __name__ == "__main__":
    result = _said(json.load(sys.stdin))
    print("\n===")
    print(json.dumps(result), end="")
