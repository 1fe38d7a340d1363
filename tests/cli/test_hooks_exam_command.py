"""`mulligan hooks exam` replays sessions, and leaves no trace."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import in_format

Run = Callable[..., Any]
FAILS: tuple[Any, ...] = ("sh", "pytest tests", "E   ModuleNotFoundError: No module named 'yaml'", 1)
STORY = (("user", "Test it."), FAILS, ("sh", "pip install pyyaml", "ok", 0), ("sh", "pytest tests", "1 passed", 0))

BROKEN = """
class Broken:
    def learn(self, episode): ...

    def recall(self, task):
        raise KeyError("no shelf")
"""


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (project := tmp_path / "project").mkdir()
    monkeypatch.chdir(project)
    folder = tmp_path / ".claude/projects/p"
    folder.mkdir(parents=True)
    for n in (1, 2, 3):
        file = folder / f"s{n}.jsonl"
        file.write_text(in_format("claude", STORY, folder=str(project), session=f"s{n}"))
        at = file.stat().st_mtime - 100 + n
        os.utime(file, (at, at))
    return project


def test_what_an_earlier_session_overcame_is_counted_as_shown_and_done(mulligan: Run, sessions: Path) -> None:
    exam = json.loads(mulligan("hooks", "exam", "--json").out)
    counts = ("sessions", "failures", "known", "shown", "done", "confirmed")
    assert [exam[name] for name in counts] == [3, 3, 2, 2, 2, 1]
    assert exam["titles"] == ["pytest: ModuleNotFoundError: No module named 'yaml'"]
    assert "2 of 3 (67 %)" in mulligan("hooks", "exam").out
    assert "0 kept, 0 candidates" in mulligan("hooks", "status").out, "nothing is learned"


def test_where_there_are_no_sessions_it_says_where_to_look(mulligan: Run, tmp_path: Path, sessions: Path) -> None:
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    assert "--all-projects" in mulligan("hooks", "exam").err
    assert mulligan("hooks", "exam", "--since", "soon").status == 2


@pytest.mark.slow
def test_the_exam_of_memories_replays_them_with_each_memory(mulligan: Run, sessions: Path) -> None:
    Path("broken.py").write_text(BROKEN)
    options = ("--memories", "markdown,./broken.py", "--streams", "game", "--tasks", "2", "--orders", "1", "-q")
    ran = mulligan("bench", "exam", *options, "--into", "report", "--format", "json")
    exam = json.loads(ran.out)
    counts = ("sessions", "failures", "known", "shown", "needless", "done")
    assert [exam["sessions"]["hooks"][name] for name in counts] == [3, 3, 2, 2, 0, 2]
    assert [exam["sessions"]["markdown"][name] for name in counts] == [3, 3, 2, 2, 0, 2]
    assert sorted(os.listdir("report")) == ["cases.csv", "report.json", "report.md"]
    assert ran.status == 3
    assert "broken failed on your sessions: KeyError: 'no shelf'" in ran.err
    assert list(exam["sessions"]) == ["hooks", "markdown"]
    page = Path("report/report.md").read_text()
    assert "2 of 3 (21% to 94%)" in page
    assert "broken failed: " in page
    assert "broken.py, line 6" in page
    assert "at least one stream" in mulligan("bench", "exam", "--streams", "").err
