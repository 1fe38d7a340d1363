"""Find earlier episodes that were solved, for roles that compare a failed trial with a successful one."""

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
    """`SolvedEpisodes` by the accounts of a bank and the records of the store. What was found is a step of the journal,
    so a resumed episode compares with the same one, even if that was removed since.
    """

    def __init__(self, bank: Bank | None, store: EpisodeReader | None, journal: Journal) -> None:
        self._bank, self._store, self._journal = bank, store, journal

    async def nearest(self, episode: Episode) -> Episode | None:
        bank, store = self._bank, self._store
        if store is None or not isinstance(bank, _Provenance):
            return None

        async def look() -> Json:
            for id in await bank.solved_like(episode.task):
                if id != episode.id and (found := await _loaded(store, id, episode.agent)):
                    return to_json(found)
            return None

        found = await self._journal.step("solved", {"task": asked_task(episode.task)}, look)
        return None if found is None else from_json(Episode, found)


async def _loaded(store: EpisodeReader, id: str, agent: str) -> Episode | None:
    """The episode with its task and its first passed trial alone. None if it cannot be read or has no such trial."""
    try:
        found = await store.load(id, agent=agent or None)
    except (NotFound, Unreadable):
        return None
    if found.passed is None:
        return None
    return Episode(found.id, found.task, found.run, trials=(replace(found.passed, reflection=None),))
