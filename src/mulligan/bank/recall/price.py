"""Whether a lesson is worth its price: what showing it is expected to gain, against what its tokens gain in tries.

Both are chances to pass. A gain begins with what was measured of such lessons and such readers, and moves with the
outcomes of this lesson. A token that is shown is a token less for another try, and a try passes with some chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from mulligan.bank.learn.facts import checks_of, claimed, names_in, quotes_checks, working_actions
from mulligan.bank.recall.terms import commonness, terms
from mulligan.core.lesson import Lesson
from mulligan.core.records import Task, same_kind
from mulligan.core.worth import Tally
from mulligan.text.formatting import task_text
from mulligan.text.truncate import estimate

Reader: TypeAlias = Literal["small", "large"]

GAIN: Mapping[tuple[Reader, str], float] = {
    ("small", "attempt"): 0.5,
    ("small", "fact"): 0.17,
    ("small", "strategy"): 0.0,
    ("large", "attempt"): 0.5,
    ("large", "fact"): 0.3,
    ("large", "strategy"): 0.1,
}
"""By how much showing a lesson raises the chance to pass, where nothing is known of this one: a fact that shows an
attempt which passed, another fact, a strategy. Of small readers by studies/facts (20 and 6 of 36 first attempts, 0
without a fact) and studies/streams, where strategies gained nothing. Of large readers nothing is measured."""
MISLEADS: Mapping[Reader, float] = {"small": 0.25, "large": 0.15}
"""By how much a lesson that does not fit the task lowers the chance: not measured by itself."""
DOUBT = 0.5
"""What is left of the gain of a fact that is unconfirmed, or to be checked."""
FITS = (0.5, 0.9)
"""A lesson of the first relevance never fits the task, one of the second always, and between them by proportion. Checks
of another kind of task never do: by meaning, tasks of one project are alike. A statement that ends in a word of the
task always does."""
COMMON = 0.1
"""A word in more than this share of texts does not say what a task is about."""
NEAR = 0.05
"""Net gains that differ by less say nothing of which fact fits."""
_WORD = re.compile(r"\w{3,}")
PRIOR = 10
"""Outcomes that this beginning counts as."""
TRY = 0.25
"""The chance that a try passes without a lesson."""
TRY_TOKENS: Mapping[Reader, int] = {"small": 150, "large": 1000}
"""Tokens of a try beside its task, roughly: a small model answers, a large one acts."""


def expected_gain(lesson: Lesson, reader: Reader, tally: Tally, task: Task) -> float:
    """By how much showing this lesson is expected to raise the chance to pass this task.

    Outcomes with the lesson bound it from above, even where it was never withheld: it gains no more than passed.
    """
    what = "strategy" if lesson.nature != "fact" else "attempt" if claimed(lesson) != lesson.content else "fact"
    gain = GAIN[reader, what] * (DOUBT if lesson.to_check or not lesson.confirmed else 1.0)
    fits = min(max(((lesson.score or 0.0) - FITS[0]) / (FITS[1] - FITS[0]), 0.0), 1.0)
    if quotes_checks(lesson):
        fits = 0.0 if lesson.kind and task.kind and not same_kind(lesson.kind, task.kind) else fits
    elif set(checks_of(lesson).values()) & set(_WORD.findall(task.prompt)):
        fits = 1.0
    gain = fits * gain - (1 - fits) * MISLEADS[reader]
    most = (PRIOR * (gain + TRY) + tally.solved) / (PRIOR + tally.known)
    if measured := tally.uplift:
        n = 2 * min(tally.shown.count, tally.withheld.count)
        gain = (PRIOR * gain + n * measured.mean) / (PRIOR + n)
    return min(gain, most)


def worth_showing(
    lessons: Sequence[Lesson],
    text: Callable[[Lesson], str],
    *,
    reader: Reader,
    task: Task,
    tallies: Mapping[str, Tally],
) -> list[Lesson]:
    """Those of these lessons, in their order, that are worth their price.

    What a person wrote or pinned has no price. A small reader is shown one other lesson at most: the chance that it is
    the one that fits is shared with those that nothing in the task tells apart from it. A large reader is shown all
    that fit the task, and the sure facts that share a name with one of them.

    Args:
        text: How a lesson stands in the prompt.
        tallies: What is counted of them.
    """
    a_try = estimate(task_text(task)) + TRY_TOKENS[reader]
    free = [one for one in lessons if one.pinned or one.origin.kind in ("written", "imported")]
    gains = {
        one.id: expected_gain(one, reader, tallies.get(one.id, Tally()), task) - TRY * estimate(text(one)) / a_try
        for one in lessons
        if one not in free
    }
    paying = [one for one in lessons if gains.get(one.id, 0.0) > 0]
    if reader == "small":
        paying = _best(paying, gains, task)
    else:
        names = names_in(*paying)
        sure = [one for one in lessons if one.nature == "fact" and not one.to_check]
        paying += [one for one in sure if not names.isdisjoint(names_in(one))]
    kept = {one.id for one in (*free, *paying)}
    return [one for one in lessons if one.id in kept]


def _best(paying: Sequence[Lesson], gains: Mapping[str, float], task: Task) -> list[Lesson]:
    """The lesson with the largest net gain, of equal ones the newest. Among facts of steps, the one that shares most
    particular terms with the task comes first, and none is shown where it would be a guess among several. Facts that
    quote checks are of the task's kind, and may all fit."""

    def order(one: Lesson) -> tuple[float, float]:
        return round(gains[one.id], 2), one.time

    if not paying:
        return []
    best = max(paying, key=order)
    if quotes_checks(best):
        return [best]
    asked = {term for term in terms(task.prompt) if commonness(term) < COMMON}
    shared = {one.id: len(asked.intersection(terms(_subject(one)))) for one in paying}
    near = [one for one in paying if gains[one.id] > gains[best.id] - NEAR]
    most = max(shared[one.id] for one in near)
    rivals = [one for one in near if shared[one.id] == most]
    best = max(rivals, key=order)
    choices = len(rivals) if most else max(len(rivals), 2)  # the task says nothing of it: there may be others
    misleads = MISLEADS["small"]
    return [best] if (gains[best.id] + misleads) / choices > misleads else []


def _subject(fact: Lesson) -> str:
    """What a fact is about: the actions that work, else all that it says."""
    return " ".join(working_actions(fact)) or claimed(fact)
