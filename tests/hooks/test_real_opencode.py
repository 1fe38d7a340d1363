"""opencode itself, with hooks, against a scripted model."""

from pathlib import Path

import pytest
from agent_story import is_given_back, learns_and_is_shown
from coding_agents import OPENCODE, desk

pytestmark = pytest.mark.slow


async def test_what_one_session_overcomes_the_next_is_shown(tmp_path: Path) -> None:
    async with desk(OPENCODE, tmp_path) as at:
        await is_given_back(at, at.home / ".config" / "opencode" / "plugins" / "mulligan.js")
        await at.mulligan("hooks", "install", "opencode", "--yes")
        await learns_and_is_shown(at)
