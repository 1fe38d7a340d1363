"""Rates with their intervals, and comparisons of two rates: pure functions of counts, for reports, balances and pages.

Sources: Wilson 1927 (score interval); Newcombe 1998, Statistics in Medicine 17, 2635 (method 10: difference of paired
proportions) and 873 (of others); McNemar 1947 in its exact form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LEVEL = 0.95
Z = 1.959963984540054
"""Standard deviations to the ends of an interval of this level."""


@dataclass(frozen=True)
class Rate:
    """The share `count` / `n` with its Wilson interval. For n = 0 these are None, not zero."""

    count: int
    n: int
    value: float | None
    low: float | None
    high: float | None

    def plus(self, hit: bool) -> Rate:
        return rate(self.count + hit, self.n + 1)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.count} of {self.n}"
        return f"{self.count} of {self.n} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Paired:
    """Two runs, A and B, over the same `n` cases.

    Attributes:
        only_a: the number of cases that A solved and B did not; only_b: the reverse.
        difference: B's rate minus A's; above 0 means that B is better. low, high: its interval.
        p: of the exact two-sided McNemar test: how likely a split of `only_a` and `only_b` at least this uneven is if
            neither run is better.
    """

    n: int
    both: int
    only_a: int
    only_b: int
    neither: int
    difference: float
    low: float
    high: float
    p: float


def interval(won: float, lost: float, z: float = Z) -> tuple[float, float]:
    """The interval (Wilson 1927) of a rate with these weights of successes and failures; (0, 1) without any.

    z: standard deviations to its ends; the default gives 95 %.
    """
    n = won + lost
    if n < 1e-6:
        return 0.0, 1.0
    share, zz = won / n, z * z
    middle, half = share + zz / (2 * n), z * math.sqrt(share * (1 - share) / n + zz / (4 * n * n))
    return max(0.0, (middle - half) / (1 + zz / n)), min(1.0, (middle + half) / (1 + zz / n))


def difference_interval(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    """The interval of the difference of two rates (Newcombe 1998, method 10), each given with its own interval."""
    (rate, low, high), (other, lowest, highest) = first, second
    difference = rate - other
    return difference - math.hypot(rate - low, highest - other), difference + math.hypot(high - rate, other - lowest)


def rate(count: int, n: int) -> Rate:
    """Returns the rate `count` / `n`. Raises `ValueError` unless 0 <= count <= n."""
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n}")
    if n == 0:
        return Rate(0, 0, None, None, None)
    return Rate(count, n, count / n, *wilson(count, n))


def wilson(count: int, n: int) -> tuple[float, float]:
    """The Wilson interval of the share `count` / `n`, for n > 0."""
    low, high = interval(count, n - count)
    return (0.0 if count == 0 else low, 1.0 if count == n else high)


def paired(both: int, only_a: int, only_b: int, neither: int) -> Paired:
    """Compare two runs by these numbers of cases; there must be at least one case."""
    n = both + only_a + only_b + neither
    low, high = newcombe(both, only_b, only_a, neither)
    return Paired(n, both, only_a, only_b, neither, (only_b - only_a) / n, low, high, mcnemar(only_a, only_b))


def mcnemar(only_a: int, only_b: int) -> float:
    """The p-value of the exact two-sided McNemar test: a binomial test with probability 1/2."""
    n, least = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(n, k) for k in range(least + 1))
    return min(1.0, 2 * tail / 2**n)


def newcombe(both: int, only_first: int, only_second: int, neither: int) -> tuple[float, float]:
    """The interval of the first rate minus the second, over the same cases (Newcombe 1998, method 10)."""
    n = both + only_first + only_second + neither
    first, second = both + only_first, both + only_second
    p, q = first / n, second / n
    (low_p, high_p), (low_q, high_q) = wilson(first, n), wilson(second, n)
    phi = _phi(both, only_first, only_second, neither)

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))

    low = p - q - reach(p - low_p, high_q - q)
    high = p - q + reach(high_p - p, q - low_q)
    return max(-1.0, low), min(1.0, high)


def _phi(both: int, only_first: int, only_second: int, neither: int) -> float:
    """The correlation of two verdicts, with Newcombe's correction of n/2; 0 where one of them never varies."""
    n = both + only_first + only_second + neither
    margins = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if not margins:
        return 0.0
    cross = both * neither - only_first * only_second
    cross = cross if cross < 0 else max(0.0, cross - n / 2)
    return cross / math.sqrt(margins)
