"""Is this tree slower than an older one? Runs a script of perf/ in both, in turns, and compares what the two print.

    git worktree add ../old 913afab
    python perf/alternate.py --old ../old --rounds 10 loop.py --rounds 5

Each tree runs its own script on its own source, with the Python of this call. For each number that every run prints in
the same place: the ratio of the medians, new to old, with a bootstrap interval of 95 %, and the medians; the same for
the CPU seconds of the whole run. Above 1 is slower, except for what counts something good, such as calls a second.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*\.?\d*")
DRAWS = 2000


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def figures(tree: Path, script: str, arguments: Sequence[str]) -> Mapping[str, float]:
    """The numbers that one run prints, by the words of their line and their place in it."""
    before = children_cpu()
    env = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(tree / "perf" / script), *arguments]
    ran = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=1800, check=False)
    if ran.returncode:
        raise SystemExit(f"{script} failed in {tree}:\n{ran.stderr[-2000:]}")
    found = {"CPU seconds of the run": children_cpu() - before}
    for line in ran.stdout.splitlines():
        label = " ".join(NUMBER.sub("#", line).split())
        for place, number in enumerate(NUMBER.findall(line), 1):
            found.setdefault(f"{label} [{place}]", float(number.replace(",", "")))
    return found


def interval(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """95 % of the ratios of medians, over samples drawn again from both."""
    draw = random.Random(0)
    ratios = sorted(
        statistics.median(draw.choices(new, k=len(new))) / statistics.median(draw.choices(old, k=len(old)))
        for _ in range(DRAWS)
    )
    return ratios[int(0.025 * DRAWS)], ratios[int(0.975 * DRAWS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--old", type=Path, required=True, help="a worktree of the older commit")
    parser.add_argument("--new", type=Path, default=HERE)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("script", help="a file of perf/; what follows are its own arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    runs: dict[str, list[Mapping[str, float]]] = {"old": [], "new": []}
    for turn in range(given.rounds):
        for name in ("old", "new") if turn % 2 else ("new", "old"):
            tree = given.old if name == "old" else given.new
            runs[name].append(figures(tree.resolve(), given.script, given.arguments))
    print(f"{given.script} {' '.join(given.arguments)}: {given.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    for label in runs["old"][0]:
        old, new = ([run[label] for run in runs[name] if label in run] for name in ("old", "new"))
        if len(old) == len(new) == given.rounds and all(old) and all(new) and (old != new or len(set(old)) > 1):
            low, high = interval(old, new)
            before, after = statistics.median(old), statistics.median(new)
            print(f"{after / before:6.3f} [{low:.3f}, {high:.3f}]  {before:10.4g} -> {after:10.4g}  {label}")


if __name__ == "__main__":
    main()
