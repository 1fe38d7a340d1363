"""kill -9 at random moments of a parallel run: resumed, it ends as if nothing had been, and pays for nothing twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from toy_bench import LESSON, cases

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.store.sqlite import SqliteStore

SUPPORT = Path(__file__).parent.parent / "support"
KILLS = int(os.environ.get("MULLIGAN_KILLS", "20"))
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


class Zygote:
    """The process that forks the runs, and the provider server that they talk to."""

    def __init__(self, folder: Path) -> None:
        answers = folder / "answers.json"
        answers.write_text(json.dumps(ANSWERS))
        server = [sys.executable, str(SUPPORT / "provider_server.py"), "--answers", str(answers)]
        self.server = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        self.port = int(self.server.stdout.readline())
        self.data = cases(folder, *WISHES)
        zygote = [sys.executable, str(SUPPORT / "bench_zygote.py")]
        self.process = subprocess.Popen(zygote, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ended: dict[str, Any] | None = None

    def start(self, store: Path, resume: str | None = None) -> int:
        """Begins the run, or goes on with it; the pid, once it has its lease or has ended without."""
        order = {"store": str(store), "data": str(self.data), "port": self.port, "parallel": PARALLEL, "resume": resume}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        told: dict[str, Any] = {}
        while "pid" not in told or not {"ready", "exit"} & set(told):
            told |= self.hear()
        self.ended = {key: told[key] for key in ("exit", "said")} if "exit" in told else None
        return told["pid"]

    def end(self) -> dict[str, Any]:
        return self.ended or self.hear()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def asked(self) -> list[str]:
        """The newest message of each request so far, which is of one step of one case alone."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/_log", timeout=10) as log:
            return [str(request["body"]["messages"][-1]["content"]) for request in json.load(log)["requests"]]

    def close(self) -> None:
        for process in (self.process, self.server):
            process.kill()
            process.communicate(timeout=10)


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Generator[Zygote]:
    made = Zygote(tmp_path_factory.mktemp("bench_zygote"))
    yield made
    made.close()


@contextmanager
def killed_after(pid: int, seconds: float) -> Generator[None]:
    """A separate killer, which knows nothing of the run."""
    with subprocess.Popen(["sh", "-c", f"sleep {seconds:.4f}; kill -9 {pid} 2>/dev/null"]) as killer:
        yield
        killer.kill()


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
    zygote: Zygote, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20261122)
    zygote.start(tmp_path / "whole.db")
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
            with killed_after(zygote.start(store, resume), chance.uniform(0, lasts / 2) if kills < KILLS else 600):
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
def test_two_processes_on_one_run(zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process drives the run another refuses, names it, and does it no harm."""
    store = tmp_path / "held.db"
    pid = zygote.start(store)
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
        assert f"Benchmark run {run} is being driven by" in refused.stderr
        assert f":{pid}." in refused.stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    assert zygote.end() == {"exit": 0, "said": " ".join(ENDS)}
