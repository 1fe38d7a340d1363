"""Choose what a recall shows: facts of the project, other lessons, and lessons about habits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mulligan.bank.ports import Form, Ports
from mulligan.bank.recall.candidates import DIGITS, PRESETS, Ranking, rank_with_kind
from mulligan.core.ranking import Ranked
from mulligan.core.records import Lesson
from mulligan.core.worth import is_withheld

HEAD_START = 0.05
"""Facts come first unless the best strategy is more relevant by more than this."""

PAGE = 100
"""Maximum number of facts that are considered for the notebook."""

HABITS = 2
"""Maximum number of metacognitive lessons in a recall, whatever the task."""


@dataclass(frozen=True)
class Chosen:
    """What a recall shows: ids with their relevance, best first.

    Attributes:
        noted: facts for the notebook.
        scores: lessons.
        held: the most relevant lesson that is held back, if any is.
        filtered: how many lessons are held back.
        threshold: the relevance that was required, if any.
    """

    noted: Mapping[str, float]
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    held: Mapping[str, float] = field(default_factory=dict[str, float])
    filtered: int = 0
    threshold: float | None = None

    def holding_back(self, scores: Mapping[str, float]) -> Chosen:
        """The same choice with these lessons held back too."""
        held = sorted({**self.held, **scores}.items(), key=lambda item: -item[1])
        return replace(self, held=dict(held[:1]), filtered=self.filtered + len(scores))


def scores_of(lessons: Ranking, ranked: Ranked) -> dict[str, float]:
    """The ids of the ranked rows with their relevance, best first."""
    return {lessons.ids[row]: round(score, DIGITS) for row, score in zip(ranked.rows, ranked.scores, strict=True)}


def draws(receipt: str, lessons: Sequence[Lesson], share: float) -> tuple[dict[str, float], dict[str, float]]:
    """Draws which lessons a recall withholds to measure their worth.

    Returns the ids of the lessons in the draw, with the share that it withholds, and the withheld ids with their
    relevance.
    """
    if not share:
        return {}, {}
    withheld = {one.id: one.score or 0.0 for one in lessons if is_withheld(receipt, one.id, share)}
    return {one.id: share for one in lessons}, withheld


def choose(
    ports: Ports,
    rankings: tuple[Ranking, Ranking, Ranking],
    most: int,
    threshold: float | str | None,
    forms: Sequence[Form],
    kind: str,
) -> Chosen:
    """Chooses what a recall in these forms shows.

    Args:
        rankings: The facts of the project, the other lessons, and the metacognitive ones: see `Index.by_nature`.
        most: The maximum number of lessons.
        threshold: The relevance that lessons need, or the name of a preset.
        kind: That of the task.
    """
    facts, others, habits = rankings
    retrieval = ports.retrieval
    page: dict[str, float] = {}
    if "notebook" in forms:
        page = scores_of(facts, retrieval.rank(facts, PAGE, 0.0))
        page |= {id: 0.0 for id in reversed(facts.ids[-PAGE:]) if id not in page and len(page) < PAGE}
    if "lessons" not in forms:
        return Chosen(page)
    if ports.settings.paper:
        kind = ""
    else:
        least = others.threshold(threshold)
        others = others.fitting(PRESETS["standard"] if least is None else least, kind)
    ranked_facts = rank_with_kind(retrieval, facts, most, facts.threshold(threshold), kind)
    ranked_others = rank_with_kind(retrieval, others, most, others.threshold(threshold), kind)
    fact_scores, other_scores = scores_of(facts, ranked_facts), scores_of(others, ranked_others)
    scores = _facts_first(fact_scores, other_scores, most, everything=threshold == 0)
    scores = _with_habits(scores, _habits(ports, habits), most)
    held = {id: score for id, score in (*fact_scores.items(), *other_scores.items()) if id not in scores}
    for lessons, ranked in ((facts, ranked_facts), (others, ranked_others)):
        if ranked.nearest is not None:
            held[lessons.ids[ranked.nearest]] = round(ranked.nearest_score, DIGITS)
    nearest_held = dict(sorted(held.items(), key=lambda item: -item[1])[:1])
    left_out = min(len(fact_scores) + len(other_scores), most) - len(scores.keys() - set(habits.ids))
    filtered = ranked_facts.filtered + ranked_others.filtered + max(left_out, 0)
    return Chosen(page, scores, nearest_held, filtered, ranked_others.threshold)


def _facts_first(facts: dict[str, float], others: dict[str, float], most: int, *, everything: bool) -> dict[str, float]:
    """Facts and other lessons in the order in which they are shown.

    Facts come first unless another lesson is clearly more relevant. They are followed by at most one other lesson, and
    only if it is as relevant as the best fact, because vague advice next to a fact misleads. everything: show as many
    of both as there is room for.
    """
    if not facts or not others:
        return facts or others
    best_fact = max(facts.values())
    if best_fact + HEAD_START < max(others.values()):
        first = dict(list(others.items())[: max(most - 1, 1)])
        return {**first, **dict(list(facts.items())[: most - len(first)])}
    first = dict(list(facts.items())[:most])
    second = list(others.items())
    if not everything:
        second = [(id, score) for id, score in second if score >= best_fact][:1]
    return {**first, **dict(second[: most - len(first)])}


def _with_habits(scores: dict[str, float], habits: dict[str, float], most: int) -> dict[str, float]:
    """The scores followed by habits, which take the free places, or the last place if there is more than one."""
    if not habits:
        return scores
    habits = dict(list(habits.items())[: max(most - len(scores), int(most > 1))])
    return {**dict(list(scores.items())[: most - len(habits)]), **habits}


def _habits(ports: Ports, habits: Ranking) -> dict[str, float]:
    """The relevant metacognitive lessons, best first, then the newest ones."""
    ranked = scores_of(habits, ports.retrieval.rank(habits, HABITS, 0.0))
    chosen = {id: score for id, score in ranked.items() if score > 0}
    chosen |= {id: 0.0 for id in reversed(habits.ids[-HABITS:]) if id not in chosen}
    return dict(list(chosen.items())[:HABITS])
