"""Computes the figures of benchmark runs from their records, and compares runs. Nothing is printed here.

Unknown is not zero: cases that ended with an error, or that could not be scored, are left out of every rate and counted
apart. All rates but pass@k take only the first episode of each case.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, replace
from importlib.metadata import version
from itertools import combinations
from statistics import fmean
from typing import Any, cast

from mulligan.app.plugins import short_name
from mulligan.bench.harness.plan import (
    LOG,
    SETTING,
    BenchOptions,
    choice_json,
    family_in,
    options_of_today,
    refuse_stream,
)
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

ORACLE = "oracle"
"""The `source` of feedback that an evaluator gave who knows the target."""


@dataclass(frozen=True)
class Recorded:
    """A run as the store has it: the results of the cases that have ended, in order, and their episodes by id."""

    run: BenchRun
    results: Sequence[CaseResult]
    episodes: Mapping[str, Episode]

    def firsts(self) -> list[tuple[CaseResult, Episode]]:
        """Each case that has an episode, with its first one."""
        found = ((r, self.episodes.get(r.episodes[0].episode)) for r in self.results if r.episodes)
        return [(result, episode) for result, episode in found if episode is not None]


@dataclass(frozen=True)
class AtTrial:
    """The run as if each episode had been limited to `trial` trials.

    Attributes:
        unscored: cases without a verdict by then.
        mean: of the scores; None where all are 0 or 1.
    """

    trial: int
    solved: Rate
    unscored: int
    mean: Mean | None


@dataclass(frozen=True)
class AtEpisode:
    """The rates for `k` episodes of each case.

    Attributes:
        estimate: pass@k, unbiased, averaged over the cases with `k` scored samples; None for restarts, which stop at
            the first solved episode.
        every: pass^k, the same for all `k` being right.
        within: the cases that one of the first `k` episodes solved. Only who knows the target could pick that one.
    """

    k: int
    estimate: Mean | None
    every: Mean | None
    within: Rate


@dataclass(frozen=True)
class Verdicts:
    """How often the loop's own verdict agrees with the hidden one, in cases.

    Attributes:
        no_verdict: cases where the loop or the benchmark gave none.
    """

    right_accepts: int
    false_accepts: int
    right_rejects: int
    false_rejects: int
    no_verdict: int


@dataclass(frozen=True)
class Spent:
    """What all episodes used, those that ended with an error included.

    Attributes:
        tokens_per_solved, cost_per_solved, seconds_per_solved: None where no case was solved or the sum is unknown.
        by_role: the same usage by the role that called the model; "lost" is that of steps that were interrupted or
            failed.
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
        later_trials: the number of trials after an episode's first.
        first: input of one call of the actor in a first trial.
        later: the same in later trials.
        past: how much more input a later trial has than the first trial of its episode.
        attempt: output of one attempt.
        reflection: output of one reflection.
        trial: input and output of a whole trial.
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
        cases: how many the run has; ended: how many of them have ended.
        oracle: an evaluator that knows the target judged in the loop.
        graded: some score is neither 0 nor 1.
        limit: the most trials of an episode.
        parts: as `trials`, for each part of the score, by name.
        lessons: by quality, beside what the next trial did; of the first episode of each case.
        samples: the mean score over all samples of all cases, clustered by family (by case where families are few);
            None where there is one sample of each case, and no families.
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
    scores = [score for result in results for one in result.episodes for score in one.scores]
    limit, graded = limit_of(run, results), any(score not in (None, 0, 1) for score in scores)
    parts = dict.fromkeys(part for result in results for one in result.episodes for part in one.parts)
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
    """The score of the case's first episode if it had been limited to so many trials; None where it is unknown.

    part: give the score of this part instead.
    """
    first = result.episodes[0] if result.episodes else Marked("")
    scores = first.scores if part is None else first.parts.get(part, ())
    return scores[min(trial, len(scores)) - 1] if scores and result.status != "error" else None


def limit_of(run: BenchRun, results: Sequence[CaseResult]) -> int:
    """The most trials of an episode, by the settings of the run; where these are not recorded, by its results."""
    limits = run.rests_on.get("setting limits")
    known = cast(dict[str, Any], limits).get("trials") if isinstance(limits, dict) else None
    most = max((len(one.scores) for result in results for one in result.episodes), default=0)
    return max(most, known if isinstance(known, int) else 0)


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
    found = list[AtEpisode]()
    for k in range(1, most + 1):
        any_right, all_right = (_estimate(cases, k, of) if samples else None for of in (pass_at_k, pass_hat_k))
        found.append(AtEpisode(k, any_right, all_right, _within(cases, k)))
    return found


