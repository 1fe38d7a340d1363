"""Badges: the kinds that the style sheet colours, with the signs of `text.states`, which the terminal has, too."""

from __future__ import annotations

from mulligan.core.protocols import Brief
from mulligan.pages import badge_kind, mark_of
from mulligan.plugins import Episode


def kind_of_state(episode: Episode | Brief, state: str) -> str:
    """The kind of badge of an episode's state, as `app.story.state` words it."""
    return badge_kind(mark_of(episode, state))
