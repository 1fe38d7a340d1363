"""Runs a part of the study of BFCL, or resumes it: `python studies/bfcl/run.py [PART] [--model MODEL] [--into DIR]`.

The data are those of `mulligan bench fetch bfcl`. The stream of a part is found again in the store, so the same command
resumes it after a kill. README.md says what was fixed beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from mulligan.app.config import load
from mulligan.bench.bfcl._wheel import dialogues
from mulligan.bench.harness.plan import STREAM
from mulligan.bench.harness.stream import StreamChoice, resume_stream, run_stream
from mulligan.bench.report.stream import StreamReport, as_csv, read_stream, stream_page
from mulligan.store import open_store
from mulligan.text.pages import markdown

TASKS = Path(__file__).with_name("tasks.json")
MODEL = "local:qwen2.5-coder-1.5b"
PARTS = {"memory": (40, ("none", "default")), "tokens": (12, ("none", "none-x3", "history", "default"))}
"""By name, how many of the tasks, the first ones, and the arms."""


def chosen(wheel: Path) -> Sequence[str]:
    """The 40 tasks of `multi_turn_base` with the fewest turns; of equal ones those with the smallest number."""
    tasks = dialogues(wheel, "base")
    return sorted(tasks, key=lambda id: (len(tasks[id].turns), int(id.rpartition("_")[2])))[:40]


async def ran(part: str, model: str) -> StreamReport:
    count, arms = PARTS[part]
    async with open_store(load().store) as store:
        runs = [run for run in await store.benches.runs(1000) if run.benchmark == f"{STREAM}bfcl"]
        known = [run for run in runs if _is_of(StreamChoice.of(run.options), arms, model)]
        if known:
            stream = await resume_stream(known[0].id, store=store)
        else:
            cases = json.loads(TASKS.read_text(encoding="utf-8"))[:count]
            stream = await run_stream("bfcl", arms=arms, orders=1, model=model, store=store, cases=cases)
        return await read_stream(store, stream.id)


def _is_of(choice: StreamChoice, arms: Sequence[str], model: str) -> bool:
    return [arm.name for arm in choice.arms] == [*arms] and choice.base.model == model


def write(report: StreamReport, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    (into / "cases.csv").write_text(as_csv(report.rows), encoding="utf-8")
    (into / "report.md").write_text(markdown(stream_page(report)), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs the study of BFCL, or resumes it.")
    parser.add_argument("part", nargs="?", choices=PARTS, default="memory")
    parser.add_argument("--model", default=MODEL, help=f"default: {MODEL}")
    parser.add_argument("--into", type=Path, default=Path("bfcl"), help="the folder for rows and report")
    given = parser.parse_args()
    write(asyncio.run(ran(given.part, given.model)), given.into)
