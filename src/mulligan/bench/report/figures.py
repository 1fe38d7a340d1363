"""Computes the figures of benchmark runs from their records, and compares runs. Nothing is printed here.

Unknown is not zero: cases that ended with an error, or could not be scored, are excluded from all rates and counted
separately. All rates except pass@k use only the first episode of each case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import combinations
from statistics import fmean
from typing import Any, cast

from mulligan.bench.harness.plan import family_in, refuse_stream
from mulligan.bench.report.about import About, about, data_hashes
from mulligan.bench.report.lessons import Lessons, lessons_by_quality
from mulligan.bench.report.statistics import (
    FEW,
    Estimate,
    Mean,
    clustered,
    groups,
    holm,
    mean,
    paired_detectable,
    pass_at_k,
    pass_hat_k,
)
from mulligan.core.benchmarks import BenchRun, CaseResult, Marked, Status
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.rates import Paired, Rate, paired, rate
from mulligan.core.records import Episode, Json, Usage
from mulligan.text.plain import count

ORACLE = "oracle"
"""The `source` of feedback from an evaluator that knows the target."""


@dataclass(frozen=True)
class Recorded:
    """The record of a run: the results of its ended cases, in order, and their episodes by id."""

    run: BenchRun
    results: Sequence[CaseResult]
    episodes: Mapping[str, Episode]

    def firsts(self) -> list[tuple[CaseResult, Episode]]:
        """The result and the first episode of each case that has one."""
        firsts = ((result, self.episodes.get(result.episodes[0].episode)) for result in self.results if result.episodes)
        return [(result, episode) for result, episode in firsts if episode is not None]


@dataclass(frozen=True)
class AtTrial:
    """The run as if each episode had been limited to `trial` trials.

    Attributes:
        unscored: the number of cases without a verdict at that point.
        mean: the mean score. None: all scores are 0 or 1.
    """

    trial: int
    solved: Rate
    unscored: int
    mean: Mean | None


@dataclass(frozen=True)
class AtEpisode:
    """The rates for `k` episodes of each case.

    Attributes:
        estimate: pass@k, the unbiased mean over the cases with `k` scored samples. None: restarts, which stop at the
            first solved episode.
        every: pass^k, the same for all `k` episodes right.
        within: the cases that one of the first `k` episodes solved. Only an oracle could choose that episode.
    """

    k: int
    estimate: Mean | None
    every: Mean | None
    within: Rate


@dataclass(frozen=True)
class Verdicts:
    """In how many cases the loop's own verdict agrees with the hidden one.

    Attributes:
        no_verdict: the number of cases without a verdict of the loop or the benchmark.
    """

    right_accepts: int
    false_accepts: int
    right_rejects: int
    false_rejects: int
    no_verdict: int


@dataclass(frozen=True)
class Spent:
    """What all episodes used, including those that ended with an error.

    Attributes:
        tokens_per_solved, cost_per_solved, seconds_per_solved: None: no case was solved, or the sum is unknown.
        by_role: the usage by the role that called the model. "lost": of steps that were interrupted or failed.
    """

    usage: Usage
    seconds: float
    tokens_per_solved: float | None
    cost_per_solved: float | None
    seconds_per_solved: float | None
    by_role: Mapping[str, Usage]


@dataclass(frozen=True)
class StrategyCost:
    """What the strategy costs: mean numbers of tokens over the first episodes of all cases.

    Attributes:
        later_trials: the number of trials after the first of an episode.
        first: input tokens of an actor's call in a first trial.
        later: input tokens of an actor's call in a later trial.
        past: how many more input tokens a later trial has than the first trial of its episode.
        attempt: output tokens of an attempt.
        reflection: output tokens of a reflection.
        trial: all tokens of a trial.
    """

    strategy: str
    later_trials: int
    first: float | None
    later: float | None
    past: float | None
    attempt: float | None
    reflection: float | None
    trial: float | None


@dataclass(frozen=True)
class Figures:
    """All figures of one run.

    Attributes:
        cases, ended: the number of cases, and of those that have ended.
        oracle: whether an evaluator that knows the target judged in the loop.
        graded: whether some score is neither 0 nor 1.
        limit: the maximum number of trials of an episode.
        parts: like `trials`, for each part of the score, by its name.
        lessons: the lessons of the first episodes, by quality, and what the next trials did.
        samples: the mean score over all samples of all cases, clustered by family (by case if families are few).
            None: each case has one sample, and there are no families.
    """

    cases: int
    ended: int
    statuses: Mapping[Status, int]
    oracle: bool
    graded: bool
    limit: int
    trials: Sequence[AtTrial]
    parts: Mapping[str, Sequence[AtTrial]]
    episodes: Sequence[AtEpisode]
    samples: Estimate | None
    at_first: Verdicts
    at_end: Verdicts
    spent: Spent
    shown: StrategyCost
    lessons: Sequence[Lessons] = ()


def figures(recorded: Recorded) -> Figures:
    """Compute all figures of a run."""
    run, results = recorded.run, recorded.results
    counts = Counter(result.status for result in results)
    marks = [mark for result in results for mark in result.episodes]
    scores = [score for mark in marks for score in mark.scores]
    limit, graded = limit_of(run, results), any(score not in (None, 0, 1) for score in scores)
    parts = dict.fromkeys(part for mark in marks for part in mark.parts)
    return Figures(
        cases=len(run.cases),
        ended=len(results),
        statuses={status: counts[status] for status in ("solved", "failed", "unjudged", "error")},
        oracle=any(judged_by_oracle(episode) for episode in recorded.episodes.values()),
        graded=graded,
        limit=limit,
        trials=[_at_trial(results, trial, graded) for trial in range(1, limit + 1)],
        parts={part: [_at_trial(results, trial, False, part) for trial in range(1, limit + 1)] for part in parts},
        episodes=_by_episode(run, results),
        samples=_over_samples(recorded) if _in_clusters(recorded) else None,
        at_first=_verdicts(recorded, first=True),
        at_end=_verdicts(recorded, first=False),
        spent=_spent(recorded, counts["solved"]),
        shown=_strategy_cost(recorded),
        lessons=lessons_by_quality(episode for _, episode in recorded.firsts()),
    )


def score_at(result: CaseResult, trial: int, part: str | None = None) -> float | None:
    """The score of the case's first episode if it had been limited to this many trials. None: unknown.

    part: return the score of this part instead.
    """
    first = result.episodes[0] if result.episodes else Marked("")
    scores = first.scores if part is None else first.parts.get(part, ())
    return scores[min(trial, len(scores)) - 1] if scores and result.status != "error" else None


def limit_of(run: BenchRun, results: Sequence[CaseResult]) -> int:
    """The maximum number of trials of an episode, from the settings of the run, or else from its results."""
    limits = run.rests_on.get("setting limits")
    limit = cast(dict[str, Any], limits).get("trials") if isinstance(limits, dict) else None
    most = max((len(mark.scores) for result in results for mark in result.episodes), default=0)
    return max(most, limit if isinstance(limit, int) else 0)


def judged_by_oracle(episode: Episode) -> bool:
    return any(trial.feedback is not None and trial.feedback.source == ORACLE for trial in episode.trials)


def _at_trial(results: Sequence[CaseResult], trial: int, graded: bool, part: str | None = None) -> AtTrial:
    judged = [result for result in results if result.status != "error"]
    scores = [score for result in judged if (score := score_at(result, trial, part)) is not None]
    solved = rate(sum(score == 1 for score in scores), len(scores))
    return AtTrial(trial, solved, len(judged) - len(scores), mean(scores) if graded else None)


def _by_episode(run: BenchRun, results: Sequence[CaseResult]) -> Sequence[AtEpisode]:
    samples = run.options.get("samples")
    most = int(samples or run.options.get("restarts") or 1)
    if most == 1:
        return ()
    cases = [scores for result in results if result.status != "error" and (scores := final_scores(result))]
    figures = list[AtEpisode]()
    for k in range(1, most + 1):
        any_right = _mean_estimate(cases, k, pass_at_k) if samples else None
        all_right = _mean_estimate(cases, k, pass_hat_k) if samples else None
        within = rate(sum(1 in scores[:k] for scores in cases), len(cases))
        figures.append(AtEpisode(k, any_right, all_right, within))
    return figures


def final_scores(result: CaseResult) -> list[float]:
    """The final scores of the episodes that were scored, in order."""
    return [mark.score for mark in result.episodes if mark.score is not None]


def _mean_estimate(
    cases: Sequence[Sequence[float]], k: int, estimator: Callable[[int, int, int], float]
) -> Mean | None:
    """The mean of an estimator over the cases that have at least `k` scores."""
    enough = [scores for scores in cases if len(scores) >= k]
    return mean([estimator(len(scores), scores.count(1), k) for scores in enough])


def _verdicts(recorded: Recorded, *, first: bool) -> Verdicts:
    counts: Counter[tuple[bool, bool] | None] = Counter()
    for result, episode in recorded.firsts():
        if result.status == "error":
            continue
        loop = _loop_verdict(episode, first=first)
        hidden = score_at(result, 1) if first else result.episodes[0].score
        counts[None if loop is None or hidden is None else (loop, hidden == 1)] += 1
    return Verdicts(
        right_accepts=counts[True, True],
        false_accepts=counts[True, False],
        right_rejects=counts[False, False],
        false_rejects=counts[False, True],
        no_verdict=counts[None],
    )


def _loop_verdict(episode: Episode, *, first: bool) -> bool | None:
    """The loop's own verdict on the first attempt, or on the attempt that was handed in. None: there is none."""
    if first:
        feedback = episode.trials[0].feedback if episode.trials else None
        return feedback.passed if feedback else None
    if episode.solved:
        return True
    return False if episode.judged else None


