"""The statistics of reports: pure functions of counts and scores. None is an unknown value.

`core.rates` has rates and paired rates. Sources: Chen et al. 2021, equation 1 (pass@k); Yao et al. 2024,
arXiv 2406.12045 (pass^k); Abramowitz and Stegun 1964, 26.7 (Student's t); Cameron, Gelbach and Miller 2011, Journal of
Business & Economic Statistics 29, 238 (two ways of clustering); Holm 1979; Connor 1987, Biometrics 43, 207, and Miller
2024, arXiv 2411.00640 (how many cases).
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean

from mulligan.core.rates import LEVEL, Paired, Z

POWER = 0.8
"""The probability of finding a difference that exists, with which `detectable` differences are computed."""
RESAMPLES = 2000
FEW = 5
"""With fewer families than this, each case is a cluster instead of each family."""


@dataclass(frozen=True)
class Mean:
    """The mean of `n` values, with a percentile bootstrap interval. low, high: None for a single value."""

    value: float
    n: int
    low: float | None
    high: float | None


def mean(values: Sequence[float]) -> Mean | None:
    """The mean of the values. None: there are no values."""
    if not values:
        return None
    if len(values) == 1:
        return Mean(values[0], 1, None, None)
    chance = random.Random(0)
    means = sorted(fmean(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(RESAMPLES * (1 - LEVEL) / 2)
    return Mean(fmean(values), len(values), means[cut], means[-cut - 1])


def pass_at_k(n: int, right: int, k: int) -> float:
    """The probability that at least one of `k` samples is right: the unbiased estimate from `right` of `n` samples.

    Raises `ValueError` unless 0 <= right <= n and 1 <= k <= n.
    """
    if not (0 <= right <= n and 1 <= k <= n):
        raise ValueError(f"{right} of {n}, k = {k}")
    return 1 - math.comb(n - right, k) / math.comb(n, k)


def pass_hat_k(n: int, right: int, k: int) -> float:
    """The probability that all of `k` samples are right: the unbiased estimate from `right` of `n` samples.

    Raises `ValueError` unless 0 <= right <= n and 1 <= k <= n.
    """
    if not (0 <= right <= n and 1 <= k <= n):
        raise ValueError(f"{right} of {n}, k = {k}")
    return math.comb(right, k) / math.comb(n, k)


# --- clustered means ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """The mean of `n` values that are clustered. With one cluster, only the value, n and clusters are known.

    Attributes:
        clusters: the number of clusters. If values are clustered in two ways, the smaller number.
        se: the standard error.
        low, high, p: the interval, and the two-sided p against 0, by Student's t with clusters - 1 degrees of freedom.
        detectable: the smallest difference from 0 that would have been found with a power of 80 %.
    """

    value: float
    n: int
    clusters: int
    se: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    detectable: float | None = None


def clustered(
    values: Sequence[float],
    *ways: Sequence[Hashable],
    slope: Sequence[float] | None = None,
    most: float = math.inf,
) -> Estimate:
    """The mean of at least one value, with a standard error that allows for correlation within clusters.

    Args:
        ways: The cluster of each value. Two ways if values are correlated for two reasons, such as the case and the
            order. A way with only one cluster is ignored.
        most: No value can be further from 0, so the interval ends there: 1 for a difference of rates.
        slope: If given, the estimate is sum(values) / sum(slope), with an error by the delta method.
    """
    n = len(values)
    divisor = sum(slope) if slope is not None else float(n)
    mean_value = sum(values) / divisor
    errors = [value - mean_value * weight for value, weight in zip(values, slope or [1.0] * n, strict=True)]
    ways = tuple(way for way in ways if len(set(way)) > 1)
    if not ways:
        return Estimate(mean_value, n, 1)
    variances = [_variance_of_sum(errors, way) for way in ways]
    shared = _variance_of_sum(errors, list(zip(*ways, strict=True))) if len(ways) > 1 else 0.0
    se = math.sqrt(max(sum(variances) - shared, *variances)) / abs(divisor)
    clusters = min(len(set(way)) for way in ways)
    reach = se * t_quantile((1 + LEVEL) / 2, clusters - 1)
    if se > 1e-12:
        p = t_tail(abs(mean_value) / se, clusters - 1)
    else:  # all values are the same: a sign test over the clusters
        p = 1.0 if mean_value == 0 else 2.0 ** (1 - max(len(set(way)) for way in ways))
    detectable = reach + se * t_quantile(POWER, clusters - 1) if se > 1e-12 else None
    low, high = max(mean_value - reach, -most), min(mean_value + reach, most)
    return Estimate(mean_value, n, clusters, se, low, high, p, detectable)


def _variance_of_sum(errors: Sequence[float], way: Sequence[Hashable]) -> float:
    """The variance of the sum of the errors, if errors are correlated within clusters."""
    sums: dict[Hashable, float] = {}
    for error, cluster in zip(errors, way, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + error
    return sum(total * total for total in sums.values()) * len(sums) / (len(sums) - 1)


def paired_detectable(counts: Paired) -> float:
    """The smallest difference that this many paired verdicts can find with a power of 80 %.

    It is computed from the width of Newcombe's interval, which is never 0.
    """
    se = (counts.high - counts.low) / 2 / Z
    return se * (Z + NormalDist().inv_cdf(POWER))


def groups(families: Sequence[str], cases: Sequence[str]) -> Sequence[str]:
    """The clusters of these cases: their families, or if there are few families, the cases."""
    return families if len(set(families)) >= FEW else cases


def holm(ps: Sequence[float]) -> list[float]:
    """The p of several comparisons, corrected for their number (Holm)."""
    corrected, least = [0.0] * len(ps), 0.0
    for rank, n in enumerate(sorted(range(len(ps)), key=lambda n: ps[n])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[n]))
        corrected[n] = least
    return corrected


def t_tail(t: float, df: int) -> float:
    """How likely Student's t is at least so far from 0 (t >= 0)."""
    if df > 500:
        return 2 * NormalDist().cdf(-t * (1 - 1 / (4 * df)) / math.sqrt(1 + t * t / (2 * df)))
    angle = math.atan(t / math.sqrt(df))
    term = total = math.cos(angle) if df % 2 else 1.0
    for k in range(2 + df % 2, df - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    if df % 2 == 0:
        within = math.sin(angle) * total
    else:
        within = 2 / math.pi * (angle + (math.sin(angle) * total if df > 1 else 0.0))
    return max(0.0, 1 - within)


@cache
def t_quantile(share: float, df: int) -> float:
    """The quantile of Student's t for a share of at least a half."""
    low, high = 0.0, 1.0
    while t_tail(high, df) / 2 > 1 - share:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, df) / 2 > 1 - share else (low, middle)
    return high


