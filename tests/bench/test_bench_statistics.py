"""The statistics of reports, against published values and those of scipy 1.17 and statsmodels, and by their laws."""

import math
from itertools import combinations

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bench.report.statistics import mean, pass_at_k, pass_hat_k
from mulligan.core.rates import mcnemar, newcombe, paired, rate, wilson

COUNTS = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CELLS = st.tuples(*[st.integers(0, 60)] * 4).filter(any)


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, Statistics in Medicine 17, 857, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 10, 0.0, 0.27753279986288926),  # scipy.stats.binomtest(...).proportion_ci(method="wilson")
        (10, 10, 0.7224672001371109, 1.0),
        (5, 41, 0.05323336468577716, 0.25544211520976884),
    ],
)
def test_wilson_as_published(count: int, n: int, low: float, high: float) -> None:
    assert wilson(count, n) == pytest.approx((low, high), abs=5e-5)


@given(COUNTS)
def test_a_wilson_interval_holds_the_share(counts: tuple[int, int]) -> None:
    count, n = counts
    low, high = wilson(count, n)
    assert 0 <= low <= count / n <= high <= 1
    assert (low == 0) == (count == 0)
    mirrored = wilson(n - count, n)
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_a_rate_of_nothing_is_unknown() -> None:
    assert rate(0, 0).value is None
    assert rate(0, 5).value == 0
    with pytest.raises(ValueError, match="3 of 2"):
        rate(3, 2)


@each_row(
    ("only_a", "only_b", "p"),
    [
        (59, 6, 4.964650327128616e-12),  # scipy.stats.binomtest(min, sum).pvalue
        (86, 150, 3.7159361395713866e-05),
        (12, 2, 0.012939453125),
        (1, 8, 0.0390625),
        (5, 0, 0.0625),
        (3, 3, 1.0),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_as_scipy_has_it(only_a: int, only_b: int, p: float) -> None:
    assert mcnemar(only_a, only_b) == pytest.approx(p)
    assert mcnemar(only_b, only_a) == mcnemar(only_a, only_b)


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ((20, 12, 2, 16), 0.0562, 0.3292),  # Newcombe 1998, Statistics in Medicine 17, 2635, method 10
        ((14, 5, 0, 22), 0.011, 0.226),  # Altman et al. 2000, Statistics with confidence, table 6.2
    ],
)
def test_newcombe_as_published(cells: tuple[int, int, int, int], low: float, high: float) -> None:
    assert newcombe(*cells) == pytest.approx((low, high), abs=5e-4)


@given(CELLS)
def test_a_paired_interval_holds_the_difference(cells: tuple[int, int, int, int]) -> None:
    both, only_a, only_b, neither = cells
    found = paired(*cells)
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert 0 < found.p <= 1
    turned = paired(both, only_b, only_a, neither)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))
    assert turned.difference == -found.difference


def test_pass_at_k_and_pass_hat_k_are_shares_of_all_draws() -> None:
    for n in range(1, 7):
        for solved in range(n + 1):
            samples = [True] * solved + [False] * (n - solved)
            for k in range(1, n + 1):
                draws = list(combinations(samples, k))
                assert pass_at_k(n, solved, k) == pytest.approx(sum(map(any, draws)) / len(draws))
                assert pass_hat_k(n, solved, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@given(COUNTS)
def test_pass_at_k_grows_with_k(counts: tuple[int, int]) -> None:
    solved, n = counts
    values = [pass_at_k(n, solved, k) for k in range(1, min(n, 12) + 1)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(solved / n)
    assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize(("n", "solved", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0)])
def test_pass_at_k_refuses_what_cannot_be(n: int, solved: int, k: int) -> None:
    for estimate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match=f"k = {k}"):
            estimate(n, solved, k)


@pytest.mark.slow
def test_a_mean_says_how_sure_it_is() -> None:
    assert mean([]) is None
    one = mean([0.5])
    assert one is not None
    assert (one.value, one.n, one.low) == (0.5, 1, None)
    many = mean([0.0, 1.0] * 200)
    assert many is not None
    assert many.low is not None
    assert many.high is not None
    half = 1.96 * 0.5 / math.sqrt(400)
    assert (many.low, many.value, many.high) == pytest.approx((0.5 - half, 0.5, 0.5 + half), abs=0.01)
    assert many == mean([0.0, 1.0] * 200)
