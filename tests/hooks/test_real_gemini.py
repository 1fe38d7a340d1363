"""Gemini CLI itself, with hooks, against a scripted model."""

from pathlib import Path

import pytest
from agent_story import is_asked_why, is_given_back, learns_and_is_shown
from coding_agents import GEMINI, desk

pytestmark = pytest.mark.slow


async def test_what_one_session_overcomes_the_next_is_shown(tmp_path: Path) -> None:
    async with desk(GEMINI, tmp_path) as at:
        await is_given_back(at, at.home / ".gemini" / "settings.json")
        await at.mulligan("hooks", "install", "gemini", "--yes")
        await learns_and_is_shown(at)


async def test_the_agent_is_asked_why_once_when_it_stops(tmp_path: Path) -> None:
    async with desk(GEMINI, tmp_path) as at:
        await is_asked_why(at)
