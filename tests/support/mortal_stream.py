"""Runs a stream in the folder given, or takes up the one that is there, and prints its rows without ids.

Each question that is paid for leaves a line in `asked.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from toy_streams import Learner, arm, tasks

from mulligan.app.config import load
from mulligan.bench.harness.stream import resume_stream, run_stream
from mulligan.bench.report.stream import as_csv, read_stream
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.store import open_store


class Slow(Learner):
    """Takes its time, so that a kill comes in the middle."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._log = log

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        await asyncio.sleep(0.01)
        answer = await super().ask(question, sampling)
        with self._log.open("a") as log:
            log.write(json.dumps(self.asked[-1]) + "\n")
        return answer


async def main(home: Path) -> None:
    model = Slow(home / "asked.jsonl")
    async with open_store(load().store) as store:
        streams = [run for run in await store.benches.runs(1000) if run.benchmark.startswith("arms:")]
        if streams:
            run = await resume_stream(streams[0].id, model=model, store=store)
        else:
            file = tasks(home, ("ant", "bee", "cat"), 4, drifts=True)
            arms, controls = ["none", arm(home)], ("stale",)
            given: dict[str, Any] = {"method": "resample", "trials": 1, "orders": 2, "controls": controls}
            run = await run_stream(str(file), arms=arms, model=model, store=store, **given)
        report = await read_stream(store, run.id)
    print(as_csv([replace(row, episode="") for row in report.rows]))


asyncio.run(main(Path(sys.argv[1])))
