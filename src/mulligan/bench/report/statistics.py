"""The statistics of reports: pure functions of counts and scores. None stands for an unknown value.

Shares and pairs of them are those of `core.rates`. Sources: Chen et al. 2021, equation 1 (pass@k); Yao et al. 2024,
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
RESAMPLES = 2000
FEW = 5
"""Fewer families than these cannot stand for others: then each case counts for itself."""


@dataclass(frozen=True)
class Mean:
    """The mean of `n` values. The interval is a percentile bootstrap over them; None for fewer than two values."""

    value: float
    n: int
    low: float | None
    high: float | None


def mean(values: Sequence[float]) -> Mean | None:
    """The mean of the values, None where there are none."""
    if not values:
        return None
    if len(values) == 1:
        return Mean(values[0], 1, None, None)
    drawn = random.Random(0)
    means = sorted(fmean(drawn.choices(values, k=len(values))) for _ in range(RESAMPLES))
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
    """A mean of `n` values that come in clusters. se: its standard error. clusters: the smallest number of them in any
    way of clustering. low, high, p (two-sided, against 0): by Student's t with one degree less. detectable: the least
    difference from 0 that would have been found with a power of 80 %. All but the value are None with one cluster.
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
    """The mean of at least one value, with an error that allows for values of one cluster going together.

    Args:
        ways: The cluster of each value; in two ways where values go together for two reasons, such as the case and the
            order. A way with one cluster says nothing of others like it, and is left out.
        most: No value can be further from 0, so the interval ends there: 1 for a difference of rates.
        slope: The value is the sum of `values` divided by that of these, which vary with them (the delta method).
    """
    n = len(values)
    over = sum(slope) if slope is not None else float(n)
    value = sum(values) / over
    errors = [one - value * by for one, by in zip(values, slope or [1.0] * n, strict=True)]
    ways = tuple(way for way in ways if len(set(way)) > 1)
    if not ways:
        return Estimate(value, n, 1)
    parts = [_between(errors, way) for way in ways]
    both = _between(errors, list(zip(*ways, strict=True))) if len(ways) > 1 else 0.0
    se = math.sqrt(max(sum(parts) - both, *parts)) / abs(over)
    clusters = min(len(set(way)) for way in ways)
    reach = se * t_quantile((1 + LEVEL) / 2, clusters - 1)
    if se > 1e-12:
        p = t_tail(abs(value) / se, clusters - 1)
    else:  # all alike: as sure as if each cluster had tossed a coin
        p = 1.0 if value == 0 else 2.0 ** (1 - max(len(set(way)) for way in ways))
    detectable = reach + se * t_quantile(POWER, clusters - 1) if se > 1e-12 else None
    return Estimate(value, n, clusters, se, max(value - reach, -most), min(value + reach, most), p, detectable)


def _between(errors: Sequence[float], way: Sequence[Hashable]) -> float:
    """The variance of the sum of the errors, where those of one cluster go together."""
    sums: dict[Hashable, float] = {}
    for error, cluster in zip(errors, way, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + error
    return sum(one * one for one in sums.values()) * len(sums) / (len(sums) - 1)


def paired_detectable(counts: Paired) -> float:
    """The least difference that so many paired verdicts find with a power of 80 %, by the width of Newcombe's
    interval, which is never 0."""
    se = (counts.high - counts.low) / 2 / Z
    return se * (Z + NormalDist().inv_cdf(POWER))


def groups(families: Sequence[str], cases: Sequence[str]) -> Sequence[str]:
    """The clusters of these cases: their families, or the cases themselves where the families are few."""
    return families if len(set(families)) >= FEW else cases


def holm(ps: Sequence[float]) -> list[float]:
    """The p of several comparisons, corrected for their number."""
    found, least = [0.0] * len(ps), 0.0
    for rank, n in enumerate(sorted(range(len(ps)), key=lambda n: ps[n])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[n]))
        found[n] = least
    return found


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
    """Of Student's t, for a share of at least a half."""
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
    """Two arms on the same cases, verdicts of yes and no.

    rate: of the first arm. samples: of each case, in each arm. correlation: of two verdicts on one case (phi), 0 where
    all cases are alike, 1 where each is always solved or never. comparisons: each is tested at this share of 5 %.
    """

    rate: float = 0.5
    samples: int = 1
    correlation: float = 0.5
    comparisons: int = 1

    def cases(self, difference: float) -> int:
        """How many cases show this difference with a power of 80 %, at 5 % two-sided."""
        variance, n = self._variance(difference), 2
        while True:
            needed = (self._reach(n) / difference) ** 2 * variance
            if n >= needed:
                return n
            n = max(n + 1, math.floor((self._reach(10**6) / difference) ** 2 * variance))

    def difference(self, cases: int) -> float | None:
        """The least difference that so many cases show; None where not even one to the rate 1 does."""
        low, high = 0.0, 1 - self.rate
        if cases < 2 or self._short(high, cases):
            return None
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._short(middle, cases) else (low, middle)
        return high

    def _short(self, difference: float, cases: int) -> bool:
        return difference <= 0 or self._reach(cases) * math.sqrt(self._variance(difference) / cases) > difference

    def _reach(self, n: int) -> float:
        """How many standard errors away a difference has to be."""
        tail = 1 - (1 - LEVEL) / 2 / self.comparisons
        return t_quantile(tail, n - 1) + t_quantile(POWER, n - 1)

    def _variance(self, difference: float) -> float:
        """Of the difference of a case's two mean verdicts: what its samples add, and what cases differ by themselves.

        The latter is at least the difference squared: no change helps all cases alike.
        """
        first, second = (math.sqrt(rate * (1 - rate)) for rate in (self.rate, self.rate + difference))
        single = first * first + second * second - 2 * self.correlation * first * second
        lasting = min(single, max(self.correlation * (first - second) ** 2, difference**2))
        return lasting + (single - lasting) / self.samples
