"""Errors of clustered means, corrected p and planning: by hand values, and by simulation with a known truth."""

from __future__ import annotations

import json
import math
import random
from statistics import fmean

import pytest
from bench_reports import case, recorded
from each_row import each_row

from mulligan.bench.report.figures import as_json, make_report
from mulligan.bench.report.page import page
from mulligan.bench.report.statistics import Design, clustered, groups, holm, t_quantile, t_tail
from mulligan.text.pages import plain


@each_row(
    ("share", "df", "value"),
    [
        *((0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 4, 2.776), (0.975, 9, 2.262), (0.975, 30, 2.042)),
        *((0.975, 120, 1.980), (0.8, 4, 0.941), (0.95, 7, 1.895), (0.975, 100_000, 1.960)),
    ],
)
def test_quantiles_of_t_as_tabulated(share: float, df: int, value: float) -> None:
    assert t_quantile(share, df) == pytest.approx(value, abs=6e-4)
    assert t_tail(t_quantile(share, df), df) == pytest.approx(2 * (1 - share), abs=1e-9)


def test_the_two_ways_to_a_tail_meet() -> None:
    for t in (0.1, 1.0, 2.0, 3.5):
        assert t_tail(t, 500) == pytest.approx(t_tail(t, 501), abs=1e-5)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_without_clusters_it_is_the_t_interval_of_a_mean() -> None:
    found = clustered([1.0, 2.0, 3.0, 4.0], range(4))
    se = math.sqrt(5 / 3 / 4)
    assert found.se == pytest.approx(se)
    assert (found.low, found.high) == pytest.approx((2.5 - 3.182446 * se, 2.5 + 3.182446 * se), abs=1e-5)


def test_copies_of_a_value_add_nothing() -> None:
    once = clustered([0.0, 1.0, 1.0, 0.0, 1.0], range(5))
    often = clustered([v for v in (0.0, 1.0, 1.0, 0.0, 1.0) for _ in range(7)], [n for n in range(5) for _ in range(7)])
    assert often.n == 35
    assert (often.se, often.low, often.clusters) == pytest.approx((once.se, once.low, 5))


def test_what_never_varies_is_as_sure_as_its_clusters_are_many() -> None:
    found = clustered([0.5] * 8, range(8))
    assert (found.low, found.high, found.p, found.detectable) == (0.5, 0.5, 2**-7, None)
    assert clustered([0.0] * 8, range(8)).p == 1
    assert clustered([0.5, 0.7], ["a", "a"]).low is None


def test_families_that_are_few_are_no_clusters() -> None:
    cases = [f"c{n}" for n in range(10)]
    assert groups(["a", "b"] * 5, cases) == cases
    families = [f"f{n % 5}" for n in range(10)]
    assert groups(families, cases) == families


# --- coverage and power, simulated ----------------------------------------------------------------------------------

RUNS = 1500
_ERROR = 3 * math.sqrt(0.05 * 0.95 / RUNS)


def covers(clusters: int, each: int, between: float, seed: int, *, naive: bool = False) -> float:
    """The share of intervals that hold the true mean 0."""
    chance, hits = random.Random(seed), 0
    for _ in range(RUNS):
        values, way = list[float](), list[int]()
        for cluster in range(clusters):
            middle = chance.gauss(0, between)
            values += [middle + chance.gauss(0, 1) for _ in range(each)]
            way += [cluster] * each
        found = clustered(values, range(len(values)) if naive else way)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0 <= found.high
    return hits / RUNS


@pytest.mark.parametrize(
    ("clusters", "each", "between"),
    [(12, 4, 1.0), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((30, 3, 0.5), (8, 5, 0.0)))],
)
def test_intervals_cover_the_truth_at_their_rate(clusters: int, each: int, between: float) -> None:
    assert covers(clusters, each, between, 5) == pytest.approx(0.95, abs=_ERROR + 0.005)


@pytest.mark.slow
def test_intervals_that_know_of_no_clusters_are_too_short() -> None:
    assert covers(12, 4, 1.0, 5, naive=True) < 0.85


@pytest.mark.parametrize(("cases", "orders"), [(24, 5), pytest.param(24, 12, marks=pytest.mark.slow)])
def test_two_ways_of_clustering_cover_the_truth(cases: int, orders: int) -> None:
    """Cases and orders each shift their values; few orders may cost coverage, which is bounded here."""
    chance, hits, runs = random.Random(11), 0, 600
    for _ in range(runs):
        of_case = [chance.gauss(0, 0.7) for _ in range(cases)]
        of_order = [chance.gauss(0, 0.5) for _ in range(orders)]
        keys = [(c, o) for c in range(cases) for o in range(orders)]
        values = [of_case[c] + of_order[o] + chance.gauss(0, 1) for c, o in keys]
        found = clustered(values, [c for c, _ in keys], [o for _, o in keys])
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0 <= found.high
    assert 0.92 <= hits / runs <= 0.99


