"""Scores solutions that were generated elsewhere, in human-eval's JSONL format, without a model or a loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
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
"""The values of k for which pass@k is reported, as in human-eval."""


@dataclass(frozen=True)
class Sample:
    """A solution. line: its line in the file, from 1. case: the id of its case."""

    line: int
    case: str
    output: str


@dataclass(frozen=True)
class Judged:
    """A sample with its score.

    Attributes:
        value: 1: solved. 0: not solved. None: could not be judged.
        text: the reason.
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
"""Called with the number of judged samples, and the number of all."""


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
        ids: dict[str, list[str]] = {"solved": [], "failed": [], "unjudged": []}
        for id, samples in self._by_case().items():
            judged = [sample for sample in samples if sample.value is not None]
            status = "solved" if any(sample.passed for sample in judged) else "failed" if judged else "unjudged"
            ids[status].append(id)
        return ids

    def parts(self) -> Sequence[str]:
        """The parts of the tests that have separate scores, such as EvalPlus's base and plus."""
        return list(dict.fromkeys(part for sample in self.judged for part in sample.parts))

    def pass_at(self, part: str | None = None) -> Mapping[int, float]:
        """pass@k by k: the mean of the unbiased estimate over the judged cases.

        Each k for which a case has too few samples is left out.

        Args:
            part: count only this part of the tests. None: all tests.
        """
        verdicts = list[list[bool]]()
        for samples in self._by_case().values():
            judged = [sample for sample in samples if sample.value is not None]
            verdicts.append([sample.passed if part is None else sample.parts.get(part) == 1 for sample in judged])
        verdicts = [passed for passed in verdicts if passed]
        fewest = min(map(len, verdicts), default=0)
        return {k: fmean(pass_at_k(len(passed), sum(passed), k) for passed in verdicts) for k in KS if k <= fewest}

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
                    "line": judged.sample.line,
                    "task_id": judged.sample.case,
                    "passed": None if judged.value is None else judged.passed,
                    "parts": dict(judged.parts),
                    "text": judged.text,
                }
                for judged in self.judged
            ],
        }

    def _by_case(self) -> Mapping[str, Sequence[Judged]]:
        by_case: dict[str, list[Judged]] = {}
        for judged in self.judged:
            by_case.setdefault(judged.sample.case, []).append(judged)
        return by_case


@dataclass(frozen=True)
class Setting:
    """How samples are judged. parallel: how many at once. None: one per processor."""

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
    """Judge each sample in a file.

    Args:
        benchmark: `name` or `name:argument`.
        samples: a .jsonl or .jsonl.gz file whose rows have a `task_id` and a `completion`, which is a function or its
            body. A case can have several rows.
        on_progress: see `OnProgress`.

    Raises:
        InvalidInput: the file cannot be used. The message gives the line.
        UnknownName: no benchmark has this name.
        SandboxError: the sandbox cannot start.
    """
    config = load()
    sandbox = Session(config, Models(config)).sandbox(setting.sandbox)
    _, judge, data = open_benchmark(benchmark, setting.settings, sandbox)
    cases = {case.id: case for case in judge.load(find_data(judge, data or setting.data))}
    read = read_samples(samples, cases)
    slots, done = asyncio.Semaphore(setting.parallel or os.cpu_count() or 1), 0

    async def judge_sample(sample: Sample) -> Judged:
        nonlocal done
        async with slots:
            result = await _judged(judge, cases[sample.case], sample)
        done += 1
        if on_progress:
            on_progress(done, len(read))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge_sample(sample)) for sample in read]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    with_samples = {sample.case for sample in read}
    return Scored(benchmark, [task.result() for task in tasks], [id for id in cases if id not in with_samples])


async def _judged(benchmark: Benchmark, case: Case, sample: Sample) -> Judged:
    """Judges a sample. If the judge fails, it has no score. Raises `SandboxError` if the sandbox cannot start."""
    episode = Episode(f"{case.id}.{sample.line}", case.task, trials=(Trial(1, Attempt(sample.output)),))
    try:
        score = await benchmark.score(case, episode)
    except SandboxError:
        raise
    except Exception as error:
        return Judged(sample, None, f"{type(error).__name__}: {error}")
    return Judged(sample, score.value, score.text, score.parts)


def read_samples(path: str | os.PathLike[str], cases: Mapping[str, Case]) -> list[Sample]:
    """The samples of a file. Raises `InvalidInput` with the line, also for a case that is not in the benchmark."""
    file = Path(path).expanduser()
    samples, place = list[Sample](), str(file)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"The samples {file} cannot be read: {error.strerror}.") from error
    for line, row in objects(raw, place):
        id = text_in(place, line, row, "task_id", "name")
        if id not in cases:
            raise InvalidInput(f"{file}, line {line}: {UnknownName('case', id, cases)}")
        samples.append(Sample(line, id, text_in(place, line, row, "completion", "solution")))
    if not samples:
        raise InvalidInput(f"{file} has no sample: each line needs task_id and completion.")
    return samples
