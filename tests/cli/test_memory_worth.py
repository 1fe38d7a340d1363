"""`mulligan memory stats`, `outcome`, `pin` and `unpin`: what the bank has been worth, and what measures it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from banks import a_bank

Run = Callable[..., Any]
QUERY = "pay the order"


async def tasks(count: int, harmful: str, share: float) -> None:
    """Tasks that succeed unless the harmful lesson is shown; no more once that is retired."""
    over = {"withhold": share, "threshold": 0.0}
    async with a_bank(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db", embedder="none", settings=over) as bank:
        for _ in range(count):
            recall = await bank.recall(QUERY)
            await bank.outcome_of(recall.id, harmful not in {lesson.id for lesson in recall.lessons})
            if (await bank.get(harmful)).state == "retired":
                break


def added(mulligan: Run, title: str) -> str:
    return mulligan("memory", "add", "--title", title, "--content", f"Pay the order: {title}.").out.strip()


def test_without_withholding_nothing_causal_is_said(mulligan: Run, here: Path) -> None:
    id = added(mulligan, "By card")
    assert "set withhold = 0.1 in [memory]" in mulligan("memory", "stats").err
    asyncio.run(tasks(5, id, 0.0))
    ended = mulligan("memory", "stats")
    assert "5 recalls with a known outcome, 0% of them successful." in ended.out
    assert "Not measured: 1 lesson with a known outcome." in ended.out
    assert "uplift" not in ended.out
    assert "set withhold = 0.1 in [memory]" in ended.err
    figures = json.loads(mulligan("memory", "stats", "--json").out)[""]
    assert (figures["worth"]["known"], figures["worth"]["uplift"]) == (5, None)
    assert [(one["id"], one["uplift"]) for one in figures["lessons_worth"]] == [(id, None)]


def test_what_did_harm_is_listed_first_with_its_figures(mulligan: Run, here: Path) -> None:
    harmful, other = added(mulligan, "By cheque"), added(mulligan, "By card")
    asyncio.run(tasks(80, harmful, 0.5))
    ended = mulligan("memory", "stats")
    rows = [line.split() for line in ended.out.splitlines()]
    (begin,) = [n for n, row in enumerate(rows) if row[:2] == ["id", "uplift"]]
    assert [row[0] for row in rows[begin + 1 : begin + 3]] == [harmful[:8], other[:8]]
    assert "retired, did harm" in ended.out.splitlines()[begin + 1]
    assert float(rows[begin + 1][1]) < -0.5
    assert ended.err == ""
    figures = json.loads(mulligan("memory", "stats", "--json").out)[""]["lessons_worth"]
    worst = next(one for one in figures if one["id"] == harmful)
    assert worst["uplift"]["high"] < 0
    assert worst["shown"]["count"] + worst["withheld"]["count"] == worst["known"]
    assert "it did harm: uplift -" in mulligan("memory", "history", harmful).out
    assert f"without lesson {harmful[:8]}, which was retired" in mulligan("memory", "search", QUERY).err
    assert "retired" not in mulligan("memory", "search", QUERY).err


def test_an_outcome_is_told_from_the_command_line_once(mulligan: Run, here: Path) -> None:
    id = added(mulligan, "By card")
    recall = json.loads(mulligan("memory", "search", QUERY, "--threshold", "0", "--json").out)["recall"]
    assert mulligan("memory", "outcome", recall, "success").err == ""
    assert "already reported as a success" in mulligan("memory", "outcome", recall, "failure").err
    assert "reported  the task succeeded" in mulligan("memory", "show", recall).out
    assert mulligan("memory", "outcome", "rnone", "failure").status == 2
    assert mulligan("memory", "--agent-id", "other", "outcome", recall, "failure").status == 2
    assert mulligan("memory", "pin", id[:6]).status == 0
    assert json.loads(mulligan("memory", "show", id, "--json").out)["lesson"]["pinned"] is True
    assert "pinned" in mulligan("memory", "show", id).out
    mulligan("memory", "pin", "--undo", id)
    assert "pinned" not in mulligan("memory", "show", id).out


def test_a_setting_that_is_set_is_not_recommended(mulligan: Run, here: Path) -> None:
    added(mulligan, "By card")
    (here / "mulligan.toml").write_text('[memory]\nwithhold = 0.2\nembedder = "none"\n')
    said = mulligan("memory", "stats").err
    assert "withhold = 0.2" in said
    assert "set withhold" not in said


def test_a_run_says_that_lessons_were_withheld(mulligan: Run, here: Path) -> None:
    (here / "mulligan.toml").write_text('[memory]\nwithhold = 0.5\nembedder = "none"\nthreshold = 0\ntop_k = 20\n')
    for n in range(20):  # that none is withheld has a chance of one in a million
        added(mulligan, f"Way {n}")
    ended = mulligan("solve", QUERY, "--model", "scripted:second.txt", "--evaluator", "./judge.py", "--memory")
    assert "withheld to measure" in ended.err
    (run,) = [line.split()[0] for line in mulligan("runs", "list").out.splitlines()[1:]]
    assert "withheld to measure" in mulligan("runs", "show", run).out
