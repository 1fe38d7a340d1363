"""Is this tree slower than an older commit? Measures the rows of rows.py in both, in turns, and prints the ratios.

    python perf/compare.py BASE [--rounds 7] [--rows loop,retry]

BASE is a commit, or the folder of another tree. Each run is a process of its own on the source of its tree, with the
Python of this call. For each figure: the ratio of the medians, new to old, with a bootstrap interval of 95 %, and both
medians. Figures are CPU milliseconds unless their name says otherwise; above 1 is slower.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rows import ROWS

HERE = Path(__file__).resolve().parent.parent
DRAWS = 2000


@contextmanager
def tree_of(base: str) -> Generator[Path]:
    """The tree of a commit, in a worktree that is removed in the end, or the folder as it is."""
    if Path(base).is_dir():
        yield Path(base).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", f"{folder}/base", base], check=True)
        try:
            yield Path(folder, "base")
        finally:
            subprocess.run([*git, "remove", "--force", f"{folder}/base"], check=True)


def figures(tree: Path, row: str) -> Mapping[str, float]:
    command = [sys.executable, str(HERE / "perf" / "rows.py"), row]
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800, check=False)
    if ran.returncode:
        raise SystemExit(f"{row} failed in {tree}:\n{ran.stderr[-2000:]}")
    return {name: float(value) for name, value in (line.split() for line in ran.stdout.splitlines())}


def interval(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """95 % of the ratios of medians, over samples drawn again from both."""
    draw = random.Random(0)
    ratios = sorted(
        statistics.median(draw.choices(new, k=len(new))) / statistics.median(draw.choices(old, k=len(old)))
        for _ in range(DRAWS)
    )
    return ratios[int(0.025 * DRAWS)], ratios[int(0.975 * DRAWS)]


def compare(row: str, old: Path, new: Path, rounds: int) -> None:
    runs: dict[Path, list[Mapping[str, float]]] = {old: [], new: []}
    for turn in range(rounds):
        for tree in (old, new) if turn % 2 else (new, old):
            runs[tree].append(figures(tree, row))
    for name in runs[old][0]:
        before, after = ([run[name] for run in runs[tree]] for tree in (old, new))
        low, high = interval(before, after)
        was, now = statistics.median(before), statistics.median(after)
        print(f"{now / was:6.2f} [{low:.2f}, {high:.2f}] {was:9.4g} -> {now:9.4g}  {name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", metavar="BASE", help="a commit, or the folder of another tree")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    given = parser.parse_args()
    with tree_of(given.base) as base:
        print(f"{given.base}: {given.rounds} rounds, load {os.getloadavg()[0]:.1f}")
        for row in given.rows.split(","):
            compare(row, base, HERE, given.rounds)


if __name__ == "__main__":
    main()
