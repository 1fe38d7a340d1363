"""The word, symbol and colour of each state of an episode, for the terminal and for web pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.core.records import Feedback


@dataclass(frozen=True)
class StateStyle:
    """How a state is shown: always with its word, so that nobody needs the symbol or the colour.

    Attributes:
        symbol: one character.
        ascii: one character for terminals without Unicode.
        colour: one of the eight colours of ANSI terminals, which light and dark themes both make readable.
        css: the class of its badges on web pages; "" for a plain one.
    """

    word: str
    symbol: str
    ascii: str
    colour: str
    css: str = ""


STATES: Mapping[str, StateStyle] = {
    "passed": StateStyle("passed", "✓", "+", "green", "ok"),
    "failed": StateStyle("failed", "✗", "x", "red", "bad"),
    "unjudged": StateStyle("no verdict", "?", "?", "magenta", "unknown"),
    "lesson": StateStyle("lesson", "→", ">", "cyan"),
    "recalled": StateStyle("recalled", "↺", "<", "cyan"),
    "running": StateStyle("running", "…", "~", "blue", "going"),
    "paused": StateStyle("paused", "‖", "=", "yellow", "paused"),
    "error": StateStyle("error", "!", "!", "red", "error"),
    "note": StateStyle("note", "·", "-", "default"),
}
"""The states by name. A state looks the same wherever a user sees it."""

DOING = {"recall": "recalling lessons", "act": "trying", "evaluate": "judging", "reflect": "reflecting"}
"""The current activity of an episode, by the kind of its move."""


def state_of(passed: bool | None) -> str:
    """Returns the name of the state of feedback: passed, failed, or neither."""
    return {True: "passed", False: "failed", None: "unjudged"}[passed]


def verdict(feedback: Feedback | None) -> tuple[str, str]:
    """Returns the name of the feedback's state, and the verdict as text."""
    if feedback is None:
        return "note", "not judged yet"
    mark = state_of(feedback.passed)
    word = STATES[mark].word
    return mark, word if feedback.score is None else f"{word}, score {feedback.score:.2f}"
