"""Kinds of badges: what a verdict or a state means, in the colours and signs that the terminal has, too.

ok ✓ green, bad ✗ red, unknown ? yellow, error ! purple, going ● blue; "" ○ waits. The words stand beside the sign.
"""

from __future__ import annotations

from mulligan.core.protocols import Brief
from mulligan.core.records import Episode, Feedback


def kind_of_state(episode: Episode | Brief, state: str) -> str:
    """The kind of an episode's state, as `app.story.state` words it."""
    if state.startswith("paused") or state == "cut off":
        return "error"
    kinds = {"running": "going", "open": "", "solved": "ok", "done": "unknown", "unconfirmed": "unknown"}
    return kinds.get(state, "bad" if episode.judged else "unknown")


def kind_of_verdict(feedback: Feedback | None) -> str:
    if feedback is None:
        return ""
    return {True: "ok", False: "bad", None: "unknown"}[feedback.passed]


def verdict(feedback: Feedback | None) -> str:
    if feedback is None:
        return "not judged yet"
    said = {True: "passed", False: "failed", None: "no verdict"}[feedback.passed]
    return said if feedback.score is None else f"{said}, score {feedback.score:.2f}"
