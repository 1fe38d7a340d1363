"""Two runs over the same cases: which of them solved what the other did not, and whether that could be chance. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mulligan.bench.report.figures import Recorded, limit_of, score_at
from mulligan.bench.report.statistics import Paired, paired
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput

DATA = "data "
"""How names of data files begin in what a run rests on."""


@dataclass(frozen=True)
class Comparison:
    """Runs `a` and `b` by id: pass@1 of what each handed in. left_out: cases of both in which one has no verdict.
    alone_a, alone_b: cases that only this run has, or that have not ended in the other."""

    a: str
    b: str
    counts: Paired
    left_out: int
    alone_a: int
    alone_b: int


def compare(a: Recorded, b: Recorded) -> Comparison:
    """Raises `InvalidInput` for runs over other data, without a case in common, or without a verdict on one."""
    who = f"The runs {a.run.id} and {b.run.id} cannot be compared"
    one, other = of_data(a.run), of_data(b.run)
    if changed := sorted(name for name in one.keys() & other.keys() if one[name] != other[name]):
        raise InvalidInput(f"{who}: they read different data ({', '.join(changed)}), so their cases are not the same.")
    if (one or other) and set(one.values()).isdisjoint(other.values()):
        raise InvalidInput(f"{who}: they read different data, so no case is the same.")
    firsts, seconds = _verdicts(a), _verdicts(b)
    shared = [case for case in firsts if case in seconds]
    if not shared:
        raise InvalidInput(f"{who}: they share no case that has ended in both.")
    told = [(x, y) for case in shared if (x := firsts[case]) is not None and (y := seconds[case]) is not None]
    if not told:
        raise InvalidInput(f"{who}: of {len(shared)} shared cases none has a verdict in both.")
    cells = [told.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))]
    counts = paired(*cells)
    return Comparison(
        a.run.id, b.run.id, counts, len(shared) - len(told), len(firsts) - len(shared), len(seconds) - len(shared)
    )


def of_data(run: BenchRun) -> dict[str, str]:
    """The hashes of the data that a run read, by file."""
    return {name.removeprefix(DATA): str(sha) for name, sha in run.rests_on.items() if name.startswith(DATA)}


def _verdicts(recorded: Recorded) -> dict[str, bool | None]:
    limit = limit_of(recorded.run, recorded.results)
    scores = {result.case: score_at(result, limit) for result in recorded.results}
    return {case: None if score is None else score == 1 for case, score in scores.items()}