def test_gain_has_the_error_of_a_ratio() -> None:
    chance, hits, runs = random.Random(3), 0, 1000
    for _ in range(runs):
        none = [min(0.9, max(0.0, chance.gauss(0.4, 0.2))) for _ in range(60)]
        gained = [0.3 * (1 - n) + chance.gauss(0, 0.1) for n in none]
        found = clustered(gained, range(60), slope=[1 - n for n in none])
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.3 <= found.high
    assert hits / runs == pytest.approx(0.95, abs=0.025)


def test_how_many_cases_as_in_the_literature() -> None:
    """Fleiss 1981 has 1565 for .50 against .55, unpaired and without a correction; pairing at phi = .5 halves it."""
    assert Design(correlation=0.0).cases(0.05) == pytest.approx(1565, rel=0.002)
    assert Design(correlation=0.5).cases(0.05) == pytest.approx(783, abs=2)
    # Connor 1987, with discordant shares .25 and .15: 7.849 * (.40 - .01) / .01 = 306, plus what t costs
    rate, second = 0.5, 0.6
    phi = (0.35 - rate * second) / math.sqrt(rate * (1 - rate) * second * (1 - second))
    assert Design(rate, 1, phi).cases(0.1) == pytest.approx(306 + 2, abs=2)


def test_more_samples_need_fewer_cases_and_never_none() -> None:
    needed = [Design(samples=k).cases(0.05) for k in (1, 2, 5, 100, 10_000)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] >= 8  # a change that helps cases unlike one another
    assert Design(comparisons=3).cases(0.05) > Design().cases(0.05)


@pytest.mark.parametrize("samples", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_planned_comparison_has_its_power(samples: int) -> None:
    """True rates vary over cases (beta), and the change helps each by another amount; the plan is kept within error."""
    difference, correlation, rate = 0.1, 0.4, 0.5
    cases = Design(rate, samples, correlation).cases(difference)
    chance, found, runs = random.Random(23), 0, 300
    spread = 1 / correlation - 1  # of a beta whose verdicts correlate so
    for _ in range(runs):
        values = list[float]()
        for _ in range(cases):
            first = chance.betavariate(rate * spread, (1 - rate) * spread)
            second = min(1.0, first + 2 * difference * (chance.random() < 0.5) * _room(first, rate))
            means = [fmean(chance.random() < p for _ in range(samples)) for p in (first, second)]
            values.append(means[1] - means[0])
        p = clustered(values, range(cases)).p
        found += p is not None and p < 0.05 and fmean(values) > 0
    assert 0.70 <= found / runs <= 0.93


def _room(first: float, rate: float) -> float:
    """So that the change is `difference` on average, in proportion to what is left."""
    return (1 - first) / (1 - rate)


def test_what_is_planned_and_what_can_be_shown_agree() -> None:
    for design in (Design(), Design(0.3, 5, 0.2), Design(0.8, 2, 0.5, 3)):
        cases = design.cases(0.1)
        shown = design.difference(cases)
        assert shown is not None
        assert shown == pytest.approx(0.1, rel=0.05)
    assert Design(rate=0.99).difference(3) is None


# --- in reports -----------------------------------------------------------------------------------------------------


def test_a_report_over_samples_is_clustered_by_case() -> None:
    cases = [
        case(1.0, more=[1.0, 1.0]),
        case(0.0, more=[0.0, 1.0]),
        case(0.0, more=[0.0, 0.0]),
        case(1.0, more=[1.0, 0.0]),
    ]
    better = [
        case(1.0, more=[1.0, 1.0]),
        case(1.0, more=[0.0, 1.0]),
        case(0.0, more=[1.0, 0.0]),
        case(1.0, more=[1.0, 1.0]),
    ]
    a, b = recorded(*cases, id="b1", samples=3), recorded(*better, id="b2", samples=3)
    c = recorded(*better, id="b3", samples=3)
    report = make_report([a, b, c])
    one = report.runs[0].figures.samples
    assert one is not None
    assert (one.value, one.n, one.clusters) == (pytest.approx(0.5), 4, 4)
    first, second = report.comparisons
    assert first.samples is not None
    assert first.samples.value == pytest.approx(0.25)
    assert first.samples.p is not None
    assert first.p == second.p == pytest.approx(min(1.0, 2 * first.samples.p))
    text = plain(page(report))
    assert "Over all samples" in text
    assert "no difference was shown" in text
    assert "corrected for 2 comparisons" in text
    json.dumps(as_json(report), allow_nan=False)


def test_a_report_of_single_samples_says_what_it_could_show() -> None:
    a = recorded(*[case(1.0)] * 20, *[case(0.0)] * 20, id="b1")
    report = make_report([a, recorded(*[case(1.0)] * 22, *[case(0.0)] * 18, id="b2")])
    (one,) = report.comparisons
    assert one.samples is None
    assert one.detectable is not None
    assert 0.05 < one.detectable < 0.2
    assert f"The runs could have shown one of {one.detectable:.1%} or more" in plain(page(report))
    assert report.runs[0].figures.samples is None
