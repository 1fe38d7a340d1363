"""How a benchmark run goes, in lines on stderr: each case as it ends, with the rate so far and the time left."""

from __future__ import annotations

import time
from collections import Counter

from mulligan.app.bench.running import Finished
from mulligan.cli.errors import NOT_SOLVED, SOLVED, UNFINISHED
from mulligan.cli.terminal import emit, one_line, say
from mulligan.core.benchmarks import BenchRun, CaseResult


class Progress:
    """`case` is a hook of the run; `ended` and `cut_off` give the exit status."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._run: BenchRun | None = None
        self._began = time.monotonic()
        self._before = 0
        self._counts: Counter[str] = Counter()

    def case(self, run: BenchRun, result: CaseResult | None) -> None:
        first = self._run is None
        self._run = run
        if result is None:
            self._say(f"run {run.id}: {run.benchmark}, {len(run.cases)} cases")
            return
        self._counts[result.status] += 1
        done = self._counts.total()
        if first:
            self._before += 1
        said = f"{done} of {len(run.cases)}: {result.case}: {result.status}"
        trials = max((len(one.scores) for one in result.episodes), default=0)
        why = f": {one_line(result.text, 100)}" if result.status == "error" else ""
        self._say(f"{said}, {trials} trial{'s' * (trials != 1)}, {result.seconds:.1f} s{why}{self._left(run, done)}")

    def interrupting(self) -> None:
        self._say("stopping after what is under way is recorded; once more ends at once")

    def ended(self, finished: Finished) -> int:
        counts = Counter(result.status for result in finished.results)
        total = sum(counts.values())
        emit(
            f"{finished.run.id}: {counts['solved']} of {total} solved, {counts['failed']} failed, "
            f"{counts['unjudged']} unjudged, {counts['error']} errors"
        )
        self._say(f"report: mulligan bench report {finished.run.id}")
        return UNFINISHED if counts["error"] else SOLVED if counts["solved"] == total else NOT_SOLVED

    def cut_off(self) -> int:
        if self._run is not None:
            say(f"Interrupted. Go on with it: mulligan bench run --resume {self._run.id}")
        return UNFINISHED

    def _left(self, run: BenchRun, done: int) -> str:
        """The rate and the time left, from what this process itself has done."""
        here, seconds = done - self._before, time.monotonic() - self._began
        if here < 2 or seconds < 1 or done == len(run.cases):
            return ""
        left = (len(run.cases) - done) * seconds / here
        solved = self._counts["solved"]
        return f" ({solved} solved so far, {60 * here / seconds:.1f} cases/min, about {left / 60:.0f} min left)"

    def _say(self, line: str) -> None:
        if not self._quiet:
            say(line)
