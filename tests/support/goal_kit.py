"""A folder with a goal, and the hooks of an agent there, as the agent would start them. Checks are real processes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mulligan.goals.database import Row
from mulligan.goals.setting import Wish, set_goal
from mulligan.goals.state import Goals
from mulligan.hooks.entry import respond

CHECK = """\
import pathlib, sys
wrong = [line for line in pathlib.Path("words.txt").read_text().split() if line.startswith("bad")]
for word in wrong:
    print(f"FAILED check.py::{word}")
if wrong:
    sys.exit(f"WordError: wrong words {' '.join(wrong)}")
print("all words are right")
"""


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    ran = subprocess.run(["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@dataclass
class Folder:
    """A project of git's, an own home of Mulligan's, and sessions of Claude Code in it."""

    path: Path
    home: Path

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def goal(self, check: str = "python3 check.py", **more: Any) -> Row:
        with Goals() as goals:
            store = str(self.home / "mulligan.db")
            return set_goal(goals, Wish(check, **more), str(self.path), store, "person")

    def hook(self, event: str, session: str = "s1", **more: Any) -> str:
        """What the hook prints, or the reason with which it holds the agent."""
        payload = {
            "hook_event_name": event,
            "session_id": session,
            "cwd": str(self.path),
            "transcript_path": "",
            **more,
        }
        said = respond("claude", event, json.dumps(payload).encode())
        if not said:
            return ""
        read = json.loads(said)
        return read.get("reason") or read["hookSpecificOutput"]["additionalContext"]

    def prompt(self, text: str = "Make the words right.", session: str = "s1") -> str:
        return self.hook("UserPromptSubmit", session, prompt=text)

    def stop(self, session: str = "s1", **more: Any) -> str:
        return self.hook("Stop", session, last_assistant_message="Done. All tests pass.", **more)

    def command(self, line: str, session: str = "s1") -> None:
        """The agent runs a command; what it does is done here."""
        self.hook("PreToolUse", session, tool_name="Bash", tool_input={"command": line})
        subprocess.run(["sh", "-c", line], cwd=self.path, check=False, capture_output=True, timeout=60)

    def now(self) -> Row:
        with Goals() as goals:
            found = goals.newest(os.path.realpath(self.path))
            assert found is not None
            return found

    def tries(self, session: str = "s1", agent: str = "claude") -> list[tuple[int, bool | None, bool]]:
        """Of each try its number, the verdict, and whether nothing had changed."""
        with Goals() as goals:
            found = goals.tries(self.now().id, agent, session)
        return [(one.n, None if one.passed is None else bool(one.passed), bool(one.unchanged)) for one in found]

    def work(self, session: str = "s1", agent: str = "claude") -> Row:
        with Goals() as goals:
            found = goals.work(self.now().id, agent, session)
            assert found is not None
            return found


def folder(tmp_path: Path, files: dict[str, str] | None = None) -> Folder:
    made = Folder(tmp_path / "project", tmp_path / "home")
    for name, text in (files or {"check.py": CHECK, "words.txt": "bad-one bad-two good\n"}).items():
        made.write(name, text)
    git(made.path, "init", "-q")
    git(made.path, "add", "-A")
    git(made.path, "commit", "-qm", "first")
    return made


def until(seen: Any, seconds: float = 60.0) -> Any:
    """What a function gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)  # what is waited for needs the core
    return found


def names(rows: Sequence[Row], field: str) -> list[Any]:
    return [getattr(row, field) for row in rows]
