"""What the judge found wrong so far, in its own words: no attempt, no lesson, and no model is called for reflecting."""

from mulligan.core.records import Episode, Past
from mulligan.text.evidence import gathered


class Evidence:
    """Every check that failed in the episode, once, the newest trial's first."""

    reflects = False

    def past(self, episode: Episode) -> Past:
        return Past(evidence=gathered(episode), recall=episode.recall)
