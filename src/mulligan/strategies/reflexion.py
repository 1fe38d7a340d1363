"""Shows the lessons drawn so far, without the attempts that they came from.

Source: Shinn et al. 2023, section 3, whose window is 3; its HotPotQA code has none (`window = None`).
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past, Reflection
from mulligan.text.formatting import newest


class Reflexion:
    """Shows the newest reflections.

    Args:
        window: how many reflections are shown: the newest, oldest first. None shows all.
        earlier: reflections on trials of the task before this episode, oldest first.
    """

    reflects = True

    def __init__(self, *, window: int | None = 3, earlier: Sequence[str] = ()) -> None:
        newest((), window)  # refuses a window below 1 before anything is tried
        self._window, self._earlier = window, tuple(map(Reflection, earlier))

    def past(self, episode: Episode) -> Past:
        return Past(reflections=newest((*self._earlier, *episode.reflections), self._window), recall=episode.recall)
