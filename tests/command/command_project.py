"""A small git project with three failing tests, an agent that is a script, and the way to run an episode on both."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from mulligan.actors.command import Command as Agent
from mulligan.app.prompts import FilePrompts
from mulligan.core.episode import Event, advance
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.protocols import Journal, Strategy
from mulligan.core.records import Episode, Feedback, Plan, Reflection, Task
from mulligan.evaluators.command import Command as Check
from mulligan.recording.journal import NoJournal
from mulligan.sandbox.local import LocalSandbox
from mulligan.strategies.reflexion import Reflexion
from mulligan.workspace.git_workspace import GitWorkspace, Mode

PYTEST = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {quote(sys.executable)} -m pytest -q -p no:cacheprovider"
CHECK = f"{quote(sys.executable)} check.py"
LIGHT = """import sys, test_calc
failed = 0
for name in [n for n in dir(test_calc) if n.startswith("test_")]:
    try:
        getattr(test_calc, name)()
    except Exception as error:
        failed += 1
        print("FAILED", name, repr(error))
print(f"{failed} failed, {3 - failed} passed in 0.01s" if failed else "3 passed in 0.01s")
sys.exit(failed > 0)
"""
CALC = "def add(a, b):\n    return 0\n\n\ndef sub(a, b):\n    return 0\n\n\ndef mul(a, b):\n    return 0\n"
TESTS = """import calc


def test_add():
    assert calc.add(2, 3) == 5


def test_sub():
    assert calc.sub(5, 3) == 2


def test_mul():
    assert calc.mul(2, 3) == 6
"""
MENDS_ONE = '''"""Mends the first broken function, and undoes the last mended one unless the prompt forbids it."""
import re, sys
prompt = sys.stdin.read()
text = open("calc.py").read()
good = {"add": "a + b", "sub": "a - b", "mul": "a * b"}
def body(name, value):
    global text
    text = re.sub(rf"(def {name}\\(a, b\\):\\n    return ).*", lambda m: m[1] + value, text)
mended = [n for n, v in good.items() if f"def {n}(a, b):\\n    return {v}" in text]
broken = [n for n in good if n not in mended]
if mended and "leave what works" not in prompt:
    body(mended[-1], "0")
body(broken[0], good[broken[0]])
open("calc.py", "w").write(text)
print("mended", broken[0])
'''


Keep = Callable[[int, Event], Awaitable[None]]


def git(folder: Path, *args: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=U", "-c", "user.email=u@example.org", "-c", "protocol.file.allow=always")
    ran = subprocess.run(["git", *who, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def project(folder: Path) -> Path:
    """The three failing tests, committed."""
    folder.mkdir(parents=True)
    (folder / "calc.py").write_text(CALC)
    (folder / "test_calc.py").write_text(TESTS)
    (folder / "check.py").write_text(LIGHT)
    (folder / ".gitignore").write_text("__pycache__/\n.venv/\nnode_modules/\n*.ignored\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "start")
    return folder


def image(folder: Path) -> dict[str, str]:
    """Every path below the folder with its mode and content, the repository included but for objects and our refs."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".git/objects", ".git/refs/mulligan", ".git/worktrees", ".git/refs/heads/mulligan")):
            continue
        about = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content if isinstance(content, bytes) else os.fsencode(content)).hexdigest()
        found[name] = f"{about.st_mode:o} {digest} {about.st_mtime_ns if path.is_file() else ''}"
    return found


class Tells:
    """A reflector that draws its lesson once an attempt undid what had worked."""

    async def reflect(self, episode: Episode) -> Reflection | None:
        shares = [trial.feedback.score if trial.feedback else None for trial in episode.trials]
        undone = len(shares) > 1 and shares[-1] == shares[-2]
        return Reflection("Mend one more and leave what works as it is." if undone else "Mend the next function.")


@dataclass
class Bench:
    """All that an episode needs. `agent` is the source of a Python script, run with the prompt on standard input."""

    tmp: Path
    folder: Path
    agent: str = MENDS_ONE
    mode: Mode = "worktree"
    check: str = CHECK
    level: str = "none"
    trials: int = 6
    strategy: Strategy = field(default_factory=Reflexion)
    journal: Journal = field(default_factory=NoJournal)
    place: dict[str, Any] = field(default_factory=dict[str, Any])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[Event] = field(default_factory=list[Event])

    def __post_init__(self) -> None:
        self.workspace = GitWorkspace(
            folder=str(self.folder), mode=self.mode, data=str(self.tmp / "data"), **self.place
        )
        self.sandbox = LocalSandbox(level=self.level)
        script = self.tmp / "agent.py"
        script.write_text(self.agent)
        self.command = f"{quote(sys.executable)} {quote(str(script))}"
        self.judge = Check(self.check, sandbox=self.sandbox, seconds=60)

    def actor(self) -> Agent:
        return Agent(
            self.settings.get("command", self.command),
            workspace=self.workspace,
            journal=self.journal,
            sandbox=self.sandbox,
            prompts=FilePrompts(),
            seconds=self.settings.get("seconds", 60),
            fresh=self.settings.get("fresh", False),
            writable=self.settings.get("writable"),
        )

    def episode(self, name: str = "e1") -> Episode:
        return Episode(name, Task("Make the failing tests pass."), run="r1", plan=Plan(reflects=self.strategy.reflects))

    async def solve(
        self, episode: Episode | None = None, trials: int | None = None, keep: Keep | None = None
    ) -> Episode:
        episode = episode or self.episode()

        async def record(event: Event) -> Episode:
            nonlocal episode
            assert episode
            after = advance(episode, event)
            if keep:
                await keep(len(self.events), event)
            self.events.append(event)
            episode = after
            return after

        roles = Roles(self.actor(), self.judge, Tells(), self.strategy)
        limits = Limits(trials=trials or self.trials, identical=None)
        return await drive(episode, roles, limits, record, Meter())


def observed(episode: Episode) -> Sequence[str]:
    return [trial.attempt.steps[0].observation for trial in episode.trials]


def scores(episode: Episode) -> list[float | None]:
    return [trial.feedback.score if trial.feedback else None for trial in episode.trials]


def stopped(episode: Episode) -> str:
    """Why, and the sentence that says it."""
    return f"{episode.stop.reason}: {episode.stop.detail}" if episode.stop else "goes on"


def halted(episode: Episode) -> list[str | None]:
    return [trial.attempt.outcome.halted if trial.attempt.outcome else None for trial in episode.trials]


def judgement(episode: Episode, number: int = 1) -> Feedback:
    feedback = episode.trials[number - 1].feedback
    assert feedback is not None
    return feedback


def files(folder: str | Path) -> dict[str, bytes]:
    """The content of all files but git's own, links followed."""
    top = Path(folder)
    found = [p for p in top.rglob("*") if p.is_file() and ".git" not in p.relative_to(top).parts]
    return {str(p.relative_to(top)): p.read_bytes() for p in found}


def write(folder: str | Path, name: str, text: str, mode: int = 0o644) -> None:
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def running(folder: Path) -> list[str]:
    """The command lines of processes whose working folder is this one or inside it (Linux)."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            if Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(folder):
                found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            continue
    return found
