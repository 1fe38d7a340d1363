"""Badges: the kinds that the style sheet colours, with the signs of `text.states`, which the terminal has, too."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.protocols import Brief
from mulligan.pages import KINDS, STATES, mark_of
from mulligan.plugins import Episode

MARKS: Mapping[str, str] = {**{kind: mark for mark, kind in KINDS.items()}, "": "note"}
"""The states whose sign a kind of badge has."""

SIGNS: Mapping[str, str] = {kind: STATES[mark].symbol for kind, mark in MARKS.items()}


def kind_of_state(episode: Episode | Brief, state: str) -> str:
    """The kind of badge of an episode's state, as `app.story.state` words it."""
    return KINDS.get(mark_of(episode, state), "")
