"""Shows the checks that failed so far, and the newest lessons below them.

The paper shows only lessons, but those of a weak model are poor, so this strategy also shows the evidence.
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past
from mulligan.text.evidence import failed_findings, recall_with_evidence
from mulligan.text.lessons import LessonBudget, Overflow


class EvidenceAndReflexion:
    """Shows each failed check once, then the newest reflections.

    Args:
        window: the maximum number of reflections, shown oldest first. None: all.
        tokens: the maximum number of tokens of all of them. None: no limit.
        overflow: which ones are shown if there are more: the "newest", the most "useful", or a summary by a model
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
        reflections, evidence = self.lessons.chosen(episode), failed_findings(episode)
        return Past(reflections=reflections, recall=recall_with_evidence(evidence, episode.recall), evidence=evidence)
