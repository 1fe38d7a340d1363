"""The lessons drawn so far, without the attempts they came from: the default.

Source: Shinn et al. 2023, section 3, whose window is 3; the reference's HotPotQA code has none (`window = None`).
"""

from mulligan.core.episodic import newest
from mulligan.core.records import Episode, Past


class Reflexion:
    """`window`: how many reflections the next trial is shown; the newest are kept, oldest first. None: all."""

    reflects = True

    def __init__(self, *, window: int | None = 3) -> None:
        newest((), window)  # refuses a window below 1 before anything is tried
        self._window = window

    def past(self, episode: Episode) -> Past:
        return Past(reflections=newest(episode.reflections, self._window), recall=episode.recall)
