"""The command in this process and as a process of its own, with a judge and a script that need no model."""

import subprocess
import sys
from pathlib import Path

import pytest
from commands import Ended, Mulligan

from mulligan.cli.main import main

JUDGE = '''
from mulligan.core.records import Feedback

class Judge:
    expects = "text"

    async def evaluate(self, episode):
        """Passes what says "right", cannot judge what says "unclear"."""
        said = episode.trials[-1].attempt.output
        if "unclear" in said:
            return Feedback(None, "there is nothing to judge")
        return Feedback("right" in said, f"it says {said}", score=float(len(said)), source="judge", notes=("by a toy",))
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with judge.py and three scripts: second.txt, never.txt, unclear.txt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "second.txt").write_text("wrong\n---\nSay right.\n---\nright")
    (tmp_path / "never.txt").write_text("wrong\n---\nlonger, but wrong\n---\nbad")
    (tmp_path / "unclear.txt").write_text("unclear\n---\nas unclear")
    return tmp_path


@pytest.fixture
def mulligan(here: Path, capsys: pytest.CaptureFixture[str]) -> Mulligan:
    """Runs the command in this process."""

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def process(here: Path) -> Mulligan:
    """Runs the command as a process of its own, with the environment of the test."""

    def run(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Ended:
        ran = subprocess.run(
            [sys.executable, "-m", "mulligan", *arguments],
            input=stdin,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr)

    return run


@pytest.fixture
def second() -> tuple[str, ...]:
    """A command that is solved on try 2, with a reflection between."""
    named = ("--evaluator", "./judge.py", "--model", "scripted:second.txt", "--strategy", "reflexion")
    return ("solve", "say it", *named)
