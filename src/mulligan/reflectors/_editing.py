"""Asks a person about each reflection before the next trial is shown it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mulligan.core.protocols import Journal, Reflector
from mulligan.core.records import Episode, Json, Reflection


@dataclass(frozen=True)
class Choice:
    """A person's decision: see `Edit`.

    Attributes:
        text: the text of a lesson that was edited or written.
        by: who decided.
    """

    decision: Literal["taken", "edited", "written", "vetoed"]
    text: str = ""
    by: str = ""


Decide: TypeAlias = Callable[[Episode, Reflection], Awaitable[Choice]]
"""Shows a person the episode, whose last trial has failed, and the reflection on it; returns what they decided."""


class Edited:
    """A reflector that wraps another, and whose reflections a person accepts, edits, replaces or vetoes.

    The answers are recorded in the journal: a resumed episode asks only questions that were not answered.
    """

    def __init__(self, inner: Reflector, *, journal: Journal, decide: Decide) -> None:
        self._inner, self._journal, self._decide = inner, journal, decide

    async def reflect(self, episode: Episode) -> Reflection | None:
        """Returns the inner reflector's reflection after the person's decision."""
        drawn = await self._inner.reflect(episode)
        if drawn is None:
            return None

        async def asked() -> Json:
            choice = await self._decide(episode, drawn)
            at = round(time.time(), 3)
            return {"decision": choice.decision, "text": choice.text, "by": choice.by, "at": at}

        request = {"trial": episode.trials[-1].number, "lesson": drawn.text, "withheld": drawn.withheld}
        return drawn.decided(**await self._journal.step("person", request, asked))