def final_scores(result: CaseResult) -> list[float]:
    """The final score of each episode that was scored, in order."""
    return [one.score for one in result.episodes if one.score is not None]


def _estimate(cases: Sequence[Sequence[float]], k: int, of: Callable[[int, int, int], float]) -> Mean | None:
    enough = [scores for scores in cases if len(scores) >= k]
    return mean([of(len(scores), sum(score == 1 for score in scores), k) for scores in enough])


def _within(cases: Sequence[Sequence[float]], k: int) -> Rate:
    return rate(sum(1 in scores[:k] for scores in cases), len(cases))


def _verdicts(recorded: Recorded, *, first: bool) -> Verdicts:
    counts: Counter[tuple[bool, bool] | None] = Counter()
    for result, episode in recorded.firsts():
        if result.status == "error":
            continue
        loop = _loop_says(episode, first=first)
        hidden = score_at(result, 1) if first else result.episodes[0].score
        counts[None if loop is None or hidden is None else (loop, hidden == 1)] += 1
    yes, no = True, False
    return Verdicts(counts[yes, yes], counts[yes, no], counts[no, no], counts[no, yes], counts[None])


def _loop_says(episode: Episode, *, first: bool) -> bool | None:
    """The loop's own verdict, on the first attempt or on the one handed in at the end; None where it gave none."""
    if first:
        feedback = episode.trials[0].feedback if episode.trials else None
        return feedback.passed if feedback else None
    return True if episode.solved else False if episode.judged else None


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

    def each(total: float | None) -> float | None:
        return None if total is None or not solved else total / solved

    return Spent(usage, seconds, each(usage.tokens), each(usage.cost), each(seconds), roles)


def _strategy_cost(recorded: Recorded) -> StrategyCost:
    firsts, laters, pasts = list[float](), list[float](), list[float]()
    episodes = [episode for result, episode in recorded.firsts() if result.status != "error"]
    for episode in episodes:
        usages = [trial.attempt.usage for trial in episode.trials]
        inputs = [usage.input_tokens / usage.calls if usage.calls else None for usage in usages]
        known = [tokens for tokens in inputs[1:] if tokens is not None]
        laters += known
        if inputs and (begin := inputs[0]) is not None:
            firsts.append(begin)
            pasts += [tokens - begin for tokens in known]
    trials = [trial for episode in episodes for trial in episode.trials]
    called = [trial for trial in trials if trial.usage.calls]
    return StrategyCost(
        next((strategy_of(episode) for episode in episodes), ""),
        len(laters),
        _mean(firsts),
        _mean(laters),
        _mean(pasts),
        _mean([trial.attempt.usage.output_tokens for trial in trials if trial.attempt.usage.calls]),
        _mean([t.reflection.usage.output_tokens for t in trials if t.reflection and t.reflection.usage.calls]),
        _mean([trial.usage.tokens for trial in called]),
    )


def strategy_of(episode: Episode) -> str:
    """The name of the strategy of an episode."""
    spec = episode.head.settings.get("strategy")
    return str(cast(dict[str, Any], spec).get("name", "")) if isinstance(spec, dict) else ""


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


DATA = "data "
"""The prefix of the names of data files in `BenchRun.rests_on`."""