# --- planning -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """The design of a comparison of two arms on the same cases, which are solved or not.

    Attributes:
        rate: the rate of the first arm.
        samples: the number of samples of each case in each arm.
        correlation: of two verdicts on one case (phi): 0 if all cases are alike, 1 if each is always or never solved.
        comparisons: the number of comparisons that share the significance level of 5 %.
    """

    rate: float = 0.5
    samples: int = 1
    correlation: float = 0.5
    comparisons: int = 1

    def cases(self, difference: float) -> int:
        """The number of cases that show this difference with a power of 80 %, at 5 % two-sided."""
        variance, n = self._variance(difference), 2
        while True:
            needed = (self._reach(n) / difference) ** 2 * variance
            if n >= needed:
                return n
            n = max(n + 1, math.floor((self._reach(10**6) / difference) ** 2 * variance))

    def difference(self, cases: int) -> float | None:
        """The smallest difference that this many cases show. None: they show none, not even up to the rate 1."""
        low, high = 0.0, 1 - self.rate
        if cases < 2 or not self._is_shown(high, cases):
            return None
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self._is_shown(middle, cases) else (middle, high)
        return high

    def _is_shown(self, difference: float, cases: int) -> bool:
        least = self._reach(cases) * math.sqrt(self._variance(difference) / cases)
        return difference > 0 and difference >= least

    def _reach(self, n: int) -> float:
        """The number of standard errors that a difference needs to be shown."""
        tail = 1 - (1 - LEVEL) / 2 / self.comparisons
        return t_quantile(tail, n - 1) + t_quantile(POWER, n - 1)

    def _variance(self, difference: float) -> float:
        """The variance of the difference between a case's two mean verdicts: among its samples, and among cases.

        The variance among cases is at least the difference squared, because no change helps all cases equally.
        """
        first, second = (math.sqrt(rate * (1 - rate)) for rate in (self.rate, self.rate + difference))
        single = first * first + second * second - 2 * self.correlation * first * second
        among_cases = min(single, max(self.correlation * (first - second) ** 2, difference**2))
        return among_cases + (single - among_cases) / self.samples
