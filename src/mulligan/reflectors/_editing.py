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
    """What a person decided: see `Edit`. text: of a lesson that was edited or written. by: who decided."""

    decision: Literal["taken", "edited", "written", "vetoed"]
    text: str = ""
    by: str = ""


Decide: TypeAlias = Callable[[Episode, Reflection], Awaitable[Choice]]
"""Shows a person the episode, whose last trial has failed, and the reflection on it; returns what they decided."""


class Edited:
    """A reflector around another one, whose reflections a person takes, edits, writes anew or vetoes.

    The answer is a step of the journal: a resumed episode asks only for what was not answered.
    """

    def __init__(self, inner: Reflector, *, journal: Journal, decide: Decide) -> None:
        self._inner, self._journal, self._decide = inner, journal, decide

    async def reflect(self, episode: Episode) -> Reflection | None:
        drawn = await self._inner.reflect(episode)
        if drawn is None:
            return None

        async def asked() -> Json:
            choice = await self._decide(episode, drawn)
            at = round(time.time(), 3)
            return {"decision": choice.decision, "text": choice.text, "by": choice.by, "at": at}

        request = {"trial": episode.trials[-1].number, "lesson": drawn.text, "withheld": drawn.withheld}
        return drawn.decided(**await self._journal.step("person", request, asked))