def _spent(recorded: Recorded, solved: int) -> Spent:
    usage = sum((result.usage for result in recorded.results), Usage())
    seconds = round(sum(result.seconds for result in recorded.results), 3)
    roles: dict[str, Usage] = {role: Usage() for role in ("actor", "evaluator", "reflector", "lost")}
    for episode in recorded.episodes.values():
        roles["lost"] += episode.lost
        for trial in episode.trials:
            roles["actor"] += trial.attempt.usage
            roles["evaluator"] += trial.feedback.usage if trial.feedback else Usage()
            roles["reflector"] += trial.reflection.usage if trial.reflection else Usage()

    def per_solved(total: float | None) -> float | None:
        return None if total is None or not solved else total / solved

    return Spent(usage, seconds, per_solved(usage.tokens), per_solved(usage.cost), per_solved(seconds), roles)


def _strategy_cost(recorded: Recorded) -> StrategyCost:
    first_inputs, later_inputs, differences = list[float](), list[float](), list[float]()
    episodes = [episode for result, episode in recorded.firsts() if result.status != "error"]
    for episode in episodes:
        usages = [trial.attempt.usage for trial in episode.trials]
        inputs = [usage.input_tokens / usage.calls if usage.calls else None for usage in usages]
        later = [tokens for tokens in inputs[1:] if tokens is not None]
        later_inputs += later
        if inputs and (first := inputs[0]) is not None:
            first_inputs.append(first)
            differences += [tokens - first for tokens in later]
    trials = [trial for episode in episodes for trial in episode.trials]
    reflections = [trial.reflection for trial in trials if trial.reflection]
    return StrategyCost(
        strategy=next((strategy_of(episode) for episode in episodes), ""),
        later_trials=len(later_inputs),
        first=_mean(first_inputs),
        later=_mean(later_inputs),
        past=_mean(differences),
        attempt=_mean([trial.attempt.usage.output_tokens for trial in trials if trial.attempt.usage.calls]),
        reflection=_mean([one.usage.output_tokens for one in reflections if one.usage.calls]),
        trial=_mean([trial.usage.tokens for trial in trials if trial.usage.calls]),
    )


