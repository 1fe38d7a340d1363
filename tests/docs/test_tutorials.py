"""Each tutorial, done as printed in an empty folder with an empty home, prints what its page shows within five minutes."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest
from coding_agents import CLAUDE, desk
from tutorials import FOLDER, LONGEST, Walk, prints

pytestmark = pytest.mark.slow

ALONE = ("benchmark.md", "goal.md", "mcp-client.md", "python.md")
WITH_CLAUDE = "coding-agent.md"
REPORT, GENERATE = "python3 tasks.py report", "python3 tasks.py generate"


def walked(walk: Walk, page: str) -> None:
    begun = time.monotonic()
    compared = walk.through(page)
    seconds = time.monotonic() - begun
    assert len(compared) > 2
    for shown, printed in compared:
        assert prints(shown, printed), f"{page} shows\n{shown}\nand printed was\n{printed}"
    assert seconds < LONGEST
    print(f"{page}: {seconds:.0f} s")


def test_every_tutorial_is_walked_through() -> None:
    assert {page.name for page in FOLDER.iterdir()} == {*ALONE, WITH_CLAUDE}


@pytest.mark.parametrize("page", ALONE)
def test_a_tutorial_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    walked(Walk(tmp_path), page)


async def test_the_tutorial_for_coding_agents_with_claude_code(tmp_path: Path) -> None:
    """Claude Code itself; the model, on loopback, does what the page says that it does."""
    async with desk(CLAUDE, tmp_path) as at:
        at.server.script.load(
            [
                *session("look into tasks.py", [REPORT, "cat tasks.py", GENERATE, REPORT]),
                *session("Write the report:", [REPORT, GENERATE, REPORT]),
                {"when": "", "answer": "ok"},
            ]
        )
        reader = tmp_path / "reader"
        reader.mkdir()
        env = {name: value for name, value in at.env.items() if name not in ("HOME", "MULLIGAN_HOME")}
        await asyncio.to_thread(walked, Walk(reader, env=env), WITH_CLAUDE)
        (shown,) = re.findall(r"^(<mulligan-lessons>.*?)</mul", page_text(WITH_CLAUDE), re.DOTALL | re.MULTILINE)
        read = [
            request.text.replace(str(reader / "project"), "/home/me/orders") for request in at.server.script.received
        ]
        assert any(shown.replace("\n", "\\n") in text for text in read)


def session(prompt: str, commands: list[str]) -> list[dict[str, Any]]:
    """What the model does at this prompt: it runs the commands, one after the other, and ends."""
    calls = [CLAUDE.call(command, f"{prompt[0]}_{number}") for number, command in enumerate(commands)]
    steps = [{"when": prompt, "after": number, "calls": [call]} for number, call in enumerate(calls)]
    return [*steps, {"when": prompt, "after": len(calls), "answer": "The report is written."}]


def page_text(page: str) -> str:
    return (FOLDER / page).read_text(encoding="utf-8")
