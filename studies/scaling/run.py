"""Runs the study of scaling, or takes it up where it was: `python studies/scaling/run.py [--model MODEL] [--into DIR]`.

The one stream of the study is found again in the store, so the same command goes on after a kill. README.md says what
was fixed beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from mulligan.app.config import load
from mulligan.bench.harness.plan import STREAM
from mulligan.bench.harness.stream import resume_stream, run_stream
from mulligan.bench.report.stream import StreamReport, as_csv, read_stream, stream_page
from mulligan.store import open_store
from mulligan.text.pages import markdown

BENCHMARK = "stream:code"
MODEL = "local:qwen2.5-coder-1.5b"
ARMS = ("none", "none-x3", "default", "vanilla-x3", "matts-x3")
SETTINGS = {"seed": 17, "tasks": 36, "drift": "middle", "announce": True, "kinds": 6}
"""Those of studies/streams: the same 36 tasks."""


async def ran(model: str, tasks: int | None) -> StreamReport:
    async with open_store(load().store) as store:
        known = [run for run in await store.benches.runs(1000) if run.benchmark == f"{STREAM}{BENCHMARK}"]
        if known:
            stream = await resume_stream(known[0].id, store=store)
        else:
            stream = await run_stream(
                BENCHMARK,
                arms=ARMS,
                orders=1,
                model=model,
                store=store,
                method="simple",
                limit=tasks,
                settings={"benchmark": SETTINGS},
            )
        return await read_stream(store, stream.id)


def write(report: StreamReport, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    (into / "cases.csv").write_text(as_csv(report.rows), encoding="utf-8")
    (into / "report.md").write_text(markdown(stream_page(report)), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs the study of scaling, or goes on with it.")
    parser.add_argument("--model", default=MODEL, help=f"default: {MODEL}")
    parser.add_argument("--into", type=Path, default=Path("scaling"), help="the folder for rows and report")
    parser.add_argument("--tasks", type=int, help="only the first N, to try the study itself")
    given = parser.parse_args()
    write(asyncio.run(ran(given.model, given.tasks)), given.into)