def strategy_of(episode: Episode) -> str:
    """The name of the strategy of an episode."""
    spec = episode.head.settings.get("strategy")
    return str(cast(dict[str, Any], spec).get("name", "")) if isinstance(spec, dict) else ""


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


@dataclass(frozen=True)
class Comparison:
    """Two runs, `a` and `b` (their ids), compared by pass@1 of the attempts that were handed in.

    Attributes:
        counts: over the cases that have a verdict in both.
        samples: the mean difference between the mean scores of each case, over all its samples, clustered by family.
            None: each run has one sample of each case, and there are no families.
        p: of `samples`, or else of `counts`, corrected for the number of comparisons in the report (Holm).
        detectable: the smallest difference that would have been found with a power of 80 %. None: unknown.
        left_out: the number of cases of both runs without a verdict in one of them.
        alone_a, alone_b: the number of cases that only this run has, or that have not ended in the other.
    """

    a: str
    b: str
    counts: Paired
    left_out: int
    alone_a: int
    alone_b: int
    samples: Estimate | None
    detectable: float | None
    p: float


def compare(a: Recorded, b: Recorded) -> Comparison:
    """Compare two runs. Raises `InvalidInput` if their data differs, or no case has a verdict in both."""
    refusal = f"The runs {a.run.id} and {b.run.id} cannot be compared"
    data_a, data_b = data_hashes(a.run), data_hashes(b.run)
    if changed := sorted(name for name in data_a.keys() & data_b.keys() if data_a[name] != data_b[name]):
        raise InvalidInput(
            f"{refusal}: they used different data ({', '.join(changed)}), so their cases are not the same."
        )
    if (data_a or data_b) and set(data_a.values()).isdisjoint(data_b.values()):
        raise InvalidInput(f"{refusal}: they used different data, so they have no cases in common.")
    verdicts_a, verdicts_b = _verdicts_by_case(a), _verdicts_by_case(b)
    shared = [case for case in verdicts_a if case in verdicts_b]
    if not shared:
        raise InvalidInput(f"{refusal}: no case finished in both runs.")
    pairs = [pair for case in shared if None not in (pair := (verdicts_a[case], verdicts_b[case]))]
    if not pairs:
        raise InvalidInput(f"{refusal}: of {count(len(shared), 'shared case')}, none has a verdict in both runs.")
    counts = paired(*(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))))
    samples = _over_samples(a, b) if _in_clusters(a) or _in_clusters(b) else None
    return Comparison(
        a.run.id,
        b.run.id,
        counts,
        left_out=len(shared) - len(pairs),
        alone_a=len(verdicts_a) - len(shared),
        alone_b=len(verdicts_b) - len(shared),
        samples=samples,
        detectable=paired_detectable(counts) if samples is None else samples.detectable,
        p=counts.p if samples is None or samples.p is None else samples.p,
    )


