"""The earlier place of `mulligan.sessions.pairs`, for programs that import it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mulligan.core.turns import Turn
from mulligan.sessions import happenings
from mulligan.sessions.pairs import State as State
from mulligan.sessions.pairs import find as find


def happened(turns: Iterable[Turn]) -> Iterator[tuple[str, Turn]]:
    """As `happenings.happened`, each with its id."""
    return ((turn.id, turn) for turn in happenings.happened(turns))
