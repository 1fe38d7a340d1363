"""All that a bank holds of one agent, as one value: what is exported, and what an import puts back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from mulligan.core.lessons import Entry, Kept, Link, Receipt, Version
from mulligan.core.records import Lesson


@dataclass(frozen=True)
class Archive:
    """The lessons of all states in the order in which they came, without vectors (`embedder` is None); their histories
    by id, oldest first; the links between them, each once; the recalls. agent_id None: recalls over all agents.
    """

    agent_id: str | None = ""
    lessons: tuple[Lesson, ...] = ()
    history: Mapping[str, tuple[Version, ...]] = field(default_factory=dict[str, tuple[Version, ...]])
    links: tuple[Link, ...] = ()
    receipts: tuple[Receipt, ...] = ()


@runtime_checkable
class Archives(Protocol):
    """The part of a store that takes everything out and puts it back. Raises `StoreError`."""

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        """That of this agent; None: those of all agents, by agent_id, and that of the recalls over all, if any."""
        ...

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Entry]]]) -> Sequence[Sequence[Kept]]:
        """Puts the archives in, all or nothing; entries: one for each lesson, in order; vectors are not taken.

        A lesson whose id is there already, or was folded here before, changes nothing; an exact duplicate of one that
        was there before, in the same state and not superseded, folds into it; all others come with their histories.
        """
        ...
