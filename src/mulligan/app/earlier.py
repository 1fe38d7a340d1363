"""Finds earlier solved episodes, for roles that compare a failed trial with a successful one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import NotFound, Unreadable
from mulligan.core.protocols import Bank, Journal
from mulligan.core.records import Episode, Json, Task
from mulligan.core.stores import EpisodeReader
from mulligan.recording.journal import asked_task


@runtime_checkable
class _Provenance(Protocol):
    """A bank that knows which episodes its lessons come from."""

    async def solved_like(self, task: Task) -> Sequence[str]: ...


class EarlierEpisodes:
    """`SolvedEpisodes` by the accounts of a bank and the records of a store.

    The episode that is found is recorded as a step of the journal, so a resume uses the same one, even if it was
    removed since.
    """

    def __init__(self, bank: Bank | None, store: EpisodeReader | None, journal: Journal) -> None:
        self._bank, self._store, self._journal = bank, store, journal

    async def nearest(self, episode: Episode) -> Episode | None:
        bank, store = self._bank, self._store
        if store is None or not isinstance(bank, _Provenance):
            return None

        async def search() -> Json:
            for id in await bank.solved_like(episode.task):
                if id != episode.id and (earlier := await _load_solved(store, id, episode.agent)):
                    return to_json(earlier)
            return None

        earlier = await self._journal.step("solved", {"task": asked_task(episode.task)}, search)
        return None if earlier is None else from_json(Episode, earlier)


async def _load_solved(store: EpisodeReader, id: str, agent: str) -> Episode | None:
    """The episode with only its task and its first passed trial. None if it cannot be read or has no such trial."""
    try:
        episode = await store.load(id, agent=agent or None)
    except (NotFound, Unreadable):
        return None
    if episode.passed is None:
        return None
    return Episode(episode.id, episode.task, episode.run, trials=(replace(episode.passed, reflection=None),))
