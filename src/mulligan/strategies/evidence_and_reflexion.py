"""Shows the checks that failed so far, and the newest lessons below them.

Source: the paper shows lessons alone, which a weak model draws badly; the evidence stands beside them here.
"""

from collections.abc import Sequence

from mulligan.core.records import Episode, Past, Reflection
from mulligan.text.evidence import gathered
from mulligan.text.formatting import newest


class EvidenceAndReflexion:
    """Shows each failed check once, then the newest reflections.

    Args:
        window: how many reflections are shown: the newest, oldest first. None shows all.
        earlier: reflections on trials of the task before this episode, oldest first.
    """

    reflects = True

    def __init__(self, *, window: int | None = 1, earlier: Sequence[str] = ()) -> None:
        newest((), window)  # refuses a window below 1 before anything is tried
        self._window, self._earlier = window, tuple(map(Reflection, earlier))

    def past(self, episode: Episode) -> Past:
        reflections = newest((*self._earlier, *episode.reflections), self._window)
        return Past(reflections=reflections, recall=episode.recall, evidence=gathered(episode))