@dataclass(frozen=True)
class Comparison:
    """Two runs, `a` and `b` (their ids), compared by pass@1 of the attempts handed in.

    Attributes:
        counts: over the cases that have a verdict in both.
        samples: the difference of the mean scores of each case, over all its samples, clustered by family; None where
            each run has one sample of each case, and no families.
        p: of `samples`, or else of `counts`, corrected for the number of comparisons in the report (Holm).
        detectable: the least difference that would have been found with a power of 80 %; None where it is not known.
        left_out: cases of both runs without a verdict in one of them.
        alone_a, alone_b: cases that only this run has, or that have not ended in the other.
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
    """Compare two runs. Raises `InvalidInput` where their data differs, or no case has a verdict in both."""
    who = f"The runs {a.run.id} and {b.run.id} cannot be compared"
    one, other = data_hashes(a.run), data_hashes(b.run)
    if changed := sorted(name for name in one.keys() & other.keys() if one[name] != other[name]):
        raise InvalidInput(f"{who}: they read different data ({', '.join(changed)}), so their cases are not the same.")
    if (one or other) and set(one.values()).isdisjoint(other.values()):
        raise InvalidInput(f"{who}: they read different data, so they have no case in common.")
    firsts, seconds = _verdict_of_each(a), _verdict_of_each(b)
    shared = [case for case in firsts if case in seconds]
    if not shared:
        raise InvalidInput(f"{who}: no case finished in both runs.")
    known = [(x, y) for case in shared if (x := firsts[case]) is not None and (y := seconds[case]) is not None]
    if not known:
        raise InvalidInput(f"{who}: of {len(shared)} shared cases, none has a verdict in both runs.")
    cells = [known.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))]
    counts = paired(*cells)
    left_out, alone = len(shared) - len(known), (len(firsts) - len(shared), len(seconds) - len(shared))
    samples = _over_samples(a, b) if _in_clusters(a) or _in_clusters(b) else None
    p = counts.p if samples is None or samples.p is None else samples.p
    detectable = paired_detectable(counts) if samples is None else samples.detectable
    return Comparison(a.run.id, b.run.id, counts, left_out, *alone, samples, detectable, p)


def _in_clusters(recorded: Recorded) -> bool:
    """Whether verdicts go together: there are several samples of a case, or families of cases."""
    families = {_family(result) for result in recorded.results}
    return int(recorded.run.options.get("samples") or 1) > 1 or FEW <= len(families) < len(recorded.results)


def _family(result: CaseResult) -> str:
    return result.family or family_in(result.case)


def _case_means(recorded: Recorded) -> dict[str, float]:
    """The mean score of each case, over all its samples that were scored."""
    scored = {r.case: scores for r in recorded.results if r.status != "error" and (scores := final_scores(r))}
    return {case: fmean(scores) for case, scores in scored.items()}


def _over_samples(a: Recorded, b: Recorded | None = None) -> Estimate | None:
    """The mean score over all samples, or how much that of `b` is higher, on their common cases."""
    first, families = _case_means(a), {result.case: _family(result) for result in a.results}
    second = {} if b is None else _case_means(b)
    most = 1.0 if all(0 <= score <= 1 for score in (*first.values(), *second.values())) else math.inf
    if b is not None:
        first = {case: second[case] - score for case, score in first.items() if case in second}
    cases = list(first)
    if not cases:
        return None
    return clustered(list(first.values()), groups([families[case] for case in cases], cases), most=most)


def data_hashes(run: BenchRun) -> dict[str, str]:
    """The sha256 of each data file that a run read, by the file's name."""
    return {name.removeprefix(DATA): str(sha) for name, sha in run.rests_on.items() if name.startswith(DATA)}


def _verdict_of_each(recorded: Recorded) -> dict[str, bool | None]:
    limit = limit_of(recorded.run, recorded.results)
    scores = {result.case: score_at(result, limit) for result in recorded.results}
    return {case: None if score is None else score == 1 for case, score in scores.items()}


MODEL = "model of the "
"""The prefix of the names of models in `BenchRun.rests_on`."""
_OWN_ROW = ("benchmark", "method", "strategy", "model", "seed", "cases")
"""Options that have a row of their own in the table that describes a run."""
_LIMITS = {"tokens": "max-tokens", "cost": "max-cost", "seconds": "max-seconds"}


@dataclass(frozen=True)
class About:
    """How a run was set up.

    Attributes:
        method: one of the benchmark's.
        strategy: decided what the next trial was shown.
        replaced: the user chose the strategy instead of the method's own.
        created: when it began, in seconds since 1970.
        models: ids by role; local ones with the hash of their weights.
        data: sha256 by file.
        differs: options that are not the defaults.
        versions: of Mulligan and the libraries that matter, by name.
        command: starts such a run again.
        scripted: why this is not the result of a model; empty where it is one.
    """

    run: str
    benchmark: str
    method: str
    strategy: str
    replaced: bool
    created: float
    models: Mapping[str, str]
    data: Mapping[str, str]
    differs: Mapping[str, Json]
    seed: int
    versions: Mapping[str, str]
    command: str
    scripted: str


def about(run: BenchRun, episodes: Iterable[Episode]) -> About:
    """Read from a run and its episodes how it was set up."""
    options = options_of_today(run.options)
    models = {n.removeprefix(MODEL): str(id) for n, id in run.rests_on.items() if n.startswith(MODEL)}
    versions: dict[str, str] = {}
    for episode in episodes:
        for name, number in episode.head.versions.items():
            known = versions.setdefault(name, number)
            versions[name] = known if number in known.split(", ") else f"{known}, {number}"
    return About(
        run.id,
        run.benchmark,
        str(options.get("method") or ""),
        _strategy(run),
        bool(options.get("strategy")),
        run.created,
        models,
        data_hashes(run),
        {name: value for name, value in _differing(options).items() if name not in _OWN_ROW},
        int(cast(int, options.get("seed", 0))),
        versions,
        command_of(run),
        _scripted([*models.values(), str(options.get("model") or "")]),
    )


