"""The story that each real coding agent lives through: what it overcomes in one session, the next one is shown.

Everything is as for a user: hooks that `mulligan hooks install` wrote, the agent's own command line, and a process that
learns by itself after the session. Only the model is scripted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coding_agents import FAILS, MENDS, Desk
from provider_server import Received

ERROR = "the schema of orders is not generated"
SHOWN = "mulligan-lessons"
"""What the model reads begins with it, in brackets that Gemini CLI and Qwen Code escape."""
UNPROVEN = "seen once, unproven"
QUESTION = "mulligan-question"
REASON = "The schema was missing. tasks.py generate makes it."
LOOKS = 60
"""How often is looked for the lesson. Each takes as long as a process starts."""


async def learns_and_is_shown(desk: Desk) -> None:
    """A session fails, overcomes it and ends; the next one fails in the same way, and the model reads what helped."""
    first = await desk.session("Write the report.", [FAILS, MENDS, FAILS])
    assert len(first) == 4
    assert ERROR in first[1].text
    assert SHOWN not in first[-1].text, "there was nothing to show yet"
    await taught(desk)
    second = await fails_again(desk)
    assert SHOWN not in second[0].text, "a candidate is shown at the same error alone"
    shown = second[1].text.partition(SHOWN)[2].partition(f"/{SHOWN}")[0]
    assert MENDS in shown
    assert UNPROVEN in shown


async def is_asked_why(desk: Desk) -> None:
    """An agent that would stop is asked why something failed that it has overcome, and its answer is in the lesson."""
    await desk.mulligan("hooks", "install", desk.agent.name, "--yes", *(["--trust"] * (desk.agent.name == "codex")))
    await desk.mulligan("hooks", "set", "why", "ask")
    requests = await desk.session("Write the report.", [FAILS, MENDS, FAILS], when={QUESTION: REASON})
    assert [QUESTION in request.text for request in requests] == [False] * 4 + [True]
    await taught(desk)
    (bank,) = json.loads(await desk.mulligan("memory", "export", "--all-agents"))["agents"]
    (lesson,) = bank["lessons"]
    assert lesson["content"].endswith(f"\nwhy: {REASON}")
    assert lesson["tags"] == ["hook"]
    assert QUESTION not in str(bank)
    second = await fails_again(desk)
    assert f"why: {REASON}" in second[1].text
    assert all(QUESTION not in request.text for request in second), "it overcame nothing"


async def fails_again(desk: Desk, *options: str) -> Sequence[Received]:
    """The requests of a session in which the same command fails once more."""
    (desk.project / "orders.schema").unlink(missing_ok=True)
    asked = await desk.session("Write the report once more.", [FAILS], *options)
    assert len(asked) == 2
    assert ERROR in asked[1].text
    return asked


async def taught(desk: Desk) -> None:
    """Wait until what happened has become a lesson."""
    for _ in range(LOOKS):
        if json.loads(await desk.mulligan("hooks", "status", "--json"))["candidates"]:
            return
    raise AssertionError(await desk.mulligan("hooks", "status"))


async def only_lesson(desk: Desk) -> dict[str, Any]:
    """The one lesson that there is, in the one bank."""
    (bank,) = json.loads(await desk.mulligan("memory", "export", "--all-agents"))["agents"]
    (lesson,) = bank["lessons"]
    return lesson


async def is_given_back(desk: Desk, *files: Path, installing: Sequence[str] = ()) -> None:
    """Install the hooks, try them, and take them out: these files are as before, byte for byte."""
    before = _bytes(files)
    name = desk.agent.name
    await desk.mulligan("hooks", "install", name, "--yes", *installing)
    assert _bytes(files) != before
    said = await desk.mulligan("hooks", "doctor", name)
    assert f"`{MENDS}` makes it." in said
    await desk.mulligan("hooks", "uninstall", name, "--yes")
    assert _bytes(files) == before


def _bytes(files: Sequence[Path]) -> Mapping[Path, bytes | None]:
    return {file: file.read_bytes() if file.exists() else None for file in files}
