"""Shows the lessons drawn so far, without the attempts that they came from.

Source: Shinn et al. 2023, section 3, whose window is 3; its HotPotQA code has none (`window = None`).
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past
from mulligan.text.lessons import LessonBudget, Overflow


class Reflexion:
    """Shows the newest reflections.

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
        window: int | None = 3,
        tokens: int | None = None,
        overflow: Overflow = "newest",
        earlier: Sequence[str] = (),
    ) -> None:
        self.lessons = LessonBudget(window, tokens, overflow, tuple(earlier))

    def past(self, episode: Episode) -> Past:
        return Past(reflections=self.lessons.chosen(episode), recall=episode.recall)
