"""Plain resampling: every trial is shown the task alone. What every other strategy has to beat."""

from mulligan.core.records import Episode, Past


class Resampling:
    reflects = False

    def past(self, episode: Episode) -> Past:
        return Past(recall=episode.recall)
