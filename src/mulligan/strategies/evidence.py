"""Shows the checks that failed so far, in the judge's words. It shows no attempt and asks for no reflection."""

from mulligan.core.records import Episode, Past
from mulligan.text.evidence import failed_findings, recall_with_evidence


class Evidence:
    """Shows each check that failed in the episode once, those of the newest trial first."""

    reflects = False

    def past(self, episode: Episode) -> Past:
        evidence = failed_findings(episode)
        return Past(evidence=evidence, recall=recall_with_evidence(evidence, episode.recall))
