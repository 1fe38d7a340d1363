"""`mulligan memory show RECALL`: what a recall gave out, and what came of its task."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from banks import a_bank, an_episode

Run = Callable[..., Any]


async def learn(recall: str) -> None:
    """From the episode that this recall was for, as an agent would."""
    async with a_bank(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db", embedder="none") as bank:
        await bank.learn(replace(an_episode("e", "order history", "x"), recall=await bank.recalled(recall)))


def test_a_recall_is_shown_with_what_came_of_its_task(mulligan: Run, here: Path) -> None:
    (here / "mulligan.toml").write_text('[memory]\nembedder = "none"\nthreshold = 0.0\n')
    given = ("--title", "Whole history", "--content", "Open the full order history.")
    id = mulligan("memory", "add", *given).out.strip()
    recall = json.loads(mulligan("memory", "search", "order history", "--json").out)["recall"]
    shown = mulligan("memory", "show", recall).out
    assert "For:  order history\nReturned:\n" in shown
    assert f"  {id[:8]}  Whole history\nThe task's outcome is unknown" in shown

    asyncio.run(learn(recall))
    mulligan("memory", "purge", id, "--yes")
    shown = mulligan("memory", "show", recall).out
    assert "Returned nothing.\nOutcomes" in shown
    assert "  the task succeeded" in shown
    told = json.loads(mulligan("memory", "show", recall, "--json").out)
    assert [one["success"] for one in told["outcomes"]] == [True]
    ended = mulligan("memory", "--agent-id", "other", "show", recall)
    assert (ended.status, "no lesson or recall" in ended.err) == (2, True)
