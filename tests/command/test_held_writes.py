"""Where the kernel has Landlock, an agent and a check write to their own folders and to nothing else of the user's."""

import json
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from command_project import Bench, git, image, judgement, observed, project, running, stopped, write

from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.command import Command as Check
from mulligan.sandbox import kernel, landlock
from mulligan.sandbox.local import LocalSandbox

pytestmark = pytest.mark.skipif(
    kernel.landlock_abi() < landlock.WRITES_SINCE, reason="holding writes needs Linux 5.19 with Landlock"
)

TRIES = """
import errno, json, os, subprocess, sys, tempfile
def put(path):
    with open(path, "w") as file: file.write("x")
def tried(do):
    try: do()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
def commit():
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for args in (("add", "-A"), (*who, "commit", "-qm", "mine")):
        ran = subprocess.run(["git", *args], capture_output=True, text=True)
        if ran.returncode: sys.exit(ran.stderr)
"""
REFUSED = """
print(json.dumps({
    "change": tried(lambda: put(user + "/calc.py")), "make": tried(lambda: put(user + "/new.txt")),
    "remove": tried(lambda: os.unlink(user + "/calc.py")), "folder": tried(lambda: os.mkdir(user + "/new")),
    "rename": tried(lambda: os.rename(user + "/calc.py", user + "/other.py")),
    "carry off": tried(lambda: os.rename(user + "/calc.py", "other.py")),
    "shorten": tried(lambda: os.truncate(user + "/calc.py", 0)),
    "a ref": tried(lambda: put(user + "/.git/refs/heads/mine")), "settings": tried(lambda: put(user + "/.git/config")),
    "outside": tried(lambda: put(outside + "/x")), "home": tried(lambda: put(os.path.expanduser("~/x"))),
    "linked": tried(lambda: put(".venv/x")),
}))
"""
ALLOWED = """
os.mkdir("one"); os.mkdir("two"); put("one/x")
print(json.dumps({
    "tree": tried(lambda: put("calc.py")), "between folders": tried(lambda: os.rename("one/x", "two/x")),
    "commit": tried(commit), "temporary": tried(lambda: tempfile.TemporaryFile().close()),
    "state": tried(lambda: put(os.path.expanduser("~/.claude/x"))), "null": tried(lambda: put("/dev/null")),
    "stderr": tried(lambda: put("/dev/stderr")), "read": tried(lambda: open(user + "/calc.py").close()),
}))
print(os.path.expanduser("~"), os.environ["TMPDIR"] == os.environ["CLAUDE_CODE_TMPDIR"])
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A project with a virtual environment, and a home with the folder of an agent's state."""
    folder = project(tmp_path / "user")
    for path in (folder / ".venv", tmp_path / "outside", tmp_path / "home" / ".claude"):
        path.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Bench(tmp_path, folder, level="auto", trials=1)


async def said(bench: Bench, does: str) -> list[str]:
    """What an agent that does this prints, by lines."""
    known = f"user, outside = {str(bench.folder)!r}, {str(bench.tmp / 'outside')!r}\n"
    write(bench.tmp, "agent.py", TRIES + known + does)
    episode = await bench.solve()
    assert stopped(episode).startswith("exhausted")
    return observed(episode)[0].splitlines()


async def test_an_agent_cannot_write_to_the_users_tree_or_elsewhere(bench: Bench) -> None:
    before = image(bench.folder)
    (tried,) = await said(bench, REFUSED)
    got: dict[str, Any] = json.loads(tried)
    assert set(got.values()) == {"EACCES"}, got
    assert len(got) == 12
    assert image(bench.folder) == before


@pytest.mark.slow
async def test_an_agent_works_in_its_tree_with_git_temporary_files_and_its_own_state(bench: Bench) -> None:
    tried, about, *_ = await said(bench, ALLOWED)
    got: dict[str, Any] = json.loads(tried)
    assert set(got.values()) == {"done"}, got
    assert about == f"{bench.tmp / 'home'} True"
    assert (bench.tmp / "home" / ".claude" / "x").exists()
    assert git(bench.folder, "rev-list", "--count", "main").strip() == "1"


@pytest.mark.slow
async def test_the_users_own_list_takes_the_place_of_the_usual_folders(bench: Bench) -> None:
    bench.settings["writable"] = [str(bench.tmp / "outside"), "~/not-there"]
    both = 'print(tried(lambda: put(outside + "/x")), tried(lambda: put(os.path.expanduser("~/.claude/x"))))'
    assert await said(bench, both) == ["done EACCES"]


async def test_a_linked_worktree_in_which_one_works_in_place_takes_commits(bench: Bench) -> None:
    git(bench.folder, "worktree", "add", "-q", str(bench.tmp / "linked"), "-b", "side")
    linked = Bench(bench.tmp, bench.tmp / "linked", level="auto", mode="in_place", trials=1)
    assert await said(linked, 'print(tried(lambda: put("mine")), tried(commit))') == ["done done"]


async def judged(does: str, folder: Path) -> Feedback:
    check = Check(f"{quote(sys.executable)} -c {quote(does)}", sandbox=LocalSandbox())
    attempt = Attempt("", artifacts=(Artifact("git", "0" * 40, str(folder)),))
    return await check.evaluate(Episode("e", Task("t"), trials=(Trial(1, attempt),)))


async def test_a_check_writes_to_the_whole_tree_and_to_caches_but_not_beside(bench: Bench) -> None:
    (bench.folder / "part").mkdir()
    (bench.tmp / "home" / ".cache").mkdir()
    fine = f"{TRIES}\nput('here'); put('../top'); put(os.path.expanduser('~/.cache/x')); tempfile.TemporaryFile()"
    feedback = await judged(fine, bench.folder / "part")
    assert feedback.passed is True, feedback.text
    refused = await judged(f"open({str(bench.tmp / 'outside' / 'x')!r}, 'w')", bench.folder / "part")
    assert refused.passed is False
    assert "PermissionError" in refused.text
    assert "the folders of its setting `writable`" in refused.text


@pytest.mark.slow
async def test_an_agent_that_is_held_is_stopped_in_time_with_its_children(bench: Bench) -> None:
    bench.settings["seconds"] = 1
    forks = "import time\nput('seen')\nif os.fork() == 0: os.setsid()\ntime.sleep(600)"
    write(bench.tmp, "agent.py", TRIES + forks)
    episode = await bench.solve()
    assert "+x" in episode.trials[0].attempt.output
    assert "stopped after 1 second." in judgement(episode).text
    assert running(bench.tmp) == []
