"""A strategy that learns which arm to choose for each try, from how tries with this model and kind of task ended.

    mulligan solve TASK --tests tests.py --strategy ./examples/thompson_strategy.py --kind dates
    mulligan strategies stats

It chooses by Thompson sampling (Thompson 1933) among five arms. Mulligan counts how the arms did, because the class
says `learns = True` and has a setting `seen`; older tries count less.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Literal

from mulligan.plugins import (
    ArmChoice,
    Decision,
    Episode,
    InvalidInput,
    LessonBudget,
    Past,
    Trial,
    failed_findings,
    findings_of,
    recall_with_evidence,
)

Counts = tuple[float, float]
"""How much an arm has won and lost."""
DRAWS = 200
"""Draws from which odds are read."""

RESAMPLE, EVIDENCE, LESSON, LAST, ALL = "resample", "evidence", "evidence_and_lesson", "last_attempt", "all"
PRIOR: Mapping[str, Counts] = {
    RESAMPLE: (1.0, 5.0),
    EVIDENCE: (1.0, 5.0),
    LESSON: (3.0, 3.0),
    LAST: (1.0, 5.0),
    ALL: (1.0, 5.0),
}
"""Six trials that nobody has seen: with an empty store the arm of the default strategy is drawn three times in four."""
FIT: Mapping[str, Sequence[str]] = {
    "checks": (RESAMPLE, EVIDENCE, LESSON, LAST, ALL),
    "text": (RESAMPLE, EVIDENCE, LESSON, LAST, ALL),
    "no text": (RESAMPLE, LESSON, LAST),
    "halted": (RESAMPLE, EVIDENCE, LESSON),
    "unjudged": (RESAMPLE, LAST),
}
"""By what the newest feedback holds, the arms that have something to show. An attempt that was halted has no end that
could be improved; of one that was not judged nothing is known but itself."""


class Adaptive:
    """Chooses among resampling, the evidence, the evidence with a lesson, the last attempt, and all of them.

    A reflection is asked for only where the next trial will be shown it.

    Args:
        warm: the temperature of a trial that is shown nothing new.
        window: how many reflections are shown, oldest first. None shows all.
        tokens: what they may take of the prompt together. None is any number.
        overflow: which are shown where there are more (see `text.lessons`).
        earlier: reflections on trials of the task before this episode, oldest first.
        seen: by arm, how much it has won and lost; filled from the store as an episode begins.
    """

    reflects = True
    learns = True

    def __init__(
        self,
        *,
        warm: float = 1.0,
        window: int | None = 1,
        tokens: int | None = None,
        overflow: Literal["newest", "useful", "condense"] = "newest",
        earlier: Sequence[str] = (),
        seen: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        if not 0 <= warm <= 2:
            raise InvalidInput(f"warm is a temperature from 0 to 2, not {warm!r}.")
        self._warm, self.lessons = warm, LessonBudget(window, tokens, overflow, tuple(earlier))
        self._seen = {arm: _counts(arm, counts) for arm, counts in (seen or {}).items()}

    def decide(self, episode: Episode) -> Decision:
        choice = self._choice(episode)
        if choice is None:
            return Decision()
        temperature = self._warm if choice.arm == RESAMPLE else None
        return Decision(choice.arm in (LESSON, ALL), temperature, choice=choice)

    def past(self, episode: Episode) -> Past:
        choice = self._choice(episode)
        arm = choice.arm if choice else RESAMPLE
        evidence = failed_findings(episode) if arm in (EVIDENCE, LESSON, ALL) else ()
        return Past(
            last=episode.trials[-1] if arm in (LAST, ALL) else None,
            reflections=self.lessons.chosen(episode) if arm in (LESSON, ALL) else (),
            recall=recall_with_evidence(evidence, episode.recall),
            evidence=evidence,
        )

    def _choice(self, episode: Episode) -> ArmChoice | None:
        """The arm for the next trial, by a draw that the episode and its newest trial fix; None before the first."""
        if not episode.trials:
            return None
        newest = episode.trials[-1]
        signal = signal_of(newest)
        posteriors = {arm: self._posterior(arm, episode) for arm in _left(FIT[signal], episode)}
        known = sum(sum(counts) for counts in self._seen.values())  # so that a task that comes again is drawn for anew
        rng = random.Random(f"{episode.head.seed}/{newest.number}/{known}/{episode.task.prompt}")
        return ArmChoice(drawn(posteriors, rng), odds(posteriors, rng), signal)

    def _posterior(self, arm: str, episode: Episode) -> Counts:
        """What is known of the arm before this episode, and its failures in it."""
        (won, lost), (seen_won, seen_lost) = PRIOR[arm], self._seen.get(arm, (0.0, 0.0))
        return won + seen_won, lost + seen_lost + len([1 for trial in _by(arm, episode) if _failed(trial)])


def drawn(posteriors: Mapping[str, Counts], rng: random.Random) -> str:
    """The arm whose draw is the highest. posteriors: of each arm the parameters of its Beta distribution."""
    draws = {arm: rng.betavariate(won, lost) for arm, (won, lost) in posteriors.items()}
    return max(draws, key=lambda arm: draws[arm])


def odds(posteriors: Mapping[str, Counts], rng: random.Random) -> dict[str, float]:
    """How likely `drawn` gives each arm, from `DRAWS` draws."""
    found = [drawn(posteriors, rng) for _ in range(DRAWS)]
    return {arm: round(found.count(arm) / DRAWS, 3) for arm in posteriors}


def signal_of(trial: Trial) -> str:
    """What the feedback of a trial holds: a key of `FIT`."""
    feedback, ended = trial.feedback, trial.attempt.outcome
    if feedback is None or feedback.passed is None:
        return "unjudged"
    if ended is not None and ended.halted:
        return "halted"
    found = findings_of(feedback)
    return "checks" if any(finding.asked for finding in found) else "text" if found else "no text"


def _left(arms: Sequence[str], episode: Episode) -> Sequence[str]:
    """Without the arm that has just written an attempt that was there before; all, where none would be left."""
    newest = episode.trials[-1]
    repeated = any(newest.attempt.output == trial.attempt.output for trial in episode.trials[:-1])
    choice = newest.attempt.choice
    return [arm for arm in arms if not (repeated and choice and arm == choice.arm)] or arms


def _by(arm: str, episode: Episode) -> list[Trial]:
    return [trial for trial in episode.trials if trial.attempt.choice and trial.attempt.choice.arm == arm]


def _failed(trial: Trial) -> bool:
    return trial.feedback is not None and trial.feedback.passed is False


def _counts(arm: str, counts: Sequence[float]) -> Counts:
    if arm not in PRIOR or len(counts) != 2 or min(counts) < 0:
        raise InvalidInput(
            f"seen has the arms {', '.join(PRIOR)}, each [won, lost] of 0 or more: not {arm!r}, {counts!r}."
        )
    return counts[0], counts[1]
