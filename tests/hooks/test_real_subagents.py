"""Sub-agents of Claude Code and Codex CLI themselves, started by a scripted model."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent_story import ERROR, LOOKS, SHOWN, fails_again, only_lesson, taught
from coding_agents import CLAUDE, CODEX, FAILS, MENDS, TASK, CodingAgent, desk

pytestmark = pytest.mark.slow
TYPES = {"claude": "general-purpose", "codex": "worker"}
"""Of the sub-agents that are started."""


@pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=lambda agent: agent.name)
async def test_what_a_sub_agent_overcomes_one_of_the_next_session_is_shown_and_it_counts_once(
    agent: CodingAgent, tmp_path: Path
) -> None:
    async with desk(agent, tmp_path) as at:
        await at.mulligan("hooks", "install", agent.name, "--yes", *(["--trust"] if agent is CODEX else []))
        first = await at.session("Write the report.", [FAILS, MENDS, FAILS], delegated=True)
        apart = [one for one in first if TASK in one.text and "Write the report." not in one.text]
        assert len(apart) == 4, "the sub-agent's own requests"
        await taught(at)
        (seen,) = (await only_lesson(at))["context"]["seen"]
        assert seen["subagent"] == TYPES[agent.name]
        (at.project / "orders.schema").unlink()
        second = await at.session("Write the report once more.", [FAILS], delegated=True)
        main = [one for one in second if "Write the report once more." in one.text]
        apart = [one for one in second if one not in main]
        assert ERROR in apart[1].text
        assert MENDS in apart[1].text.partition(SHOWN)[2]
        assert SHOWN not in main[-1].text, "the main agent has not failed"


@pytest.mark.parametrize("agent", [CLAUDE, CODEX], ids=lambda agent: agent.name)
async def test_a_type_of_sub_agents_has_a_bank_of_its_own_where_that_is_set(agent: CodingAgent, tmp_path: Path) -> None:
    async with desk(agent, tmp_path) as at:
        await at.mulligan("hooks", "install", agent.name, "--yes", *(["--trust"] if agent is CODEX else []))
        await at.mulligan("hooks", "set", "subagents", "own")
        await at.session("Write the report.", [FAILS, MENDS, FAILS], delegated=True)
        status: dict[str, Any] = {}
        for _ in range(LOOKS):
            if status.get("subagents") != [[TYPES[agent.name], 0, 1]]:
                status = json.loads(await at.mulligan("hooks", "status", "--json"))
        assert status["subagents"] == [[TYPES[agent.name], 0, 1]]
        assert (status["kept"], status["candidates"]) == (0, 0), "the project has learned nothing"
        assert SHOWN not in (await fails_again(at))[1].text, "nor is its main agent shown anything"
        second = await at.session("Write the report once more.", [FAILS], delegated=True)
        apart = [one for one in second if "Write the report once more." not in one.text]
        assert MENDS in apart[1].text.partition(SHOWN)[2]
