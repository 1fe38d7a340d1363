"""Shows the previous attempt with its feedback, and the lessons drawn so far.

Source: `LAST_ATTEMPT_AND_REFLEXION` of Reflexion's HotPotQA code. It shows only the newest reflection (`window = 1`).
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past, Reflection
from mulligan.text.formatting import newest


class LastAttemptAndReflexion:
    """Shows the previous attempt with its feedback, then the newest reflections.

    Args:
        window: how many reflections are shown: the newest, oldest first. None shows all.
        earlier: reflections on trials of the task before this episode, oldest first.
    """

    reflects = True

    def __init__(self, *, window: int | None = 3, earlier: Sequence[str] = ()) -> None:
        newest((), window)  # refuses a window below 1 before anything is tried
        self._window, self._earlier = window, tuple(map(Reflection, earlier))

    def past(self, episode: Episode) -> Past:
        last = episode.trials[-1] if episode.trials else None
        return Past(last, newest((*self._earlier, *episode.reflections), self._window), episode.recall)
