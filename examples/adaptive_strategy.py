"""A strategy that adapts: it decides from the episode whether to reflect, how warm to sample and when to stop.

mulligan solve TASK --tests tests.py --strategy ./examples/adaptive_strategy.py
"""

from mulligan.plugins import Decision, Episode, Past, Trial, failed_findings


class Adaptive:
    """Shows the evidence and the newest lesson.

    step: how much warmer each attempt is sampled that repeats the one before. patience: trials in a row with the same
    findings after which the episode stops.
    """

    reflects = True

    def __init__(self, *, step: float = 0.4, patience: int = 3) -> None:
        self._step, self._patience = step, patience

    def past(self, episode: Episode) -> Past:
        return Past(reflections=episode.reflections[-1:], recall=episode.recall, evidence=failed_findings(episode))

    def decide(self, episode: Episode) -> Decision:
        same = [trial for trial in episode.trials if findings(trial) == findings(episode.trials[-1])]
        if len(same) >= self._patience:
            return Decision(stop=f"{len(same)} trials failed in the same way.")
        repeats = len(episode.trials) - len({trial.attempt.output for trial in episode.trials})
        return Decision(
            reflect=len(same) == 1,  # what failed as before teaches nothing new
            temperature=min(0.8 + repeats * self._step, 2.0) if repeats else None,
        )


def findings(trial: Trial) -> str:
    return trial.feedback.text if trial.feedback else ""
