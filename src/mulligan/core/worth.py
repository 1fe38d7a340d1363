"""What showing an entry of the bank is worth: success where it was shown against success where it was withheld.

Each entry is withheld by a draw of its own, so that the difference is caused by the entry and by nothing else, whatever
it is shown with. Running sums suffice, so an outcome costs the same however many came before it. design/060 says why.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import erf, sqrt

from mulligan.core.rates import difference_interval, interval

HALFLIFE = 100
"""Outcomes of an entry after which an outcome counts half."""
PRIOR = 2.0
"""Outcomes that each of the two rates starts with; their rate is that of both together, so an effect starts at 0."""
LEVEL = 0.05
"""The chance that an entry that does no harm is ever retired within its first `HORIZON` outcomes."""
HORIZON = 1000
BETS = (0.4, 0.9)
"""How much of what it may the test stakes on each outcome; the mean of several, as the best depends on the harm."""
Z, STUDENT = 1.96, 2.37
"""Standard deviations to the ends of an interval of 95 %; more by `STUDENT` over the outcomes of the smaller side, near
Student's t: few outcomes say little of their own spread."""


def is_withheld(receipt: str, entry: str, share: float) -> bool:
    """Whether this recall withholds this entry: a draw that anybody can repeat."""
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
        """Aged by this factor, and with an outcome of its own unless that is None."""
        weight, good, squares = self.weight * by, self.good * by, self.squares * by * by
        if success is None:
            return Arm(self.count, self.solved, weight, good, squares)
        return Arm(self.count + 1, self.solved + success, weight + 1, good + success, squares + 1)

    def interval(self, n: float, z: float) -> tuple[float, float, float]:
        """The rate of success, and its interval where the outcomes are worth `n` of today."""
        rate = self.good / self.weight
        return rate, *interval(n * rate, n * (1 - rate), z)


@dataclass(frozen=True)
class Uplift:
    """By how much showing an entry raises the rate of success, with its 95 % interval (Newcombe 1998, method 10), which
    stays between -1 and 1.

    positive: the probability that it raises the rate at all.
    """

    mean: float
    low: float
    high: float
    positive: float


@dataclass(frozen=True)
class Tally:
    """What is counted of an entry, or of a whole bank.

    Attributes:
        known: outcomes of the recalls that it stood in, drawn or not.
        solved: how many of them were successes.
        shown, withheld: those where a draw decided.
        evidence: that it does harm, for each of `BETS`.
    """

    known: int = 0
    solved: int = 0
    shown: Arm = Arm()
    withheld: Arm = Arm()
    evidence: tuple[float, ...] = ()

    def with_outcome(self, success: bool) -> Tally:
        """With the outcome of a recall that it stood in; where it was drawn for, `with_draw` takes it, too."""
        return replace(self, known=self.known + 1, solved=self.solved + success)

    def with_draw(self, success: bool, *, withheld: bool, share: float, halflife: float | None = HALFLIFE) -> Tally:
        """With the outcome of a recall that withheld it, or showed it after the draw. halflife: None ages nothing."""
        by = 1.0 if halflife is None else 0.5 ** (1 / halflife)
        shown = self.shown.after(by, None if withheld else success)
        without = self.withheld.after(by, success if withheld else None)
        evidence = self._evidence(success - self._rate, withheld, share)
        return Tally(self.known, self.solved, shown, without, evidence)

    def _evidence(self, surprise: float, withheld: bool, share: float) -> tuple[float, ...]:
        """The stakes after this outcome. Without harm each is a supermartingale but for what is put in: a half at the
        start, and so little with each outcome that it is another half after `HORIZON` outcomes.

        What is put in later finds harm that began later.
        """
        drawn = self.shown.count + self.withheld.count
        put_in = 0.5 if drawn == 0 else 0.5 / HORIZON
        effect = -surprise / share if withheld else surprise / (1 - share)
        before = self.evidence if len(self.evidence) == len(BETS) else (0.0,) * len(BETS)
        stakes = ((stake + put_in) * (1 - bet * share * effect) for bet, stake in zip(BETS, before, strict=True))
        return tuple(min(stake, 1e12) for stake in stakes)

    @property
    def _rate(self) -> float:
        """The rate of success, shown or not, by what is known so far."""
        return (self.shown.good + self.withheld.good + 1) / (self.shown.weight + self.withheld.weight + 2)

    @property
    def uplift(self) -> Uplift | None:
        """None: not measured, as long as it was never withheld, or never shown, where the outcome is known."""
        if not self.shown.count or not self.withheld.count:
            return None
        (shown, doubt, n), (without, more, few) = self._believed(self.shown), self._believed(self.withheld)
        mean, sd, z = shown - without, sqrt(doubt + more), Z + STUDENT / min(n, few)
        least, most = difference_interval(self.shown.interval(n, z), self.withheld.interval(few, z))
        least, most = max(-1.0, min(mean, least)), min(1.0, max(mean, most))  # rounding goes beyond by a hair
        return Uplift(mean, least, most, (1 + erf(mean / sd / sqrt(2))) / 2)

    def _believed(self, arm: Arm) -> tuple[float, float, float]:
        """Mean and variance of an arm's rate, and how many outcomes of today its aged ones are worth."""
        n = arm.weight * arm.weight / arm.squares if arm.squares else 1.0
        rate = (n * arm.good / arm.weight + PRIOR * self._rate) / (n + PRIOR)
        return rate, rate * (1 - rate) / (n + PRIOR + 1), n

    def __str__(self) -> str:
        believed = self.uplift
        if believed is None:
            return "not measured"
        return (
            f"uplift {believed.mean:+.2f} ({believed.low:+.2f} to {believed.high:+.2f}), "
            f"shown {self.shown.count}, withheld {self.withheld.count} times"
        )

    @property
    def harmful(self) -> bool:
        """Whether it does harm, at a level that holds however often it is looked at."""
        if sum(self.evidence) / len(BETS) < 1 / LEVEL:
            return False
        believed = self.uplift
        return believed is not None and believed.high < 0
