"""Shows the previous attempt with its feedback. It asks for no reflection.

Source: `LAST_ATTEMPT` of Reflexion's HotPotQA code.
"""

from mulligan.core.records import Episode, Past


class LastAttempt:
    reflects = False

    def past(self, episode: Episode) -> Past:
        return Past(last=episode.trials[-1] if episode.trials else None, recall=episode.recall)
