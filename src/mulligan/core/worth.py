"""How much showing a lesson helps: success where it was shown against success where it was withheld.

Each entry (a lesson) is withheld by its own random draw, so whatever else is shown with it, only the entry can cause
the difference. Running sums suffice: an outcome costs the same however many came before it. design/060 says why.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import erf, sqrt

from mulligan.core.rates import difference_interval, interval

HALFLIFE = 100
"""Outcomes of an entry after which an outcome counts half."""
PRIOR = 2.0
"""Outcomes that each of the two rates starts with, at the rate of both together, so an effect starts at 0."""
LEVEL = 0.05
"""The chance that an entry that does no harm is ever retired within its first `HORIZON` outcomes."""
HORIZON = 1000
BETS = (0.4, 0.9)
"""The shares of its largest possible stake that the test bets on each outcome. Their mean counts, because the best
share depends on the harm."""
Z, STUDENT = 1.96, 2.37
"""Standard deviations to the ends of a 95 % interval, to which `STUDENT` over the outcomes of the smaller side is
added. That is close to Student's t: few outcomes say little about their spread."""


def is_withheld(receipt: str, entry: str, share: float) -> bool:
    """Whether this recall withholds this entry: a random draw that can be repeated."""
    drawn = hashlib.sha256(f"{receipt}:{entry}".encode()).digest()[:8]
    return int.from_bytes(drawn) < share * 2**64


@dataclass(frozen=True)
class Arm:
    """The outcomes of recalls that showed an entry, or of those that withheld it.

    Attributes:
        count: how many.
        solved: how many of them successes.
        weight, good: the same, where older ones count less.
        squares: the sum of the squared weights.
    """

    count: int = 0
    solved: int = 0
    weight: float = 0.0
    good: float = 0.0
    squares: float = 0.0

    def after(self, by: float, success: bool | None) -> Arm:
        """The arm, aged by the factor `by`, and with this outcome unless it is None."""
        weight, good, squares = self.weight * by, self.good * by, self.squares * by * by
        if success is None:
            return Arm(self.count, self.solved, weight, good, squares)
        return Arm(self.count + 1, self.solved + success, weight + 1, good + success, squares + 1)

    def interval(self, n: float, z: float) -> tuple[float, float, float]:
        """The rate of success, and its interval if the outcomes are worth `n` new ones."""
        rate = self.good / self.weight
        return rate, *interval(n * rate, n * (1 - rate), z)


@dataclass(frozen=True)
class Uplift:
    """How much showing an entry raises the rate of success, with the 95 % interval (Newcombe 1998, method 10).

    positive: the probability that it raises the rate at all.
    """

    mean: float
    low: float
    high: float
    positive: float


@dataclass(frozen=True)
class Tally:
    """The counted outcomes for an entry or a bank.

    Attributes:
        known: the number of recalls with a known outcome, with or without a draw.
        solved: the number of these that succeeded.
        shown, withheld: the outcomes of recalls in which a draw decided.
        evidence: the evidence of harm, for each of `BETS`.
    """

    known: int = 0
    solved: int = 0
    shown: Arm = Arm()
    withheld: Arm = Arm()
    evidence: tuple[float, ...] = ()

    def with_outcome(self, success: bool) -> Tally:
        """Returns the tally with the outcome of a recall that showed or withheld it.

        After a draw, also call `with_draw`.
        """
        return replace(self, known=self.known + 1, solved=self.solved + success)

    def with_draw(self, success: bool, *, withheld: bool, share: float, halflife: float | None = HALFLIFE) -> Tally:
        """Returns the tally with the outcome of a recall in which a draw withheld or showed it.

        Args:
            halflife: None: no ageing.
        """
        by = 1.0 if halflife is None else 0.5 ** (1 / halflife)
        shown = self.shown.after(by, None if withheld else success)
        kept_back = self.withheld.after(by, success if withheld else None)
        evidence = self._evidence(success - self._rate, withheld, share)
        return Tally(self.known, self.solved, shown, kept_back, evidence)

    def _evidence(self, surprise: float, withheld: bool, share: float) -> tuple[float, ...]:
        """The stakes after this outcome. If it does no harm, each is a supermartingale except for what is put in: a
        half at the start, and another half spread over `HORIZON` outcomes, which finds harm that begins later.
        """
        drawn = self.shown.count + self.withheld.count
        put_in = 0.5 if drawn == 0 else 0.5 / HORIZON
        effect = -surprise / share if withheld else surprise / (1 - share)
        before = self.evidence if len(self.evidence) == len(BETS) else (0.0,) * len(BETS)
        stakes = ((stake + put_in) * (1 - bet * share * effect) for bet, stake in zip(BETS, before, strict=True))
        return tuple(min(stake, 1e12) for stake in stakes)

    @property
    def _rate(self) -> float:
        """The rate of success so far, whether it was shown or withheld."""
        return (self.shown.good + self.withheld.good + 1) / (self.shown.weight + self.withheld.weight + 2)

    @property
    def uplift(self) -> Uplift | None:
        """None until there are known outcomes both of recalls that showed it and of recalls that withheld it."""
        if not self.shown.count or not self.withheld.count:
            return None
        (shown, variance, n), (withheld, other_variance, m) = self._estimate(self.shown), self._estimate(self.withheld)
        mean, deviation, z = shown - withheld, sqrt(variance + other_variance), Z + STUDENT / min(n, m)
        low, high = difference_interval(self.shown.interval(n, z), self.withheld.interval(m, z))
        low, high = max(-1.0, min(mean, low)), min(1.0, max(mean, high))  # rounding may go slightly beyond
        return Uplift(mean, low, high, (1 + erf(mean / deviation / sqrt(2))) / 2)

    def _estimate(self, arm: Arm) -> tuple[float, float, float]:
        """Mean and variance of an arm's rate, and how many new outcomes its aged ones are worth."""
        n = arm.weight * arm.weight / arm.squares if arm.squares else 1.0
        rate = (n * arm.good / arm.weight + PRIOR * self._rate) / (n + PRIOR)
        return rate, rate * (1 - rate) / (n + PRIOR + 1), n

    def __str__(self) -> str:
        uplift = self.uplift
        if uplift is None:
            return "not measured"
        return (
            f"uplift {uplift.mean:+.2f} ({uplift.low:+.2f} to {uplift.high:+.2f}), "
            f"shown {self.shown.count}, withheld {self.withheld.count} time{'s' if self.withheld.count != 1 else ''}"
        )

    @property
    def harmful(self) -> bool:
        """Whether it does harm, by a test whose level is valid however often it is evaluated."""
        if sum(self.evidence) / len(BETS) < 1 / LEVEL:
            return False
        uplift = self.uplift
        return uplift is not None and uplift.high < 0
