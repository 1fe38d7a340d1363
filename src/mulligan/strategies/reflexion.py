"""Shows the lessons drawn so far, without the attempts that they came from.

Source: Shinn et al. 2023, section 3, whose window is 3; its HotPotQA code has none (`window = None`).
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past
from mulligan.text.lessons import LessonBudget, Overflow


class Reflexion:
    """Shows the newest reflections.

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
        return Past(reflections=self.lessons.chosen(episode), recall=episode.recall)
