"""The checks that tests/conftest.py makes of a whole run, tried on a run of their own, with workers and without."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(4))
def test_it_passes(n):
    pass

def test_it_needs_what_may_be_absent():
    pytest.skip("needs rustc")
"""

NOT_LISTED = """
def test_it_is_skipped():
    pytest.skip("no time today")
"""

MODULE = """
import pytest
pytest.skip("not this file", allow_module_level=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_in_ci_a_skip_that_is_not_listed_fails_the_run(tmp_path: Path, workers: str) -> None:
    for name in ("conftest.py", "allowed_skips.txt"):
        shutil.copy(HERE / name, tmp_path / name)

    def run(**env: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", workers]
        environment = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
        ran = subprocess.run(
            command, cwd=tmp_path, env={**environment, **env}, capture_output=True, text=True, timeout=120, check=False
        )
        return ran.returncode, ran.stdout

    (tmp_path / "test_listed.py").write_text(TESTS)
    assert run(CI="true")[0] == 0
    (tmp_path / "test_not_listed.py").write_text(f"import pytest\n{NOT_LISTED}")
    status, said = run(CI="true")
    assert status == 1
    reasons = "was skipped for a reason that is not in tests/allowed_skips.txt"
    assert f"test_not_listed.py::test_it_is_skipped {reasons}: Skipped: no time today" in said
    assert said.count("FAILED") == 1
    (tmp_path / "test_module.py").write_text(MODULE)
    status, said = run(CI="true")
    assert status != 0
    assert f"test_module.py {reasons}: Skipped: not this file" in said
    assert run()[0] == 0, "on a machine of one's own anything may be skipped"
