"""Choose what a recall gives: facts, lessons on habits, and the other lessons, within the number that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mulligan.bank.ports import Form, Ports
from mulligan.bank.recall.candidates import DIGITS, PRESETS, Ranking, rank_with_kind
from mulligan.core.ranking import Ranked
from mulligan.core.records import Lesson
from mulligan.core.worth import is_withheld

HEAD_START = 0.05
"""A fact comes first unless the best strategy is more relevant by more than this."""

PAGE = 100
"""Facts that are looked at for one page of the notebook at most."""

HABITS = 2
"""Metacognitive lessons that a recall gives at most, whatever the task."""


@dataclass(frozen=True)
class Chosen:
    """Ids with their relevance, best first: of facts for the notebook (`noted`), of lessons, and of the nearest lesson
    that is held back. filtered: how many are held back."""

    noted: Mapping[str, float]
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    held: Mapping[str, float] = field(default_factory=dict[str, float])
    filtered: int = 0
    threshold: float | None = None

    def holding_back(self, scores: Mapping[str, float]) -> Chosen:
        """With these lessons among those that are held back."""
        held = sorted({**self.held, **scores}.items(), key=lambda item: -item[1])
        return replace(self, held=dict(held[:1]), filtered=self.filtered + len(scores))


def scores_of(among: Ranking, ranked: Ranked) -> dict[str, float]:
    return {among.ids[row]: round(score, DIGITS) for row, score in zip(ranked.rows, ranked.scores, strict=True)}


def nearest_held(
    both: Sequence[Ranking], ranked: Sequence[Ranked], found: Sequence[Mapping[str, float]], given: Mapping[str, float]
) -> dict[str, float]:
    """The id and the relevance of the nearest lesson that is held back; empty where none is."""
    held = {id: score for scores in found for id, score in scores.items() if id not in given}
    for among, one in zip(both, ranked, strict=True):
        if one.nearest is not None:
            held[among.ids[one.nearest]] = round(one.nearest_score, DIGITS)
    return dict(sorted(held.items(), key=lambda item: -item[1])[:1])


def together(
    facts: dict[str, float], others: dict[str, float], most: int, *, everything: bool = False
) -> dict[str, float]:
    """Both, best first. Facts of the project come first where the best is about as relevant as the best of the others,
    and then one of those at most, if it is as relevant: vague advice beside a fact misleads. everything: all of both
    that there is room for."""
    if not facts or not others:
        return facts or others
    best = max(facts.values())
    if best + HEAD_START < max(others.values()):
        first = dict(list(others.items())[: max(most - 1, 1)])
        return {**first, **dict(list(facts.items())[: most - len(first)])}
    first = dict(list(facts.items())[:most])
    beside = list(others.items()) if everything else [(id, score) for id, score in others.items() if score >= best][:1]
    return {**first, **dict(beside[: most - len(first)])}


def with_habits(scores: dict[str, float], habits: dict[str, float], most: int) -> dict[str, float]:
    """Both, the habits last: in the room that is left, or in the last place of several. Without habits all scores."""
    if not habits:
        return scores
    habits = dict(list(habits.items())[: max(most - len(scores), int(most > 1))])
    return {**dict(list(scores.items())[: most - len(habits)]), **habits}


def draws(receipt: str, lessons: Sequence[Lesson], share: float) -> tuple[dict[str, float], dict[str, float]]:
    """The lessons that a draw is made for, with the share that it withholds; and the withheld, with scores."""
    if not share:
        return {}, {}
    withheld = {one.id: one.score or 0.0 for one in lessons if is_withheld(receipt, one.id, share)}
    return {one.id: share for one in lessons}, withheld


def choose(
    ports: Ports,
    among: tuple[Ranking, Ranking, Ranking],
    most: int,
    threshold: float | str | None,
    forms: Sequence[Form],
    kind: str,
) -> Chosen:
    """What these forms may show of the facts of the project, of the metacognitive lessons, and of everything else.
    kind: of the task."""
    *both, habits = among
    rank = ports.retrieval.rank
    page: dict[str, float] = {}
    if "notebook" in forms:
        page = scores_of(both[0], rank(both[0], PAGE, 0.0))
        page |= {id: 0.0 for id in reversed(both[0].ids[-PAGE:]) if id not in page and len(page) < PAGE}
    if "lessons" not in forms:
        return Chosen(page)
    kind = "" if ports.settings.paper else kind
    if not ports.settings.paper:
        least = both[1].threshold(threshold)
        both[1] = both[1].fitting(PRESETS["standard"] if least is None else least, kind)
    retrieval = ports.retrieval
    facts, others = (rank_with_kind(retrieval, among, most, among.threshold(threshold), kind) for among in both)
    of_each = scores_of(both[0], facts), scores_of(both[1], others)
    scores = together(*of_each, most, everything=threshold == 0)
    scores = with_habits(scores, _habits(ports, habits), most)
    held = nearest_held(both, (facts, others), of_each, scores)
    left_out = min(sum(map(len, of_each)), most) - len(scores.keys() - set(habits.ids))
    return Chosen(page, scores, held, facts.filtered + others.filtered + max(left_out, 0), others.threshold)


def _habits(ports: Ports, among: Ranking) -> dict[str, float]:
    """The most relevant metacognitive lessons, then the newest."""
    ranked = scores_of(among, ports.retrieval.rank(among, HABITS, 0.0))
    found = {id: score for id, score in ranked.items() if score > 0}
    found |= {id: 0.0 for id in reversed(among.ids[-HABITS:]) if id not in found}
    return dict(list(found.items())[:HABITS])
