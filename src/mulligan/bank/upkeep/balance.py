"""What a memory costs and what it saves: the tokens of learning and recalls, against the tries of tasks.

Tasks that were shown something are compared with those that were shown nothing. Nobody drew which is which, so the
difference is no proof; `withhold` makes draws (docs/worth.md).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean, variance

from mulligan.bank.learn.admission import REPLAY
from mulligan.bank.learn.costs import Cost, cost_of
from mulligan.bank.ports import Ports
from mulligan.core.errors import NotFound
from mulligan.core.lesson_history import Worth
from mulligan.core.rates import difference_interval, interval
from mulligan.core.worth import Z
from mulligan.text.plain import count, one_line

DAYS = 30
LEAST = 5
"""Tasks on each side without which nothing is compared."""
ENDS = 3
"""Lessons that are shown from each end."""
HEADINGS = ("lesson, best first", "tasks", "worth", "title")


@dataclass(frozen=True)
class Saving:
    """How much all tasks that were shown something saved, with its 95 % interval; below 0, they lost it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+,.0f} ({self.low:+,.0f} to {self.high:+,.0f})"


@dataclass(frozen=True)
class Balance:
    """The costs of a bank, and what it saved.

    Attributes:
        days: how far back it looks.
        tasks, recalls: how many tasks were learned from, and to how many of them something was shown.
        task_tokens: of the tasks, what was recalled included.
        learning_tokens: of the model that learned.
        replay_tokens: of runs that were repeated to try lessons.
        recalled_tokens: of what recalls showed, each counted once, estimated.
        first: tasks more that passed on the first try. None: too few tasks on one side.
        failures: failed tasks fewer.
        tokens: of tasks.
        lessons: what is counted of each lesson that has outcomes: the best first.
        titles: of the lessons at both ends, by their ids.
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
    replay_tokens: int = 0
    titles: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def net(self) -> Saving | None:
        """The tokens saved, less those of learning and replays."""
        saved, cost = self.tokens, self.learning_tokens + self.replay_tokens
        return saved and Saving(saved.value - cost, saved.low - cost, saved.high - cost)

    @property
    def rows(self) -> Sequence[tuple[str, str, str]]:
        """The figures as people read them: what, how many or how much, and the tokens."""
        savings = {
            "more passed on the first try": self.first,
            "fewer failed": self.failures,
            "tokens saved": self.tokens,
            "minus the tokens of learning and replays": self.net,
        }
        return [
            ("tasks", f"{self.tasks:,}", f"{self.task_tokens:,} tokens"),
            ("shown lessons", f"{self.recalls:,}", f"{self.recalled_tokens:,} tokens, included in the line above"),
            ("learning", "", f"{self.learning_tokens:,} tokens"),
            ("replays", "", f"{self.replay_tokens:,} tokens"),
            *((name, "-" if saving is None else str(saving), "") for name, saving in savings.items()),
        ]

    @property
    def verdict(self) -> str:
        """In a sentence: whether the memory pays, and the setting that changes it."""
        if self.net is None:
            return (
                f"Too few tasks to compare: this needs {count(LEAST, 'task')} with and {LEAST} without a recall, from "
                "agents whose tokens are counted."
            )
        if self.net.high < 0:
            costs = {
                'reader = "small"': -self.tokens.value if self.tokens else 0.0,
                "learn_share = 0": self.learning_tokens,
                'admission = "none"': self.replay_tokens,
            }
            change = max(costs, key=lambda name: costs[name])
            return f"It costs more than it saves. To change that, set {change} in [memory] of mulligan.toml."
        if self.net.low > 0:
            return "It saves more than it costs."
        return "It is not known yet whether it saves more than it costs: the interval contains 0."

    @property
    def ends(self) -> Sequence[Worth]:
        """The best and the worst lessons; all of them, where they are few."""
        several = self.lessons
        return several if len(several) <= 2 * ENDS else (*several[:ENDS], *several[-ENDS:])

    @property
    def lesson_rows(self) -> Sequence[tuple[str, str, str, str]]:
        """The best and the worst lessons as people read them: id, tasks, worth and title (`HEADINGS`)."""
        return [
            (
                one.id,
                f"{one.tally.solved} of {one.tally.known} passed",
                str(one.tally),
                one_line(self.titles.get(one.id, "-"), 50),
            )
            for one in self.ends
        ]


async def balance(ports: Ports, days: float = DAYS) -> Balance:
    """The balance of this bank's agent over so many days."""
    works = await ports.memory.queue.accepted_since(ports.agent_id, time.time() - days * 24 * 3600)
    costs = [cost_of(work) for work in works]
    replays = sum(cost.learning for work, cost in zip(works, costs, strict=True) if work.kind == REPLAY)
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
    found = Balance(
        days,
        sum(cost.task > 0 or not cost.counted for cost in costs),
        recalls,
        sum(cost.task for cost in costs),
        sum(cost.learning for cost in costs) - replays,
        recalled,
        _more(*firsts) if enough else None,
        _more(*passes) if enough else None,
        _fewer_tokens(shown, other) if enough else None,
        sorted(worth, key=_effect, reverse=True),
        replays,
    )
    ends = await ports.memory.lessons.there(ports.agent_id, [one.id for one in found.ends])
    return replace(found, titles={lesson.id: lesson.title for lesson in ends})


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
