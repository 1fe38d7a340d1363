"""The outside suite of conformance tests of the protocol's maintainers, over HTTP, in both kinds of revision.

Most of its scenarios call tools of their own, which no real server has: what it then misses stands in conformance.yml,
check by check. The suite fails on anything else, and on a line there that has come to pass.
"""

import re
import subprocess
from pathlib import Path

import pytest
from node_clients import find_node, shared_package
from serving import served

pytestmark = pytest.mark.slow
SUITE, VERSION = "@modelcontextprotocol/conformance", "0.2.0-alpha.12"
"""The newest, and the first series that knows 2026-07-28."""
BASELINE = Path(__file__).with_name("conformance.yml")
SECONDS = 120.0


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    node, _ = find_node()
    folder = shared_package("conformance", SUITE, VERSION, tmp_path_factory.mktemp("conformance"))
    return [str(node), str(folder / "node_modules" / SUITE / "dist" / "index.js"), "server"]


RUNS = {
    "2025-11-25": ("--suite", "all", "--spec-version", "2025-11-25"),
    "2026-07-28": ("--suite", "all", "--spec-version", "2026-07-28"),
    "who gets tasks": ("--scenario", "tasks-capability-negotiation"),
    "answers about tasks": ("--scenario", "tasks-dispatch-and-envelope"),
}
"""Those of the Tasks extension whose checks do not all need tools of the suite."""


@pytest.mark.parametrize(("run", "least"), list(zip(RUNS, (40, 90, 4, 7), strict=True)))
def test_the_suite_finds_nothing_that_is_not_known(suite: list[str], tmp_path: Path, run: str, least: int) -> None:
    (tmp_path / "script.json").write_text('["42"]')
    with served("--model", f"scripted:{tmp_path / 'script.json'}", "--rate", "0", transport="http") as server:
        wanted = (*RUNS[run], "--expected-failures", str(BASELINE))
        ran = subprocess.run(
            [*suite, "--url", server.url, *wanted, "-o", str(tmp_path / "results")],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=tmp_path,
        )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    passed = re.findall(r"^(?:Total|Passed): (\d+)", ran.stdout, re.MULTILINE)
    assert int(passed[-1]) >= least, "the suite ran"
