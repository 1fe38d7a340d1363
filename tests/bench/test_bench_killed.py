"""kill -9 at random moments of a parallel run: resumed, it ends as if nothing had been, and pays for nothing twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from forking import Forking, killed_after
from repetition import repeats
from toy_bench import LESSON, cases

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.store.sqlite import SqliteStore

SUPPORT = Path(__file__).parent.parent / "support"
KILLS = repeats(10)
PARALLEL = 4
WISHES = ["easy", "hard", "hopeless", "hard"] * 4
ANSWERS = [
    {"when": "You review failed attempts", "answer": LESSON, "delay": 0.02},
    {"when": "hopeless", "answer": "wrong", "delay": 0.03},
    {"when": "easy", "answer": "right", "delay": 0.02},
    {"when": LESSON, "answer": "right", "delay": 0.01},
    {"when": "hard", "answer": "wrong", "delay": 0.02},
]
ENDS = ["solved", "solved", "failed", "solved"] * 4
CALLS = sum({"easy": 1, "hard": 3, "hopeless": 5}[wish] for wish in WISHES)


def begin(zygote: Forking, store: Path, resume: str | None = None) -> int:
    return zygote.start(store=str(store), data=str(cases(store.parent, *WISHES)), parallel=PARALLEL, resume=resume)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Generator[Forking]:
    made = Forking(SUPPORT / "bench_zygote.py", tmp_path_factory.mktemp("bench_zygote"), ANSWERS)
    yield made
    made.close()


def look(store: Path) -> tuple[BenchRun, list[CaseResult], Counter[str]]:
    """The only run of a store, its results without ids and times, and the model calls that are in flight."""

    async def read() -> tuple[BenchRun, list[CaseResult], Counter[str]]:
        at = SqliteStore(store)
        (run,) = await at.benches.runs()
        found = [timeless(result) for result in await at.benches.results(run.id)]
        flying = Counter[str]()
        for episode in await at.list(limit=1000):
            rows = [row for row in await at.steps(episode.id) if "/model." in row.key and not row.done]
            flying.update(row.request["messages"][-1]["text"] for row in rows)
        await at.close()
        return run, found, flying

    return asyncio.run(read())


def timeless(result: CaseResult) -> CaseResult:
    nameless = tuple(replace(one, episode=one.episode.partition(".")[2]) for one in result.episodes)
    return replace(result, episodes=nameless, seconds=0.0)


@pytest.mark.slow
def test_the_report_is_that_of_a_run_that_nobody_killed(
    zygote: Forking, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20261122)
    begin(zygote, tmp_path / "whole.db")
    began = time.monotonic()
    assert zygote.end() == {"exit": 0, "said": " ".join(ENDS)}
    lasts = time.monotonic() - began  # from its lease to its end
    assert len(zygote.asked()) == len(set(zygote.asked())) == CALLS
    expected = look(tmp_path / "whole.db")[1]
    kills, runs, again = 0, 0, 0
    while kills < KILLS:
        runs += 1
        before, store, resume = len(zygote.asked()), tmp_path / f"{runs}.db", None
        in_flight, of_this = Counter[str](), 0
        while True:
            with killed_after(begin(zygote, store, resume), chance.uniform(0, lasts / 2) if kills < KILLS else 600):
                ended = zygote.end()
            if ended["exit"] == 0:
                assert ended["said"] == " ".join(ENDS)
                break
            assert ended["exit"] == -signal.SIGKILL
            kills, of_this = kills + 1, of_this + 1
            run, _, flying = look(store)
            assert flying.total() <= PARALLEL
            in_flight, resume = in_flight + flying, run.id
        assert look(store)[1] == expected
        asked = Counter(zygote.asked()[before:])
        twice = {text: n for text, n in asked.items() if n > 1 + in_flight[text]}
        assert twice == {}, "a call that was done was made again"
        assert CALLS <= asked.total() <= CALLS + of_this * PARALLEL
        again += asked.total() - CALLS
    with capsys.disabled():
        print(f"\n{kills} kills of {runs} runs of {CALLS} calls, {PARALLEL} at once: {again} cut off and made again")


@pytest.mark.slow
def test_two_processes_on_one_run(zygote: Forking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process drives the run another refuses, names it, and does it no harm."""
    store = tmp_path / "held.db"
    pid = begin(zygote, store)
    os.kill(pid, signal.SIGSTOP)
    try:
        run = look(store)[0].id
        monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "mulligan.db").symlink_to(store)
        refused = subprocess.run(
            [sys.executable, "-m", "mulligan", "bench", "run", "--resume", run],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            check=False,
        )
        assert refused.returncode == 3
        assert f"Benchmark run {run} is in use by" in refused.stderr
        assert f":{pid}." in refused.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    assert zygote.end() == {"exit": 0, "said": " ".join(ENDS)}
