"""Compares the faster ALFWorld engine with the original: CPU milliseconds to load, reset and step, in one run.

    python perf/alfworld.py [../shared/data/alfworld]

Each game is played by its stored walkthrough in two workers, one faster and one as upstream has it, turn by turn, so
that both see the same machine. `load, anew` finds no cache; `load, kept` is a fresh worker that finds the translation
on disk, as the second trial and every later run do. It also checks that both gave the same text.
"""

import json
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from mulligan.bench.alfworld._engine.workers import Worker

DATA = Path(__file__).parent.parent.parent / "shared/data/alfworld"
SECONDS = 300.0
RESETS = 3

Costs = dict[str, list[float]]


def timed(worker: Worker, costs: Costs, what: str, request: dict[str, Any]) -> dict[str, Any]:
    answer = worker.ask(request, SECONDS)
    costs[what].append(1000 * answer.pop("cpu"))
    return answer


def played(worker: Worker, game: Path, costs: Costs, load: str) -> list[dict[str, Any]]:
    timed(worker, costs, load, {"do": "open", "game": str(game)})
    timings = [timed(worker, costs, "reset", {"do": "reset"}) for _ in range(RESETS)]
    for command in json.loads(game.read_text())["walkthrough"]:
        timings.append(timed(worker, costs, "step", {"do": "step", "command": command}))
    return timings


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main(data: Path) -> None:
    games = sorted(data.rglob("*.tw-pddl"))
    fast, plain = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    same = won = 0
    with tempfile.TemporaryDirectory() as folder:
        one, two = Worker(folder=Path(folder)), Worker("plain", folder=Path(folder))
        for game in games:
            ours, theirs = played(one, game, fast, "load, anew"), played(two, game, plain, "load, anew")
            same, won = same + (ours == theirs), won + ours[-1]["won"]
        one.kill()
        again = Worker(folder=Path(folder))
        for game in games:
            timed(again, fast, "load, kept", {"do": "open", "game": str(game)})
        plain["load, kept"] = plain["load, anew"]
        for worker in (two, again):
            worker.kill()
    print(f"{len(games)} games, {len(fast['step'])} steps; won: {won}; the same text: {same}", end="")
    print(f" (load average {os.getloadavg()[0]:.1f})")
    print(f"{'CPU ms':<12}{'upstream':>10}{'here':>10}{'times':>8}")
    for what in ("load, anew", "load, kept", "reset", "step"):
        before, now = mean(plain[what]), mean(fast[what])
        print(f"{what:<12}{before:>10.1f}{now:>10.1f}{before / now:>7.1f}x")
    before, now = (mean(each["load, kept"]) + mean(each["reset"]) for each in (plain, fast))
    print(f"{'a new trial':<12}{before:>10.1f}{now:>10.1f}{before / now:>7.1f}x   (a load and a reset)")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
