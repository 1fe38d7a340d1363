"""Badges, which have the same signs as the terminal."""

from __future__ import annotations

from mulligan.core.protocols import Brief
from mulligan.pages import badge_kind, mark_of
from mulligan.plugins import Episode


def kind_of_state(episode: Episode | Brief, state: str) -> str:
    """The kind of badge for an episode. state: as `mulligan.pages.state` returns it."""
    return badge_kind(mark_of(episode, state))
