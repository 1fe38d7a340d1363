"""Shows the previous attempt with its feedback, and the lessons drawn so far.

Source: `LAST_ATTEMPT_AND_REFLEXION` of Reflexion's HotPotQA code. It shows only the newest reflection (`window = 1`).
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past
from mulligan.text.lessons import LessonBudget, Overflow


class LastAttemptAndReflexion:
    """Shows the previous attempt with its feedback, then the newest reflections.

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
        window: int | None = 3,
        tokens: int | None = None,
        overflow: Overflow = "newest",
        earlier: Sequence[str] = (),
    ) -> None:
        self.lessons = LessonBudget(window, tokens, overflow, tuple(earlier))

    def past(self, episode: Episode) -> Past:
        last = episode.trials[-1] if episode.trials else None
        return Past(last, self.lessons.chosen(episode), episode.recall)
