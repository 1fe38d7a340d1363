"""What Ray adds to an episode beside the runner in process, how it scales, and what it costs when workers are killed.

Each episode has two trials of one call each, which lasts --seconds, as a model's would. For 1, 2 and 4 at once, in
process and on a Ray on this machine; then once more with a worker killed every --kill seconds. A run ends when all its
results are in the store. "Above the calls" is wall time of a place at work, less the calls, for an episode.

    python perf/fan_out.py [--episodes 1000] [--at-once 1,2,4] [--seconds 0.1] [--kill 20] [--store ADDRESS]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from mulligan.bench.harness.running import run_benchmark
from mulligan.core.benchmarks import Method, Score, Source
from mulligan.core.protocols import Journal
from mulligan.core.records import Attempt, Case, Episode, Feedback, Past, Spec, Task

HERE = str(Path(__file__).resolve())
TRIALS = 2


class Episodes:
    """The benchmark: as many cases as `number` says, whose calls last `seconds` and are written into the file `log`."""

    title = "made up"
    data = ""
    sources: Sequence[Source] = ()
    where = ""

    def __init__(self, *, number: int = 1000, seconds: float = 0.1, log: str = os.devnull) -> None:
        self._number = number
        self._call = {"seconds": seconds, "log": log}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return [Case(f"c{n}", Task(f"Say right. This is task {n}."), "right") for n in range(1, self._number + 1)]

    def methods(self) -> Mapping[str, Method]:
        return {"scripted": Method(Spec(f"{HERE}:Caller", self._call), Spec(f"{HERE}:Judge"), trials=TRIALS)}

    def play(self, case: Case, method: Method) -> Method:
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        return Score(float(episode.trials[-1].attempt.output == case.target))


class Caller:
    """Makes one call for a trial. The second is right."""

    def __init__(self, *, journal: Journal, seconds: float = 0.1, log: str = os.devnull) -> None:
        self._journal, self._seconds, self._log = journal, seconds, log

    async def act(self, episode: Episode, past: Past) -> Attempt:
        trial = len(episode.trials) + 1

        async def call() -> str:
            _write(self._log, f"{episode.task.prompt} {trial} {os.getpid()}\n")
            await asyncio.sleep(self._seconds)
            return "right" if trial == TRIALS else "wrong"

        return Attempt(await self._journal.step("model", {"task": episode.task.prompt, "trial": trial}, call))


class Judge:
    """Passes `right`."""

    expects: Literal["text", "code", "workspace"] = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(episode.trials[-1].attempt.output == "right", "Say right.", source="judge")


def _write(log: str, line: str) -> None:
    with open(log, "a") as file:
        file.write(line)


class Killer(threading.Thread):
    """Kills the worker that made the newest call, every so many seconds."""

    def __init__(self, log: Path, seconds: float) -> None:
        super().__init__(daemon=True)
        self._log, self._seconds = log, seconds
        self.over = threading.Event()
        self.kills = 0

    def run(self) -> None:
        while not self.over.wait(self._seconds):
            with suppress(ProcessLookupError):  # it may be the last one that was killed
                os.kill(int(self._log.read_text().split()[-1]), signal.SIGKILL)
                self.kills += 1


async def measured(asked: argparse.Namespace, at_once: int, on: str | None, folder: Path, kill: float = 0) -> None:
    log = folder / f"{on}-{at_once}-{kill}"
    log.touch()
    killer = Killer(log, kill)
    if kill:
        killer.start()
    settings = {"benchmark": {"number": asked.episodes, "seconds": asked.seconds, "log": str(log)}}
    began, cpu = time.perf_counter(), time.process_time()
    finished = await run_benchmark(HERE, parallel=at_once, settings=settings, on=on)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    killer.over.set()
    assert [result.status for result in finished.results] == ["solved"] * asked.episodes
    calls = Counter(line.rpartition(" ")[0] for line in log.read_text().splitlines())
    assert len(calls) == asked.episodes * TRIALS
    above = wall * at_once / asked.episodes - asked.seconds * TRIALS
    each = 1000 / asked.episodes
    lines = [
        f"{'Ray' if on else 'in process':10} {at_once} at once: {wall:7.1f} s, {asked.episodes / wall:6.1f} episodes/s",
        f"above the calls {above * 1000:6.1f} ms an episode",
        f"CPU of this process {cpu * each:5.1f} ms an episode",
    ]
    if kill:
        again = calls.total() - len(calls)
        assert again <= killer.kills, "each worker had one call in flight"
        lines.append(f"{killer.kills} workers killed, {again} calls cut off and made again")
    print("; ".join(lines), flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--at-once", default="1,2,4")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--kill", type=float, default=20.0)
    parser.add_argument("--store", help="an address; default: a SQLite file in a new folder")
    asked = parser.parse_args()
    numbers = [int(number) for number in asked.at_once.split(",")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["MULLIGAN_STORE"] = asked.store or str(folder / "perf.db")
        os.environ["MULLIGAN_HOME"] = name
        print(f"{asked.episodes} episodes of {TRIALS} calls of {asked.seconds:g} s, {os.cpu_count()} cores")
        for at_once in numbers:
            await measured(asked, at_once, None, folder)
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
        ray: Any = import_module("ray")
        began = time.perf_counter()
        options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
        ray.init("local", num_cpus=max(numbers), object_store_memory=80 * 2**20, **options)
        try:
            print(f"Ray started in {time.perf_counter() - began:.1f} s", flush=True)
            warm = {"benchmark": {"number": 8 * max(numbers), "seconds": asked.seconds}}
            began = time.perf_counter()
            await run_benchmark(HERE, parallel=max(numbers), settings=warm, on="ray")
            print(
                f"its first {8 * max(numbers)} episodes, with the start of workers: {time.perf_counter() - began:.1f} s"
            )
            for at_once in numbers:
                await measured(asked, at_once, "ray", folder)
            await measured(asked, max(numbers), "ray", folder, kill=asked.kill)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
