"""The bank of a run that is only asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.app.compose import Parts
from mulligan.core.protocols import Bank, Learned
from mulligan.core.records import Episode, Recall, Task


def with_memory(parts: Parts, memory: str | None) -> Parts:
    """Where memory is "frozen", the bank is only asked."""
    return replace(parts, bank=FrozenBank(parts.bank)) if memory == "frozen" and parts.bank is not None else parts


class FrozenBank:
    """Recalls, and leaves one of ours exactly as it is: a use that counts would change what the next case is shown, and
    cases run in any order. A bank of another make is asked as it can be."""

    def __init__(self, inner: Bank) -> None:
        self._inner = inner

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        from mulligan.bank.bank import Bank as OurBank

        if isinstance(self._inner, OurBank):
            return await self._inner.recall(task, top_k=top_k, counted=False)
        return await self._inner.recall(task, top_k=top_k)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return Learned(nothing_because="the bank is frozen")
