"""Shows the checks that failed so far, and the newest lessons below them.

Source: the paper shows lessons alone, which a weak model draws badly; the evidence stands beside them here.
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past
from mulligan.text.evidence import gathered, recalled_beside
from mulligan.text.lessons import LessonBudget, Overflow


class EvidenceAndReflexion:
    """Shows each failed check once, then the newest reflections.

    Args:
        window: how many reflections are shown, oldest first. None shows all.
        tokens: what they may take of the prompt together. None is any number.
        overflow: which are shown where there are more: the "newest", the most "useful", or what a model makes of them
            ("condense"). See `text.lessons`.
        earlier: reflections on trials of the task before this episode, oldest first.
    """

    reflects = True

    def __init__(
        self,
        *,
        window: int | None = 1,
        tokens: int | None = None,
        overflow: Overflow = "newest",
        earlier: Sequence[str] = (),
    ) -> None:
        self.lessons = LessonBudget(window, tokens, overflow, tuple(earlier))

    def past(self, episode: Episode) -> Past:
        reflections, evidence = self.lessons.chosen(episode), gathered(episode)
        return Past(reflections=reflections, recall=recalled_beside(evidence, episode.recall), evidence=evidence)
