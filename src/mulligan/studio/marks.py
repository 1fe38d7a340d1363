"""Badges: how a verdict or a state looks, with the words and symbols of `text.states`, which the terminal has, too."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.protocols import Brief
from mulligan.core.records import Episode, Feedback
from mulligan.text.states import STATES

KINDS: Mapping[str, str] = {
    "ok": "passed",
    "bad": "failed",
    "unknown": "unjudged",
    "error": "error",
    "paused": "paused",
    "going": "running",
    "": "note",
}
"""Kinds of badges, which style.css colours, with the states whose symbol and colour they have."""

SIGNS: Mapping[str, str] = {kind: STATES[name].symbol for kind, name in KINDS.items()}

_OF_STATES: Mapping[str, str] = {
    "running": "going",
    "open": "",
    "solved": "ok",
    "done": "unknown",
    "unconfirmed": "unknown",
    "paused: error": "error",
    "cut off": "paused",
}


def kind_of_state(episode: Episode | Brief, state: str) -> str:
    """The kind of an episode's state, as `app.story.state` words it."""
    if state.startswith("paused") and state not in _OF_STATES:
        return "paused"
    return _OF_STATES.get(state, "bad" if episode.judged else "unknown")


def kind_of_verdict(feedback: Feedback | None) -> str:
    if feedback is None:
        return ""
    return {True: "ok", False: "bad", None: "unknown"}[feedback.passed]


def verdict(feedback: Feedback | None) -> str:
    if feedback is None:
        return "not judged yet"
    said = STATES[KINDS[kind_of_verdict(feedback)]].word
    return said if feedback.score is None else f"{said}, score {feedback.score:.2f}"
