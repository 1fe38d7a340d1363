"""Decide whether a lesson is worth its tokens: its expected gain against what the tokens would gain in further tries.

Both are probabilities of passing. The expected gain starts from measurements of similar lessons and readers, and is
updated by the outcomes of the lesson itself. Each token that is shown is missing for another try, which might pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from mulligan.bank.learn.facts import checks_of, claimed, names_in, quotes_checks, working_actions
from mulligan.bank.recall.terms import commonness, terms
from mulligan.core.lessons import Lesson
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
"""How much a lesson without outcomes of its own raises the chance to pass, by reader and evidence: a fact that shows a
passing attempt, another fact, or a strategy. For small readers as measured in studies/facts (20 and 6 of 36 first
attempts passed, 0 without a fact) and studies/streams (strategies gained nothing). For large ones it is a guess."""
MISLEADS: Mapping[Reader, float] = {"small": 0.25, "large": 0.15}
"""How much a lesson that does not fit the task lowers the chance to pass. A guess."""
DOUBT = 0.5
"""The gain of a fact that is unconfirmed or to be checked is multiplied by this."""
FITS = (0.5, 0.9)
"""Up to the first relevance a lesson does not fit the task, from the second on it does; in between it fits partly."""
COMMON = 0.1
"""A word in more than this share of texts does not tell what a task is about."""
NEAR = 0.05
"""Net gains that differ by less do not tell which fact fits."""
PRIOR_OUTCOMES = 10
"""How many outcomes of a lesson weigh as much as `GAIN`."""
PASS_RATE = 0.25
"""The chance that a try passes without a lesson."""
TRY_TOKENS: Mapping[Reader, int] = {"small": 150, "large": 1000}
"""Approximate tokens of a try without its task: a small model answers, a large one acts."""
_WORD = re.compile(r"\w{3,}")


def expected_gain(lesson: Lesson, reader: Reader, tally: Tally, task: Task) -> float:
    """How much showing this lesson is expected to raise the chance to pass this task.

    It is never more than the pass rate of the tasks that were shown the lesson, even if the lesson was never withheld.
    """
    evidence = "fact" if lesson.nature == "fact" else "strategy"
    if evidence == "fact" and claimed(lesson) != lesson.content:
        evidence = "attempt"
    gain = GAIN[reader, evidence] * (DOUBT if lesson.to_check or not lesson.confirmed else 1.0)
    lowest, highest = FITS
    fits = min(max(((lesson.score or 0.0) - lowest) / (highest - lowest), 0.0), 1.0)
    if quotes_checks(lesson):  # relevance cannot tell kinds apart: the tasks of one project mean similar things
        fits = 0.0 if lesson.kind and task.kind and not same_kind(lesson.kind, task.kind) else fits
    elif set(checks_of(lesson).values()) & set(_WORD.findall(task.prompt)):  # it states something about the task
        fits = 1.0
    gain = fits * gain - (1 - fits) * MISLEADS[reader]
    pass_rate = (PRIOR_OUTCOMES * (gain + PASS_RATE) + tally.solved) / (PRIOR_OUTCOMES + tally.known)
    if measured := tally.uplift:
        outcomes = 2 * min(tally.shown.count, tally.withheld.count)
        gain = (PRIOR_OUTCOMES * gain + outcomes * measured.mean) / (PRIOR_OUTCOMES + outcomes)
    return min(gain, pass_rate)


def worth_showing(
    lessons: Sequence[Lesson],
    text: Callable[[Lesson], str],
    *,
    reader: Reader,
    task: Task,
    tallies: Mapping[str, Tally],
) -> list[Lesson]:
    """The lessons that are worth their tokens, in the same order.

    Lessons that a person wrote, imported or pinned are always shown. A small reader is shown at most one other lesson;
    a large reader all that are worth it, and the sure facts that share a name with one of them.

    Args:
        lessons: Lessons with their relevance.
        text: Words a lesson for the prompt.
        tallies: The outcomes of the lessons by id.
    """
    try_tokens = estimate(task_text(task)) + TRY_TOKENS[reader]
    free = [lesson for lesson in lessons if lesson.pinned or lesson.origin.kind in ("written", "imported")]
    net_gains: dict[str, float] = {}
    for lesson in lessons:
        if lesson not in free:
            gain = expected_gain(lesson, reader, tallies.get(lesson.id, Tally()), task)
            net_gains[lesson.id] = gain - PASS_RATE * estimate(text(lesson)) / try_tokens
    worthy = [lesson for lesson in lessons if net_gains.get(lesson.id, 0.0) > 0]
    if reader == "small":
        worthy = _best(worthy, net_gains, task)
    else:
        names = names_in(*worthy)
        sure = [lesson for lesson in lessons if lesson.nature == "fact" and not lesson.to_check]
        worthy += [fact for fact in sure if not names.isdisjoint(names_in(fact))]
    shown = {lesson.id for lesson in (*free, *worthy)}
    return [lesson for lesson in lessons if lesson.id in shown]


def _best(worthy: Sequence[Lesson], net_gains: Mapping[str, float], task: Task) -> list[Lesson]:
    """The lesson with the largest net gain; of equal ones the newest.

    Facts that quote checks are of the task's kind, so the best of them is shown. Of other lessons with nearly the same
    gain, those that share the most uncommon terms with the task count. If several do, the chance that the chosen one
    fits is divided by their number, and none is shown if that is not worth it.
    """

    def order(lesson: Lesson) -> tuple[float, float]:
        return round(net_gains[lesson.id], 2), lesson.time

    if not worthy:
        return []
    best = max(worthy, key=order)
    if quotes_checks(best):
        return [best]
    task_terms = {term for term in terms(task.prompt) if commonness(term) < COMMON}
    shared: dict[str, int] = {}
    for lesson in worthy:
        subject = " ".join(working_actions(lesson)) or claimed(lesson)
        shared[lesson.id] = len(task_terms.intersection(terms(subject)))
    near = [lesson for lesson in worthy if net_gains[lesson.id] > net_gains[best.id] - NEAR]
    most_shared = max(shared[lesson.id] for lesson in near)
    rivals = [lesson for lesson in near if shared[lesson.id] == most_shared]
    best = max(rivals, key=order)
    # Without a shared term there may be a better lesson that the bank does not have.
    choices = len(rivals) if most_shared else max(len(rivals), 2)
    misleads = MISLEADS["small"]
    return [best] if (net_gains[best.id] + misleads) / choices > misleads else []
