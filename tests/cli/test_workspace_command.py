"""A command-line agent on a real repository, from the command line: the branch, and the user's tree as it was."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

AGENT = """
import sys
prompt = sys.stdin.read()
open("value.txt", "w").write("right" if "Say right" in prompt else "wrong")
"""
CHECK = "import sys; sys.exit(open('value.txt').read() != 'right' and 'Say right in value.txt.')"


def git(*args: str) -> str:
    return subprocess.run(["git", *args], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_branch_is_named_to_a_person_and_to_a_program(mulligan: Callable[..., Any], here: Path) -> None:
    (here / "agent.py").write_text(AGENT)
    repository = here / "repository"
    repository.mkdir()
    (repository / "value.txt").write_text("empty")
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=u", "-c", "user.email=u@e", "commit", "-qm", "x"]):
        git("-C", str(repository), *command)
    options = ("--actor", f"command:{sys.executable} {here / 'agent.py'}", "--workspace", str(repository))
    judged = ("--check", f'{sys.executable} -c "{CHECK}"')
    ended = mulligan("solve", "Make the value right.", *options, *judged)
    assert ended.status == 0, ended.err
    assert "+right" in ended.out
    (branch,) = git("-C", str(repository), "branch", "--list", "mulligan/*", "--format=%(refname:short)").split()
    assert f"The branch {branch} has the result of try 2." in ended.err
    assert git("-C", str(repository), "show", f"{branch}:value.txt") == "right"
    assert (repository / "value.txt").read_text() == "empty"
    assert git("-C", str(repository), "status", "--porcelain") == ""

    ended = mulligan("solve", "Make the value right.", *options, *judged, "--json")
    told = [json.loads(line) for line in ended.out.splitlines()]
    assert [one["event"] for one in told[-2:]] == ["notice", "result"]
    assert "The branch mulligan/" in told[-2]["text"]