def _in_clusters(recorded: Recorded) -> bool:
    """Whether verdicts are correlated: there are several samples of a case, or families of cases."""
    families = {_family(result) for result in recorded.results}
    return int(recorded.run.options.get("samples") or 1) > 1 or FEW <= len(families) < len(recorded.results)


def _family(result: CaseResult) -> str:
    return result.family or family_in(result.case)


def _case_means(recorded: Recorded) -> dict[str, float]:
    """The mean score of each case, over all its scored samples."""
    judged = (result for result in recorded.results if result.status != "error")
    return {result.case: fmean(scores) for result in judged if (scores := final_scores(result))}


def _over_samples(a: Recorded, b: Recorded | None = None) -> Estimate | None:
    """The mean score of `a` over all samples; with `b`, how much higher that of `b` is, on their common cases."""
    values, families = _case_means(a), {result.case: _family(result) for result in a.results}
    others = {} if b is None else _case_means(b)
    bound = 1.0 if all(0 <= score <= 1 for score in (*values.values(), *others.values())) else math.inf
    if b is not None:
        values = {case: others[case] - score for case, score in values.items() if case in others}
    if not values:
        return None
    return clustered(list(values.values()), groups([families[case] for case in values], list(values)), most=bound)


def _verdicts_by_case(recorded: Recorded) -> dict[str, bool | None]:
    """Whether each case was solved. None: it has no verdict."""
    limit = limit_of(recorded.run, recorded.results)
    scores = {result.case: score_at(result, limit) for result in recorded.results}
    return {case: None if score is None else score == 1 for case, score in scores.items()}


