"""Real coding agents that are killed in the middle of a session, which is resumed later."""

import json
from pathlib import Path

import pytest
from agent_story import LOOKS, only_lesson, taught
from coding_agents import CLAUDE, CODEX, FAILS, GEMINI, MENDS, OPENCODE, QWEN, CodingAgent, Desk, desk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("agent", [CLAUDE, CODEX, GEMINI, OPENCODE, QWEN], ids=lambda agent: agent.name)
async def test_a_killed_session_loses_nothing_and_counts_once_when_it_is_resumed(
    agent: CodingAgent, tmp_path: Path
) -> None:
    async with desk(agent, tmp_path) as at:
        await at.mulligan("hooks", "install", agent.name, "--yes", *(["--trust"] if agent is CODEX else []))
        await at.session("Write the report.", [FAILS, MENDS, FAILS, FAILS], kill=True)  # the last one has no end
        (killed,) = await sessions(at)
        await at.session("What else?", [])
        await taught(at)
        (request, *_) = await at.session("Go on.", [], resumed=killed)
        assert MENDS in request.text, "it is the same session"
        for _ in range(LOOKS):
            if not await sessions(at, due=True):
                break
        lesson = await only_lesson(at)
        assert [call.rpartition("/")[0] for call in lesson["context"]["calls"]] == [killed]
        assert lesson["confirmed"] is False, "one session saw it, however often it ended"


async def sessions(at: Desk, *, due: bool = False) -> list[str]:
    """The ids of the sessions that hooks have noted; or of those of which something is to be learned yet."""
    status = json.loads(await at.mulligan("hooks", "status", "--json"))
    return [one["session"] for one in status["sessions"] if one["due"] or not due]
