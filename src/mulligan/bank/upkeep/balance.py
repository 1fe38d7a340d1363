"""Balance what a memory costs against what it saves: the tokens of learning and recalls, against the tries of tasks.

Tasks that were shown something are compared with tasks that were not. This was not decided at random, so the difference
is not a proof; `withhold` decides at random (docs/worth.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
MIN_TASKS = 5
"""Minimum number of tasks on each side of the comparison."""
END_LESSONS = 3
"""How many of the best lessons, and of the worst, are shown."""
HEADINGS = ("lesson, best first", "tasks", "worth", "title")


@dataclass(frozen=True)
class Saving:
    """How much all tasks that were shown something saved, with its 95 % interval. Negative: they lost that much."""

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
        tasks: how many tasks were learned from.
        recalls: how many of them were shown something.
        task_tokens: tokens of the tasks, including what was recalled.
        learning_tokens: tokens of the model that learned.
        recalled_tokens: tokens of what recalls showed, each counted once, estimated.
        first: how many more tasks passed on the first try. None if there are too few tasks on one side, as below.
        failures: how many fewer tasks failed.
        tokens: how many tokens of tasks were saved.
        lessons: the worth of each lesson with outcomes, the best first.
        replay_tokens: tokens of runs that were repeated to try lessons.
        titles: the titles of the best and the worst lessons by their ids.
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
        """The tokens saved minus those of learning and replays."""
        saved, cost = self.tokens, self.learning_tokens + self.replay_tokens
        return saved and Saving(saved.value - cost, saved.low - cost, saved.high - cost)

    @property
    def rows(self) -> Sequence[tuple[str, str, str]]:
        """The figures for people: name, number, and tokens."""
        savings = {
            "more passed on the first try": self.first,
            "fewer failed": self.failures,
            "tokens saved": self.tokens,
            "minus the tokens used for learning and replays": self.net,
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
        """A sentence that says whether the memory pays, and if not, which setting to change."""
        if self.net is None:
            return (
                f"There are too few tasks to compare: a comparison needs {count(MIN_TASKS, 'task')} with and "
                f"{MIN_TASKS} without a recall, from agents whose tokens are counted."
            )
        if self.net.high < 0:
            costs = {
                'reader = "small"': -self.tokens.value if self.tokens else 0.0,
                "learn_share = 0": self.learning_tokens,
                'admission = "none"': self.replay_tokens,
            }
            change = max(costs, key=lambda name: costs[name])
            return f"The bank costs more than it saves. To change that, set {change} in [memory] of mulligan.toml."
        if self.net.low > 0:
            return "The bank saves more than it costs."
        return "It is not yet known whether the bank saves more than it costs: the interval contains 0."

    @property
    def ends(self) -> Sequence[Worth]:
        """The best and the worst lessons; all lessons if there are few."""
        lessons = self.lessons
        return lessons if len(lessons) <= 2 * END_LESSONS else (*lessons[:END_LESSONS], *lessons[-END_LESSONS:])

    @property
    def lesson_rows(self) -> Sequence[tuple[str, str, str, str]]:
        """The best and the worst lessons for people, with the columns `HEADINGS`."""
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
    """The balance of this bank's agent over the last days."""
    works = await ports.memory.queue.accepted_since(ports.agent_id, time.time() - days * 24 * 3600)
    costs = [cost_of(work) for work in works]
    replays = sum(cost.learning for work, cost in zip(works, costs, strict=True) if work.kind == REPLAY)
    tokens = [await _recalled_tokens(ports, cost.recall) for cost in costs]
    shown, other = list[Cost](), list[Cost]()
    for cost, recalled in zip(costs, tokens, strict=True):
        if cost.task and cost.tries and cost.passed is not None:
            (shown if recalled else other).append(cost)
    enough = min(len(shown), len(other)) >= MIN_TASKS
    worth = [one for one in await ports.memory.lessons.worth(ports.agent_id) if one.id and one.tally.known]
    result = Balance(
        days,
        tasks=sum(cost.task > 0 or not cost.counted for cost in costs),
        recalls=sum(map(bool, tokens)),
        task_tokens=sum(cost.task for cost in costs),
        learning_tokens=sum(cost.learning for cost in costs) - replays,
        recalled_tokens=sum(tokens),
        first=_more(shown, other, lambda cost: cost.passed is True and cost.tries == 1) if enough else None,
        failures=_more(shown, other, lambda cost: cost.passed is True) if enough else None,
        tokens=_fewer_tokens(shown, other) if enough else None,
        lessons=sorted(worth, key=_effect, reverse=True),
        replay_tokens=replays,
    )
    ends = await ports.memory.lessons.there(ports.agent_id, [one.id for one in result.ends])
    return replace(result, titles={lesson.id: lesson.title for lesson in ends})


async def _recalled_tokens(ports: Ports, id: str) -> int:
    """The tokens that a recall showed; 0 if there is no such recall."""
    with suppress(NotFound):
        return (await ports.memory.lessons.receipt(ports.agent_id, id)).tokens if id else 0
    return 0


def _effect(worth: Worth) -> float:
    """The measured effect of a lesson; if there is none, how far its pass rate is above one half."""
    tally = worth.tally
    return tally.uplift.mean if tally.uplift else tally.solved / tally.known - 0.5


def _more(shown: Sequence[Cost], other: Sequence[Cost], succeeded: Callable[[Cost], bool]) -> Saving:
    """How many more of the tasks that were shown something succeeded than would have without it."""
    rates: list[tuple[float, float, float]] = []
    for costs in (shown, other):
        successes = sum(map(succeeded, costs))
        rates.append((successes / len(costs), *interval(successes, len(costs) - successes)))
    low, high = difference_interval(*rates)
    n = len(shown)
    return Saving(n * (rates[0][0] - rates[1][0]), n * low, n * high)


def _fewer_tokens(shown: Sequence[Cost], other: Sequence[Cost]) -> Saving:
    shown_tokens, other_tokens = [cost.task for cost in shown], [cost.task for cost in other]
    mean = fmean(other_tokens) - fmean(shown_tokens)
    half = Z * sqrt(variance(shown_tokens) / len(shown) + variance(other_tokens) / len(other))
    n = len(shown)
    return Saving(n * mean, n * (mean - half), n * (mean + half))
