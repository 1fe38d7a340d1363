from pathlib import Path

import pytest
from goal_kit import Folder, folder

from mulligan.goals.person import MARKS


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    for name in ("MULLIGAN_STORE", "MULLIGAN_HOOKS", "MULLIGAN_GOAL_RUN", "CLAUDE_PROJECT_DIR", *MARKS):
        monkeypatch.delenv(name, raising=False)
    return folder(tmp_path)