SCHEMA = 2
"""The version of the JSON format. It increases when a key is removed or changes its meaning."""
_MAX_EPISODES = 1_000_000


@dataclass(frozen=True)
class RunReport:
    """One run in a report."""

    about: About
    figures: Figures
    recorded: Recorded

    @property
    def label(self) -> str:
        """A short name for tables and plots. The report makes it unique."""
        method = self.about.method or self.about.benchmark
        return f"{method} with {self.about.strategy}" if self.about.replaced else method


@dataclass(frozen=True)
class Report:
    """Runs side by side.

    Attributes:
        labels: a unique label for each run.
        comparisons: the first run compared with each of the others, or all pairs.
    """

    runs: Sequence[RunReport]
    labels: Sequence[str]
    comparisons: Sequence[Comparison]


async def read_run(store: Store, prefix: str) -> Recorded:
    """The record of the run whose id begins with `prefix`. Raises `NotFound`, `StoreError`."""
    run = await store.benches.run(prefix)
    refuse_stream(run)
    results = await store.benches.results(run.id)
    ended = {f"{run.id}.{result.position}" for result in results}
    episodes = await store.list(run=run.id, limit=_MAX_EPISODES)
    of_ended = {episode.id: episode for episode in episodes if episode.id.rpartition(".")[0] in ended}
    return Recorded(run, results, of_ended)


def make_report(recorded: Sequence[Recorded], *, every_pair: bool = False) -> Report:
    """Compute the report of these runs.

    Args:
        every_pair: compare all pairs of runs, instead of the first with each of the others.

    Raises:
        InvalidInput: a run is named twice, or two runs cannot be compared.
    """
    ids = [record.run.id for record in recorded]
    if len(set(ids)) < len(ids):
        raise InvalidInput("A run is listed twice: list each run once.")
    runs = [RunReport(about(record.run, record.episodes.values()), figures(record), record) for record in recorded]
    pairs = [pair for pair in combinations(recorded, 2) if every_pair or pair[0] is recorded[0]]
    comparisons = [compare(a, b) for a, b in pairs]
    corrected = holm([comparison.p for comparison in comparisons])
    comparisons = [replace(comparison, p=p) for comparison, p in zip(comparisons, corrected, strict=True)]
    return Report(runs, _labels(runs), comparisons)


def _labels(runs: Sequence[RunReport]) -> Sequence[str]:
    """The method of each run. If two are the same, followed by the model or the memory, or else by the run's id."""
    labels = [run.label for run in runs]
    models = [next(iter(run.about.models.values()), "").partition("@")[0] for run in runs]
    memories = [
        f"memory {memory}" if (memory := run.recorded.run.options.get("memory")) else "no memory" for run in runs
    ]
    for extra in (models, memories, [run.about.run for run in runs]):
        if len(set(labels)) == len(labels):
            break
        if len(set(extra)) > 1:
            labels = [f"{label} ({more})" if more else label for label, more in zip(labels, extra, strict=True)]
    return labels


def as_json(report: Report) -> Json:
    """The report as JSON. docs/benchmark-report.md describes the keys."""
    return {
        "schema": SCHEMA,
        "mulligan": version("mulligan"),
        "runs": [
            {"label": label, **asdict(run.about), **asdict(run.figures)}
            for label, run in zip(report.labels, report.runs, strict=True)
        ],
        "comparisons": [asdict(comparison) for comparison in report.comparisons],
    }
