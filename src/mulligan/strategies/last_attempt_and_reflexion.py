"""Shows the previous attempt with its feedback, and the lessons drawn so far.

Source: `LAST_ATTEMPT_AND_REFLEXION` of Reflexion's HotPotQA code. It shows only the newest reflection (`window = 1`).
"""

from mulligan.core.records import Episode, Past
from mulligan.strategies.reflexion import Reflexion


class LastAttemptAndReflexion(Reflexion):
    """Shows the previous attempt with its feedback, then the newest reflections.

    Its settings are those of `Reflexion`.
    """

    def past(self, episode: Episode) -> Past:
        last = episode.trials[-1] if episode.trials else None
        return Past(last, self.lessons.chosen(episode), episode.recall)
