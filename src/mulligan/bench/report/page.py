"""Builds the page of a report, as blocks that can be rendered in several formats.

Runs without a real model, and runs in which an oracle judged, are in separate tables.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from mulligan.bench.report.cells import EMPTY, UNKNOWN, dollars, interval_of, number
from mulligan.bench.report.figures import Comparison, Figures, Report, RunReport
from mulligan.bench.report.statistics import Mean
from mulligan.core.rates import Rate
from mulligan.core.records import Usage
from mulligan.text.figures import used, when, zone
from mulligan.text.pages import Block, Facts, Heading, Line, Picture, Table
from mulligan.text.plain import count

MAX_LISTED_FILES = 3
"""More data files than this are summed up in one hash."""
_TEXTS = tomllib.loads(Path(__file__).with_name("page.toml").read_text(encoding="utf-8"))
"""The headings and notes of groups of runs and of tables."""
LabelledRun: TypeAlias = tuple[str, RunReport]
_KIND_MARKS = {"results": "", "oracle": " (oracle)", "scripted": " (no result)"}
"""What follows the label of a run in comparisons, by its kind."""


def summary(report: Report) -> list[Block]:
    """The result in a few lines: each comparison as a sentence, then for each run what it solved and what it cost."""
    labels = {run.about.run: label for label, run in zip(report.labels, report.runs, strict=True)}
    scripted = [
        Line(f"({labels[run.about.run]}, {run.about.run})", strong=run.about.scripted.upper())
        for run in report.runs
        if run.about.scripted
    ]
    sentences = [Line(_sentence(one, labels[one.a], labels[one.b])) for one in report.comparisons]
    runs = list[Block]()
    for id, run in zip(labels, report.runs, strict=True):
        runs.append(Facts(_result(labels[id] if id in labels[id] else f"{id}: {labels[id]}", run.figures)))
    return [*scripted, *sentences, *runs]


def _result(name: str, figures: Figures) -> dict[str, str]:
    """The result of a run, by labels. name: of the run."""
    solved = ""
    if figures.trials:
        first, last = figures.trials[0].solved, figures.trials[-1].solved
        interval = "" if last.low is None else f" ({last.value:.0%}, 95 % interval {last.low:.0%} to {last.high:.0%})"
        at_first = f", {first.count} of them on the first try" if figures.limit > 1 and last.count else ""
        solved = f"{last.count} of {last.n}{interval}{at_first}"
    per_solved = figures.spent.tokens_per_solved
    costs = [used(figures.spent.usage), f"{per_solved:,.0f} tokens for each solved case" if per_solved else ""]
    left_out = {
        "ended with an error": figures.statuses["error"],
        "without a score": figures.trials[-1].unscored if figures.trials else 0,
        "not run yet": figures.cases - figures.ended,
    }
    left = ", ".join(f"{n} {word}" for word, n in left_out.items() if n)
    cost = "; ".join(filter(None, costs))
    return {"Run": name, "Solved": solved, "Repeats": _repeats(figures), "Cost": cost, "Left out": left}


def _repeats(figures: Figures) -> str:
    """pass@k and pass^k, for the largest k that can be estimated; "" without repeats."""
    estimated = [at for at in figures.episodes if at.estimate]
    if not estimated:
        return ""
    last = estimated[-1]
    means = {"pass@1": estimated[0].estimate, f"pass@{last.k}": last.estimate, f"pass^{last.k}": last.every}
    shares = ", ".join(f"{name} {_mean(mean, '.1%')[0]}" for name, mean in means.items())
    return f"{count(len(figures.episodes), 'episode')} of each case: {shares}"


def _sentence(one: Comparison, a: str, b: str) -> str:
    """A comparison as a sentence: how many more cases the second run solved, with the interval of the difference."""
    if one.samples is not None:
        interval = f" (95 % interval {interval_of(one.samples, '+.3f')})" if one.samples.low is not None else ""
        return f"{b} against {a}: mean score {one.samples.value:+.3f}{interval}, p {number(one.p, '.3g')}."
    counts, more = one.counts, one.counts.only_b - one.counts.only_a
    cases = (
        f"{abs(more)} {'more' if more > 0 else 'fewer'} of {count(counts.n, 'case')} than"
        if more
        else "as many cases as"
    )
    points = f"{100 * counts.difference:+.0f} points, 95 % interval {100 * counts.low:+.0f} to {100 * counts.high:+.0f}"
    return f"{b} solved {cases} {a}: {points}, p {number(one.p, '.3g')}."


def page(report: Report, picture: Picture | None = None) -> list[Block]:
    """The whole report. picture: the learning curve."""
    runs = list(zip(report.labels, report.runs, strict=True))
    blocks: list[Block] = [Heading(1, "Benchmark report"), *summary(report)]
    for kind, texts in _TEXTS["groups"].items():
        if group := [(label, run) for label, run in runs if kind_of(run) == kind]:
            blocks.append(Heading(2, texts["title"]))
            blocks += [Line(texts["note"])] if texts["note"] else []
            blocks += _tables(group)
    if report.comparisons:
        blocks += _compared(report)
    if picture:
        blocks += [Heading(2, "Learning curve"), picture]
    for label, run in runs:
        blocks += [Heading(2, f"Run {run.about.run}: {label}"), _description(run)]
    return blocks


def solved_by_tries(report: Report) -> Table:
    """The table of the learning curve."""
    return _by_trial(list(zip(report.labels, report.runs, strict=True)))


def kind_of(run: RunReport) -> str:
    """The group of tables that a run belongs to: "scripted", "oracle" or "results"."""
    return "scripted" if run.about.scripted else "oracle" if run.figures.oracle else "results"


def _description(run: RunReport) -> Facts:
    """How a run was set up, and how many of its cases have ended."""
    about, figures = run.about, run.figures
    finished = figures.ended == figures.cases
    ended = f"{figures.cases}" if finished else f"unfinished: {figures.ended} of {figures.cases}"
    counts = ", ".join(f"{n} {status}" for status, n in figures.statuses.items() if n)
    settings = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in about.differs.items())
    models = dict[str, list[str]]()
    for role, id in about.models.items():
        models.setdefault(id, []).append(role)
    return Facts(
        {
            "Benchmark": about.benchmark,
            "Data": _data(about.data),
            "Method": about.method,
            "Strategy": about.strategy,
            "Model": "; ".join(f"{id} ({', '.join(roles)})" for id, roles in models.items()) or "none",
            "Cases": f"{ended} ({counts})" if counts else ended,
            "Tries": "one" if figures.limit == 1 else f"at most {figures.limit}",
            "Settings": settings or "all at their defaults",
            "Seed": str(about.seed),
            "Versions": ", ".join(f"{name} {version}" for name, version in about.versions.items()),
            "Begun": f"{when(about.created)} {zone(about.created)}",
            "Command": about.command,
        }
    )


def _data(files: Mapping[str, str]) -> str:
    """The data files of a run in one line: a few files by name, many as their number and one hash."""
    if len(files) <= MAX_LISTED_FILES:
        return "; ".join(f"{name}, sha256 {sha}" for name, sha in files.items()) or "none"
    kinds = Counter(Path(name).suffix or "other" for name in files)
    listed = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    over_all = sha256("".join(f"{sha}  {name}\n" for name, sha in sorted(files.items())).encode()).hexdigest()
    return f"{count(len(files), 'file')} ({listed}), sha256 over their hashes and names {over_all}; each: --format json"


# --- tables of figures ----------------------------------------------------------------------------------------------


def _tables(group: Sequence[LabelledRun]) -> Iterator[Block]:
    tables: dict[str, Callable[[Sequence[LabelledRun]], Table]] = {
        "trials": _by_trial,
        "parts": _by_part,
        "episodes": _by_episode,
        "samples": _all_samples,
        "spent": _spent,
        "roles": _by_role,
        "verdicts": _verdicts,
        "shown": _strategy_costs,
        "lessons": _lessons,
    }
    for name, make_table in tables.items():
        table = make_table(group)
        if table.rows:
            yield Heading(3, _TEXTS["tables"][name]["title"])
            yield table
            yield Line(_TEXTS["tables"][name]["note"])


def _by_trial(group: Sequence[LabelledRun]) -> Table:
    graded = any(run.figures.graded for _, run in group)
    columns = ["run", "tries", "solved", "n", "pass@1", "95 % interval", "unscored", "errors"]
    rows = list[list[str]]()
    for label, run in group:
        for at in run.figures.trials:
            row = [label, str(at.trial), str(at.solved.count), str(at.solved.n), *_rate(at.solved)]
            row += [str(at.unscored), str(run.figures.statuses["error"])]
            rows.append(row + (_mean(at.mean, ".3f") if graded else []))
    return Table([*columns, *(["mean score", "95 % interval"] if graded else [])], rows)


def _by_part(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "part", "tries", "solved", "n", "pass@1", "95 % interval"]
    rows = [
        [label, part, str(at.trial), str(at.solved.count), str(at.solved.n), *_rate(at.solved)]
        for label, run in group
        for part, trials in run.figures.parts.items()
        for at in trials
    ]
    return Table(columns, rows)


def _by_episode(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "k", "pass@k", "95 % interval", "pass^k", "95 % interval", "within k (oracle)"]
    rows = list[list[str]]()
    for label, run in group:
        for at in run.figures.episodes:
            share, interval = _rate(at.within)
            counts = (str(at.within.count), str(at.within.n))
            estimates = (*_mean(at.estimate, ".1%"), *_mean(at.every, ".1%"))
            rows.append([label, str(at.k), *estimates, share, *counts, interval])
    return Table([*columns, "solved", "n", "95 % interval"], rows)


def _all_samples(group: Sequence[LabelledRun]) -> Table:
    rows = [
        [label, f"{samples.value:.3f}", interval_of(samples, ".3f"), str(samples.n), str(samples.clusters)]
        for label, run in group
        if (samples := run.figures.samples) is not None
    ]
    return Table(["run", "mean score", "95 % interval", "cases", "clusters"], rows)


def _spent(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", *_USAGE_COLUMNS, "seconds", "tokens per solved", "cost per solved", "seconds per solved"]
    rows = list[list[str]]()
    for label, run in group:
        spent = run.figures.spent
        none_solved = spent.cost_per_solved is None and spent.usage.cost is not None
        cost_per_solved = EMPTY if none_solved else dollars(spent.cost_per_solved)
        row = [label, *_usage(spent.usage), f"{spent.seconds:,.1f}", number(spent.tokens_per_solved, ",.0f")]
        rows.append([*row, cost_per_solved, number(spent.seconds_per_solved, ",.1f")])
    return Table(columns, rows)


def _by_role(group: Sequence[LabelledRun]) -> Table:
    rows = [
        [label, role, *_usage(usage)]
        for label, run in group
        for role, usage in run.figures.spent.by_role.items()
        if usage.calls
    ]
    return Table(["run", "role", *_USAGE_COLUMNS], rows, left=2)


def _verdicts(group: Sequence[LabelledRun]) -> Table:
    accepts, rejects = ["right accepts", "false accepts"], ["right rejects", "false rejects"]
    rows = [
        [label, attempt, *map(str, astuple(verdicts))]
        for label, run in group
        for attempt, verdicts in (("first attempt", run.figures.at_first), ("end", run.figures.at_end))
        if sum(astuple(verdicts)) > verdicts.no_verdict
    ]
    return Table(["run", "of", *accepts, *rejects, "no verdict"], rows, left=2)


def _strategy_costs(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "shows", "later tries", "input, first", "input, later", "the past", "attempt", "reflection"]
    rows = list[list[str]]()
    for label, run in group:
        cost = run.figures.shown
        if cost.trial is not None:
            means = (cost.first, cost.later, cost.past, cost.attempt, cost.reflection, cost.trial)
            row = [label, cost.strategy or EMPTY, str(cost.later_trials)]
            rows.append([*row, *(number(mean, ",.0f") for mean in means)])
    return Table([*columns, "whole try"], rows, left=2)


def _lessons(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "quality", "lessons", "mean", "tokens each", "n", "next passed", "95 %", "or better", "95 %"]
    rows = list[list[str]]()
    for label, run in group:
        for band in run.figures.lessons:
            row = [label, band.band, str(band.count), number(band.quality, ",.2f"), number(band.tokens, ",.0f")]
            rows.append([*row, str(band.passed.n), *_rate(band.passed), *_rate(band.better)])
    return Table(columns, rows, left=2)


# --- comparisons ----------------------------------------------------------------------------------------------------


def _compared(report: Report) -> list[Block]:
    by_id = {run.about.run: (label, run) for label, run in zip(report.labels, report.runs, strict=True)}
    columns = ["A", "B", "n", "both", "only A", "only B", "neither", "B - A", "95 % interval", "p", "left out"]
    rows = [_comparison_row(one, by_id[one.a], by_id[one.b]) for one in report.comparisons]
    texts = _TEXTS["tables"]["compared"]
    blocks: list[Block] = [Heading(2, texts["title"]), Table(columns, rows, left=2), Line(texts["note"])]
    sample_rows = list[list[str]]()
    for one in report.comparisons:
        if (samples := one.samples) is not None:
            row = [*_names(by_id[one.a], by_id[one.b]), f"{samples.value:+.3f}", interval_of(samples, "+.3f")]
            sample_rows.append([*row, number(samples.p, ".3g"), str(samples.n), str(samples.clusters)])
    if sample_rows:
        columns = ["A", "B", "B - A", "95 % interval", "p", "cases", "clusters"]
        texts = _TEXTS["tables"]["compared_samples"]
        blocks += [Heading(3, texts["title"]), Table(columns, sample_rows, left=2), Line(texts["note"])]
    return [*blocks, *(Line(_power(one, by_id[one.a], by_id[one.b], len(rows))) for one in report.comparisons)]


def _comparison_row(one: Comparison, a: LabelledRun, b: LabelledRun) -> list[str]:
    counts = one.counts
    cells = (counts.n, counts.both, counts.only_a, counts.only_b, counts.neither)
    interval = f"{counts.low:+.1%} to {counts.high:+.1%}"
    left_out = str(one.left_out + one.alone_a + one.alone_b)
    return [*_names(a, b), *map(str, cells), f"{counts.difference:+.1%}", interval, number(counts.p, ".3g"), left_out]


def _names(a: LabelledRun, b: LabelledRun) -> list[str]:
    return [f"{label}{_KIND_MARKS[kind_of(run)]}" for label, run in (a, b)]


def _power(one: Comparison, a: LabelledRun, b: LabelledRun, comparisons: int) -> str:
    """A sentence on the difference that the comparison could have shown, and whether it did."""
    names = " and ".join(_names(a, b))
    p = number(one.p, ".3g") + (f", corrected for {comparisons} comparisons" if comparisons > 1 else "")
    if one.detectable is None:
        return f"{names}: too few cases, or too few that differ, to say what difference could have been shown."
    least = f"{one.detectable:.1%} or more (power 80 %)"
    if one.p < 0.05:
        return f"{names}: a difference was shown (p {p}); the runs could have shown one of {least}."
    return (
        f"{names}: no difference was shown (p {p}). The runs could have shown one of {least}, and say nothing about "
        "smaller differences."
    )


# --- cells ----------------------------------------------------------------------------------------------------------

_USAGE_COLUMNS = ("tokens in", "tokens out", "calls", "cost")


def _usage(usage: Usage) -> list[str]:
    counts = (usage.input_tokens, usage.output_tokens, usage.calls)
    return [*(f"{count:,}" for count in counts), dollars(usage.cost)]


def _rate(rate: Rate) -> list[str]:
    if rate.value is None:
        return [UNKNOWN, EMPTY]
    return [f"{rate.value:.1%}", interval_of(rate, ".1%")]


def _mean(mean: Mean | None, form: str) -> list[str]:
    return [EMPTY, EMPTY] if mean is None else [format(mean.value, form), interval_of(mean, form)]