def _strategy(run: BenchRun) -> str:
    """The name of the run's strategy; of a file without its folder."""
    spec = run.rests_on.get(f"{SETTING}strategy")
    return short_name(str(cast(dict[str, Json], spec)["name"])) if isinstance(spec, dict) else ""


def _differing(options: Mapping[str, Json]) -> dict[str, Json]:
    """The options that differ from the defaults, and those that this version does not know."""
    defaults = choice_json(BenchOptions(""))
    return {name: value for name, value in options.items() if defaults.get(name, MISSING) != value}


def _scripted(models: Iterable[str]) -> str:
    named = [model for model in models if model]
    if any(re.match(r"scripted\b", model) for model in named):
        return "Scripted model: not a result. The answers were written beforehand, and say nothing about any model."
    if any(re.match(r"reader\b", model) for model in named):
        return "Scripted reader: it answers by rule from what it is shown, so the figures say nothing about a model."
    if any(re.match(r"replay\b|log:", model) for model in named):
        return "Replayed model: not a result of its own. The answers come from an earlier run or log."
    if not named:
        return "No model took part, so this is not a result of a model."
    return ""


def command_of(run: BenchRun) -> str:
    """The command that starts such a run."""
    words = ["mulligan", "bench", "run", run.benchmark]
    if run.benchmark.startswith(LOG):
        words[2:] = ["replay", run.benchmark.removeprefix(LOG)]
    for name, value in _differing(options_of_today(run.options)).items():
        flag = f"--{name.replace('_', '-')}"
        if name == "benchmark" or value is None:
            continue
        if name == "cases":
            words += [word for id in value for word in ("--case", str(id))]
        elif name == "limits":
            words += [w for n, v in value.items() for w in (f"--{_LIMITS.get(n, n)}", str(0 if v is None else v))]
        elif name == "settings":
            words += [
                word
                for role, settings in value.items()
                for key, setting in settings.items()
                for word in ("--set", f"{role}.{key}={json.dumps(setting, ensure_ascii=False)}")
            ]
        else:
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


SCHEMA = 2
"""The version of the JSON format; it rises when a key goes or changes its meaning."""
_ALL = 1_000_000


@dataclass(frozen=True)
class RunReport:
    """One run in a report."""

    about: About
    figures: Figures
    recorded: Recorded

    @property
    def label(self) -> str:
        """A short name for tables and plots; the report makes it unique."""
        method = self.about.method or self.about.benchmark
        return f"{method} with {self.about.strategy}" if self.about.replaced else method


@dataclass(frozen=True)
class Report:
    """Runs side by side.

    Attributes:
        labels: one for each run, all different.
        comparisons: of the first run with each of the others, or of every pair.
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
    episodes = await store.list(run=run.id, limit=_ALL)
    return Recorded(run, results, {e.id: e for e in episodes if e.id.rpartition(".")[0] in ended})


def make_report(recorded: Sequence[Recorded], *, every_pair: bool = False) -> Report:
    """Compute the report of these runs.

    Args:
        every_pair: compare every pair of runs, instead of the first with each of the others.

    Raises:
        InvalidInput: a run is given twice, or two runs cannot be compared.
    """
    ids = [one.run.id for one in recorded]
    if len(set(ids)) < len(ids):
        raise InvalidInput("A run is named twice: name each run once.")
    runs = [RunReport(about(one.run, one.episodes.values()), figures(one), one) for one in recorded]
    pairs = [pair for pair in combinations(recorded, 2) if every_pair or pair[0] is recorded[0]]
    found = [compare(a, b) for a, b in pairs]
    corrected = holm([one.p for one in found])
    return Report(runs, _labels(runs), [replace(one, p=p) for one, p in zip(found, corrected, strict=True)])


def _labels(runs: Sequence[RunReport]) -> Sequence[str]:
    """The method of each run; where two are the same, with the model or the run's id behind it."""
    labels = [run.label for run in runs]
    models = [next(iter(run.about.models.values()), "").partition("@")[0] for run in runs]
    for extra in (models, [run.about.run for run in runs]):
        if len(set(labels)) == len(labels):
            break
        if len(set(extra)) > 1:
            labels = [f"{label} ({more})" if more else label for label, more in zip(labels, extra, strict=True)]
    return labels


def as_json(report: Report) -> Json:
    """The report as JSON; docs/benchmark-report.md describes every key."""

    return {
        "schema": SCHEMA,
        "mulligan": version("mulligan"),
        "runs": [
            {"label": label, **asdict(run.about), **asdict(run.figures)}
            for label, run in zip(report.labels, report.runs, strict=True)
        ],
        "comparisons": [asdict(comparison) for comparison in report.comparisons],
    }
