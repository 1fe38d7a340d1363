"""What a memory costs and what it saves: the tokens of learning and recalls, against the tries of tasks.

Tasks that were shown something are compared with those that were shown nothing. Nobody drew which is which, so the
difference is no proof; `withhold` makes draws (docs/worth.md).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from mulligan.bank.learn.costs import Cost, cost_of
from mulligan.bank.ports import Ports
from mulligan.core.errors import NotFound
from mulligan.core.lessons import Worth
from mulligan.core.rates import difference_interval, interval
from mulligan.core.worth import Z

DAYS = 30
LEAST = 5
"""Tasks on each side without which nothing is compared."""


@dataclass(frozen=True)
class Saving:
    """How much all tasks that were shown something saved, with its 95 % interval; below 0, they lost it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Balance:
    """The costs of a bank, and what it saved.

    Attributes:
        days: how far back it looks.
        tasks, recalls: how many tasks were learned from, and to how many of them something was shown.
        task_tokens: of the tasks, what was recalled included.
        learning_tokens: of the model that learned.
        recalled_tokens: of what recalls showed, each counted once, estimated.
        first: tasks more that passed on the first try. None: too few tasks on one side.
        failures: failed tasks fewer.
        tokens: of tasks.
        lessons: what is counted of each lesson that has outcomes: the best first.
    """

    days: float
    tasks: int
    recalls: int
    task_tokens: int
    learning_tokens: int
    recalled_tokens: int
    first: Saving | None
    failures: Saving | None
    tokens: Saving | None
    lessons: Sequence[Worth]

    @property
    def net(self) -> Saving | None:
        """The tokens saved, less those of learning."""
        saved, cost = self.tokens, self.learning_tokens
        return saved and Saving(saved.value - cost, saved.low - cost, saved.high - cost)


async def balance(ports: Ports, days: float = DAYS) -> Balance:
    """The balance of this bank's agent over so many days."""
    works = await ports.memory.queue.accepted_since(ports.agent_id, time.time() - days * 24 * 3600)
    costs = [cost_of(work) for work in works]
    shown, other, recalls, recalled = list[Cost](), list[Cost](), 0, 0
    for cost in costs:
        tokens, any_lesson = await _recall_of(ports, cost.recall)
        recalls, recalled = recalls + any_lesson, recalled + tokens
        if cost.task and cost.tries and cost.passed is not None:
            (shown if any_lesson else other).append(cost)
    enough = min(len(shown), len(other)) >= LEAST
    firsts, passes = (
        [[cost.passed is True and (cost.tries or 0) <= most for cost in some] for some in (shown, other)]
        for most in (1, 1 << 30)
    )
    worth = [one for one in await ports.memory.lessons.worth(ports.agent_id) if one.id and one.tally.known]
    return Balance(
        days,
        sum(cost.task > 0 or not cost.counted for cost in costs),
        recalls,
        sum(cost.task for cost in costs),
        sum(cost.learning for cost in costs),
        recalled,
        _more(*firsts) if enough else None,
        _more(*passes) if enough else None,
        _fewer_tokens(shown, other) if enough else None,
        sorted(worth, key=_effect, reverse=True),
    )


async def _recall_of(ports: Ports, id: str) -> tuple[int, bool]:
    """The tokens that a recall showed, and whether it showed anything."""
    if not id:
        return 0, False
    try:
        receipt = await ports.memory.lessons.receipt(ports.agent_id, id)
    except NotFound:
        return 0, False
    return receipt.tokens, bool(receipt.tokens)


def _effect(one: Worth) -> float:
    """What is measured of a lesson; where nothing is, how often tasks passed with it, against a half."""
    return one.tally.uplift.mean if one.tally.uplift else one.tally.solved / one.tally.known - 0.5


def _more(ours: Sequence[bool], theirs: Sequence[bool]) -> Saving:
    """How many of the tasks that were shown something did what otherwise they would not have done."""
    shares = [(fmean(some), *interval(sum(some), len(some) - sum(some))) for some in (ours, theirs)]
    low, high = difference_interval(*shares)
    n = len(ours)
    return Saving(n * (shares[0][0] - shares[1][0]), n * low, n * high)


def _fewer_tokens(shown: Sequence[Cost], other: Sequence[Cost]) -> Saving:
    ours, theirs = [cost.task for cost in shown], [cost.task for cost in other]
    mean = fmean(theirs) - fmean(ours)
    half = Z * sqrt(variance(ours) / len(ours) + variance(theirs) / len(theirs))
    n = len(shown)
    return Saving(n * mean, n * (mean - half), n * (mean + half))
