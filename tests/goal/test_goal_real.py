"""Real coding agents under a goal, with a program in the place of their model."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from coding_agents import CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, CodingAgent, Desk, desk
from provider_server import Received

pytestmark = pytest.mark.slow

CHECK = """\
import pathlib, sys
word = pathlib.Path("word.txt").read_text().strip()
if word != "right":
    sys.exit(f"WordError: the word is {word!r}, and not 'right'")
print("the word is right")
"""
WRONG = ("wrong", "still wrong", "quite another one")
HELD = [CLAUDE, CODEX, GEMINI, QWEN]
TRY = r"\(try (\d) of (\d)\)"


def writes(agent: CodingAgent, word: str, n: int) -> dict[str, Any]:
    return agent.call(f"echo {word} > word.txt", f"call_{n}")


def fixes_at_the_third(agent: CodingAgent) -> list[Any]:
    """It claims to be done, then changes nothing, then fixes it."""
    return [
        {"when": "(try 2 of 3)", "after": 1, "calls": [writes(agent, "right", 2)]},
        {"when": "(try 1 of 3)", "after": 1, "answer": "I have looked again: all tests pass now. GOAL REACHED."},
        {"after": 0, "calls": [writes(agent, "wrong", 1)]},
        {"after": 1, "answer": "Done, all tests pass."},
        {"after": 2, "answer": "Now it is right."},
    ]


def never_fixes(agent: CodingAgent) -> list[Any]:
    """It claims to be done each time, and writes another wrong word."""
    entries: list[Any] = [{"when": "ends here for this session", "answer": "I could not do it."}]
    for n, word in enumerate(WRONG):
        held = {"when": f"(try {n} of 3)"} if n else {}
        entries += [{**held, "after": n, "calls": [writes(agent, word, n)]}, {"after": n + 1, "answer": "Done."}]
    return sorted(entries, key=lambda entry: "when" not in entry)


async def prepared(at: Desk) -> None:
    (at.project / "check.py").write_text(CHECK)
    (at.project / "word.txt").write_text("first\n")
    trust = ["--trust"] * (at.agent is CODEX)
    if at.agent is not OPENCODE:
        await at.mulligan("hooks", "install", at.agent.name, "--yes", *trust)


async def standing(at: Desk) -> dict[str, Any]:
    return json.loads(await at.mulligan("goal", "--json"))


def holds(requests: Sequence[Received]) -> list[str]:
    """What the agent was shown when it would have stopped, in order."""
    return list(dict.fromkeys(found[0] for one in requests for found in re.finditer(TRY, one.text)))


@pytest.mark.parametrize("agent", HELD, ids=lambda agent: agent.name)
async def test_a_claim_ends_no_turn_and_the_third_try_does(agent: CodingAgent, tmp_path: Path) -> None:
    async with desk(agent, tmp_path) as at:
        await prepared(at)
        said = await at.mulligan("goal", "python3 check.py", "--trials", "3")
        assert "It currently fails, as it should." in said
        requests = await at.session("Make the word right.", [], script=fixes_at_the_third(agent))
        goal = await standing(at)
        assert holds(requests) == ["(try 1 of 3)", "(try 2 of 3)"], await at.mulligan("hooks", "status")
        assert goal["state"] == "passed"
        (work,) = goal["sessions"]
        assert work["tries"] == [
            {"passed": False, "unchanged": False},
            {"passed": False, "unchanged": True},
            {"passed": True, "unchanged": False},
        ]
        assert "WordError" in requests[2].text
        shown = await at.mulligan("runs", "show", work["run"])
        assert "WordError" in shown


@pytest.mark.parametrize("agent", HELD, ids=lambda agent: agent.name)
async def test_an_agent_that_never_fixes_it_ends_exactly_at_the_limit(agent: CodingAgent, tmp_path: Path) -> None:
    async with desk(agent, tmp_path) as at:
        await prepared(at)
        await at.mulligan("goal", "python3 check.py", "--trials", "3")
        requests = await at.session("Make the word right.", [], script=never_fixes(agent))
        goal = await standing(at)
        (work,) = goal["sessions"]
        assert (work["why"], len(work["tries"])) == ("all tries are used", 3), await at.mulligan("hooks", "status")
        assert holds(requests) == ["(try 1 of 3)", "(try 2 of 3)"]
        assert sum("ends here for this session" in one.text for one in requests) == 1, "one last message"
        (at.project / "word.txt").write_text("another\n")
        again = await at.session("And now?", [], script=[{"when": "", "answer": "Nothing."}])
        assert holds(again) == [], "another session that changes nothing is not held up"


async def test_opencode_is_run_again_with_what_the_check_showed(tmp_path: Path) -> None:
    """It cannot be held, so each try is a run of its own."""
    async with desk(OPENCODE, tmp_path) as at:
        await prepared(at)
        fixes: list[Any] = [
            {"when": "(try 2 of 3)", "after": 0, "calls": [writes(OPENCODE, "right", 2)]},
            {"when": "(try 1 of 3)", "after": 0, "answer": "All tests pass now."},
            {"after": 0, "calls": [writes(OPENCODE, "wrong", 1)]},
            {"after": 1, "answer": "Done."},
        ]
        at.server.script.load([*fixes, {"when": "", "answer": "ok"}])
        task = "Make the word right."
        said = await at.mulligan("goal", "python3 check.py", task, "--run", "opencode", "--trials", "3")
        assert "Goal reached: 3 of 3 tries." in said
        goal = await standing(at)
        assert (goal["state"], len(goal["sessions"][0]["tries"])) == ("passed", 3)
        (at.project / "word.txt").write_text("first\n")
        never: list[Any] = [
            *({"when": f"(try {n} of 3)", "after": 0, "calls": [writes(OPENCODE, WRONG[n], 1)]} for n in (2, 1)),
            {"after": 0, "calls": [writes(OPENCODE, WRONG[0], 1)]},
            {"after": 1, "answer": "Done, all tests pass."},
        ]
        at.server.script.load([*never, {"when": "", "answer": "ok"}])
        said = await at.mulligan("goal", "python3 check.py", task, "--run", "opencode", "--trials", "3", status=1)
        assert "Goal not reached: 3 of 3 tries, all tries are used." in said
        assert holds(at.server.script.received) == ["(try 1 of 3)", "(try 2 of 3)"]


async def test_a_person_sets_the_goal_in_a_prompt_and_a_model_cannot(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await prepared(at)
        asked = "mulligan-goal python3 check.py"
        await at.session(asked, [], script=[{"when": "", "answer": "The goal is set."}])
        assert (await standing(at))["check"] == "python3 check.py"
        command = (
            "mulligan goal true; mulligan goal clear; env -u CLAUDECODE -u CLAUDE_CODE_ENTRYPOINT mulligan goal pause"
        )
        nested = "claude -p '/mulligan-goal true' --allowedTools Bash"
        script = [
            {"when": "/mulligan-goal true", "after": 0, "answer": "The nested session ends."},
            {"after": 0, "calls": [at.agent.call(command, "call_1")]},
            {"after": 1, "calls": [at.agent.call(nested, "call_2")]},
            {"after": 2, "answer": "It is done."},
        ]
        requests = await at.session("Do what you like.", [], script=script)
        assert "Only a person can set a goal" in requests[-1].text
        said = await at.mulligan("goal")
        assert "python3 check.py" in said.splitlines()[0]
        assert "active" in said.splitlines()[0]
        assert said.count("refused") >= 3
