"""Builds the page of a report from its figures, as blocks that can be rendered in several formats.

Runs without a real model, and runs that an oracle stopped, are in tables of their own.
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

from mulligan.bench.report.figures import Comparison, Figures, Report, RunReport
from mulligan.bench.report.statistics import Estimate, Mean
from mulligan.core.rates import Rate
from mulligan.core.records import Usage
from mulligan.text.figures import money, used, when, zone
from mulligan.text.pages import Block, Facts, Heading, Line, Picture, Table

NONE, UNKNOWN = "-", "unknown"
FEW_FILES = 3
"""The most data files that are named one by one."""
_TEXTS = tomllib.loads(Path(__file__).with_name("page.toml").read_text(encoding="utf-8"))
"""The headings and notes of groups of runs and of tables."""
LabelledRun: TypeAlias = tuple[str, RunReport]


def summary(report: Report) -> list[Block]:
    """The result in a few lines: each comparison in a sentence, then for each run what was solved and what it cost."""
    named = {run.about.run: label for label, run in zip(report.labels, report.runs, strict=True)}
    scripted = [
        Line(f"({named[run.about.run]}, {run.about.run})", strong=run.about.scripted.upper())
        for run in report.runs
        if run.about.scripted
    ]
    runs = [
        Facts(_result(label if id in label else f"{id}: {label}", run.figures))
        for run in report.runs
        for id, label in [(run.about.run, named[run.about.run])]
    ]
    return [*scripted, *(Line(_in_words(one, named[one.a], named[one.b])) for one in report.comparisons), *runs]


def _result(name: str, found: Figures) -> dict[str, str]:
    solved = ""
    if found.trials:
        first, last = found.trials[0].solved, found.trials[-1].solved
        between = "" if last.low is None else f" ({last.value:.0%}, 95 % interval {last.low:.0%} to {last.high:.0%})"
        at_first = f", {first.count} of them on the first try" if found.limit > 1 and last.count else ""
        solved = f"{last.count} of {last.n}{between}{at_first}"
    each = found.spent.tokens_per_solved
    cost = "; ".join(
        filter(None, [used(found.spent.usage), f"{each:,.0f} tokens for each solved case" if each else ""])
    )
    left_out = {
        "ended with an error": found.statuses["error"],
        "without a score": found.trials[-1].unscored if found.trials else 0,
        "not run yet": found.cases - found.ended,
    }
    left = ", ".join(f"{n} {word}" for word, n in left_out.items() if n)
    return {"Run": name, "Solved": solved, "Repeats": _repeats(found), "Cost": cost, "Left out": left}


def _repeats(found: Figures) -> str:
    """pass@k and pass^k, for the largest k that can be estimated; "" without repeats."""
    estimated = [at for at in found.episodes if at.estimate]
    if not estimated:
        return ""
    last = estimated[-1]
    named = {"pass@1": estimated[0].estimate, f"pass@{last.k}": last.estimate, f"pass^{last.k}": last.every}
    shares = ", ".join(f"{name} {_mean(one, '{:.1%}')[0]}" for name, one in named.items())
    return f"{len(found.episodes)} episodes of each case: {shares}"


def _in_words(one: Comparison, a: str, b: str) -> str:
    """The comparison as a sentence: how many more the second run solved, with the interval of the difference."""
    if one.samples is not None:
        between = f" (95 % interval {_between(one.samples, '{:+.3f}')})" if one.samples.low is not None else ""
        return f"{b} against {a}: mean score {one.samples.value:+.3f}{between}, p {_p(one.p)}."
    counts, more = one.counts, one.counts.only_b - one.counts.only_a
    how = f"{abs(more)} {'more' if more > 0 else 'fewer'} of {counts.n} cases than" if more else "as many cases as"
    points = f"{100 * counts.difference:+.0f} points, 95 % interval {100 * counts.low:+.0f} to {100 * counts.high:+.0f}"
    return f"{b} solved {how} {a}: {points}, p {_p(one.p)}."


def page(report: Report, picture: Picture | None = None) -> list[Block]:
    named = list(zip(report.labels, report.runs, strict=True))
    blocks: list[Block] = [Heading(1, "Benchmark report"), *summary(report)]
    for kind, texts in _TEXTS["groups"].items():
        if group := [one for one in named if kind_of(one[1]) == kind]:
            blocks.append(Heading(2, texts["title"]))
            blocks += [Line(texts["note"])] if texts["note"] else []
            blocks += _tables(group)
    if report.comparisons:
        blocks += _compared(report)
    if picture:
        blocks += [Heading(2, "Learning curve"), picture]
    for label, run in named:
        blocks += [Heading(2, f"Run {run.about.run}: {label}"), _head(run)]
    return blocks


def solved_by_tries(report: Report) -> Table:
    """The table that belongs to the learning curve."""
    return _by_trial(list(zip(report.labels, report.runs, strict=True)))


def kind_of(run: RunReport) -> str:
    """The group of tables that a run belongs to: "scripted", "oracle" or "results"."""
    return "scripted" if run.about.scripted else "oracle" if run.figures.oracle else "results"


def _head(run: RunReport) -> Facts:
    head, found = run.about, run.figures
    ended = f"{found.cases}" if found.ended == found.cases else f"unfinished: {found.ended} of {found.cases}"
    counts = ", ".join(f"{n} {status}" for status, n in found.statuses.items() if n)
    models = dict[str, list[str]]()
    for role, id in head.models.items():
        models.setdefault(id, []).append(role)
    return Facts(
        {
            "Benchmark": head.benchmark,
            "Data": _data(head.data),
            "Method": head.method,
            "Strategy": head.strategy,
            "Model": "; ".join(f"{id} ({', '.join(roles)})" for id, roles in models.items()) or "none",
            "Cases": f"{ended} ({counts})" if counts else ended,
            "Tries": "one" if found.limit == 1 else f"at most {found.limit}",
            "Settings": ", ".join(f"{n}={json.dumps(v, ensure_ascii=False)}" for n, v in head.differs.items())
            or "all at their defaults",
            "Seed": str(head.seed),
            "Versions": ", ".join(f"{name} {version}" for name, version in head.versions.items()),
            "Begun": f"{when(head.created)} {zone(head.created)}",
            "Command": head.command,
        }
    )


def _data(files: Mapping[str, str]) -> str:
    """The files that a run read, in one line: a few by name, many by their number and one hash over all."""
    if len(files) <= FEW_FILES:
        return "; ".join(f"{name}, sha256 {sha}" for name, sha in files.items()) or "none"
    kinds = Counter(Path(name).suffix or "other" for name in files)
    listed = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    over_all = sha256("".join(f"{sha}  {name}\n" for name, sha in sorted(files.items())).encode()).hexdigest()
    return f"{len(files)} files ({listed}), sha256 over their hashes and names {over_all}; each: --format json"


# --- tables of figures ----------------------------------------------------------------------------------------------


def _tables(group: Sequence[LabelledRun]) -> Iterator[Block]:
    tables: dict[str, Callable[[Sequence[LabelledRun]], Table]] = {
        "trials": _by_trial,
        "parts": _by_part,
        "episodes": _by_episode,
        "samples": _all_samples,
        "spent": _took,
        "roles": _by_role,
        "verdicts": _verdicts,
        "shown": _shown,
        "lessons": _lessons,
    }
    for name, table in tables.items():
        made = table(group)
        if made.rows:
            yield Heading(3, _TEXTS["tables"][name]["title"])
            yield made
            yield Line(_TEXTS["tables"][name]["note"])


def _by_trial(group: Sequence[LabelledRun]) -> Table:
    graded = any(run.figures.graded for _, run in group)
    columns = ["run", "tries", "solved", "n", "pass@1", "95 % interval", "unscored", "errors"]
    rows = [
        [
            *(label, str(at.trial), str(at.solved.count), str(at.solved.n), *_rate(at.solved)),
            *(str(at.unscored), str(run.figures.statuses["error"]), *(_mean(at.mean, "{:.3f}") if graded else [])),
        ]
        for label, run in group
        for at in run.figures.trials
    ]
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
    columns = [
        "run",
        "k",
        "pass@k",
        "95 % interval",
        "pass^k",
        "95 % interval",
        "within k (oracle)",
        "solved",
        "n",
        "95 % interval",
    ]
    rows = list[list[str]]()
    for label, run in group:
        for at in run.figures.episodes:
            share, interval = _rate(at.within)
            counts = (str(at.within.count), str(at.within.n))
            estimates = (*_mean(at.estimate, "{:.1%}"), *_mean(at.every, "{:.1%}"))
            rows.append([label, str(at.k), *estimates, share, *counts, interval])
    return Table(columns, rows)


def _all_samples(group: Sequence[LabelledRun]) -> Table:
    rows = [
        [label, f"{one.value:.3f}", _between(one, "{:.3f}"), str(one.n), str(one.clusters)]
        for label, run in group
        if (one := run.figures.samples) is not None
    ]
    return Table(["run", "mean score", "95 % interval", "cases", "clusters"], rows)


def _took(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", *_USED, "seconds", "tokens per solved", "cost per solved", "seconds per solved"]
    rows = list[list[str]]()
    for label, run in group:
        spent = run.figures.spent
        unknown = UNKNOWN if spent.usage.cost is None else NONE
        each = [_number(spent.tokens_per_solved), _money(spent.cost_per_solved, unknown)]
        rows.append([label, *_used(spent.usage), f"{spent.seconds:,.1f}", *each, _number(spent.seconds_per_solved, 1)])
    return Table(columns, rows)


def _by_role(group: Sequence[LabelledRun]) -> Table:
    rows = [
        [label, role, *_used(usage)]
        for label, run in group
        for role, usage in run.figures.spent.by_role.items()
        if usage.calls
    ]
    return Table(["run", "role", *_USED], rows, left=2)


def _verdicts(group: Sequence[LabelledRun]) -> Table:
    accepts, rejects = ["right accepts", "false accepts"], ["right rejects", "false rejects"]
    rows = [
        [label, when, *map(str, astuple(verdicts))]
        for label, run in group
        for when, verdicts in (("first attempt", run.figures.at_first), ("end", run.figures.at_end))
        if sum(astuple(verdicts)) > verdicts.no_verdict
    ]
    return Table(["run", "of", *accepts, *rejects, "no verdict"], rows, left=2)


def _shown(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "shows", "later tries", "input, first", "input, later", "the past", "attempt", "reflection"]
    rows = list[list[str]]()
    for label, run in group:
        shown = run.figures.shown
        if shown.trial is not None:
            means = (shown.first, shown.later, shown.past, shown.attempt, shown.reflection, shown.trial)
            rows.append([label, shown.strategy or NONE, str(shown.later_trials), *(_number(mean) for mean in means)])
    return Table([*columns, "whole try"], rows, left=2)


def _lessons(group: Sequence[LabelledRun]) -> Table:
    columns = ["run", "quality", "lessons", "mean", "tokens each", "n", "next passed", "95 %", "or better", "95 %"]
    rows = [
        [
            *(label, one.band, str(one.count), _number(one.quality, 2), _number(one.tokens), str(one.passed.n)),
            *(*_rate(one.passed), *_rate(one.better)),
        ]
        for label, run in group
        for one in run.figures.lessons
    ]
    return Table(columns, rows, left=2)


# --- comparisons ----------------------------------------------------------------------------------------------------


def _compared(report: Report) -> list[Block]:
    by_id = {run.about.run: (label, run) for label, run in zip(report.labels, report.runs, strict=True)}
    columns = ["A", "B", "n", "both", "only A", "only B", "neither", "B - A", "95 % interval", "p", "left out"]
    rows = [_row(one, by_id[one.a], by_id[one.b]) for one in report.comparisons]
    texts = _TEXTS["tables"]["compared"]
    blocks: list[Block] = [Heading(2, texts["title"]), Table(columns, rows, left=2), Line(texts["note"])]
    sampled = [
        [
            *(*_names(by_id[one.a], by_id[one.b]), f"{found.value:+.3f}", _between(found, "{:+.3f}")),
            *(_p(found.p), str(found.n), str(found.clusters)),
        ]
        for one in report.comparisons
        if (found := one.samples) is not None
    ]
    if sampled:
        columns = ["A", "B", "B - A", "95 % interval", "p", "cases", "clusters"]
        texts = _TEXTS["tables"]["compared_samples"]
        blocks += [Heading(3, texts["title"]), Table(columns, sampled, left=2), Line(texts["note"])]
    return [*blocks, *(Line(_power(one, by_id[one.a], by_id[one.b], len(rows))) for one in report.comparisons)]


def _row(one: Comparison, a: LabelledRun, b: LabelledRun) -> list[str]:
    found = one.counts
    cells = (found.n, found.both, found.only_a, found.only_b, found.neither)
    interval = f"{found.low:+.1%} to {found.high:+.1%}"
    out = str(one.left_out + one.alone_a + one.alone_b)
    return [*_names(a, b), *map(str, cells), f"{found.difference:+.1%}", interval, _p(found.p), out]


def _names(a: LabelledRun, b: LabelledRun) -> list[str]:
    return [f"{label}{_MARKS[kind_of(run)]}" for label, run in (a, b)]


def _power(one: Comparison, a: LabelledRun, b: LabelledRun, comparisons: int) -> str:
    """What the comparison could have shown, and whether it did."""
    names = " and ".join(_names(a, b))
    p = _p(one.p) + (f", corrected for {comparisons} comparisons" if comparisons > 1 else "")
    if one.detectable is None:
        return f"{names}: too few cases, or too few that differ, to say what difference could have been shown."
    least = f"{one.detectable:.1%} or more (power 80 %)"
    if one.p < 0.05:
        return f"{names}: a difference was shown (p {p}); the runs could have shown one of {least}."
    return (
        f"{names}: no difference was shown (p {p}). The runs could have shown one of {least}, and say nothing about "
        "smaller differences."
    )


def _p(value: float | None) -> str:
    return NONE if value is None else f"{value:.3g}"


def _between(one: Estimate, form: str) -> str:
    return NONE if one.low is None else f"{form.format(one.low)} to {form.format(one.high)}"


_MARKS = {"results": "", "oracle": " (oracle)", "scripted": " (no result)"}


# --- cells ----------------------------------------------------------------------------------------------------------

_USED = ("tokens in", "tokens out", "calls", "cost")


def _used(usage: Usage) -> list[str]:
    counts = (usage.input_tokens, usage.output_tokens, usage.calls)
    return [*(f"{count:,}" for count in counts), _money(usage.cost)]


def _rate(rate: Rate) -> list[str]:
    if rate.value is None:
        return [UNKNOWN, NONE]
    return [f"{rate.value:.1%}", f"{rate.low:.1%} to {rate.high:.1%}"]


def _mean(mean: Mean | None, form: str) -> list[str]:
    if mean is None:
        return [NONE, NONE]
    interval = NONE if mean.low is None else f"{form.format(mean.low)} to {form.format(mean.high)}"
    return [form.format(mean.value), interval]


def _number(value: float | None, digits: int = 0) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def _money(cost: float | None, unknown: str = UNKNOWN) -> str:
    return unknown if cost is None else money(cost) if cost else NONE
