"""Plain resampling: every trial is shown the task alone. The baseline for every other strategy."""

from mulligan.core.records import Episode, Past


class Resampling:
    reflects = False

    def past(self, episode: Episode) -> Past:
        return Past(recall=episode.recall)
