"""A run that goes on otherwise than it was recorded: from an old checkpoint with the state edited, or with another
prompt or model after a crash. LangGraph's users do that on purpose, so it is no error: design/015.

The record that was there stays as it is. The run goes on as an episode of its own, `forked_from` it, that begins with
the events and the journal steps that both have in common. Its id is made from where and how the two part, so that a
fork that was killed is gone on with, and nothing in it is paid twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mulligan.core.codec import from_json, to_json
from mulligan.core.episode import Stopped
from mulligan.core.errors import JournalDiverged, NotFound
from mulligan.core.journal import StoredJournal, digest
from mulligan.core.protocols import Lease, Store
from mulligan.core.records import Episode, Json, Stop
from mulligan.core.scope import path

if TYPE_CHECKING:
    from mulligan.langgraph.working import Recorder, Work


class ForkingJournal:
    """The journal of one node's work, which goes on in a fork at the first step that was recorded otherwise."""

    def __init__(self, work: Work, fresh: bool) -> None:
        self._work = work
        self._done: list[tuple[str, Json, Json]] = []
        self._open: dict[str, Json] = {}
        store, lease = cast(Store, work.store), cast(Lease, work.lease)
        self._inner = StoredJournal(store, lease, told=self._told, fresh=fresh)

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        async def doing() -> Json:
            key = path()
            self._open[key] = request
            try:
                return await do()
            finally:
                del self._open[key]

        try:
            return await self._inner.step(name, request, doing, repeatable=repeatable)
        except JournalDiverged:
            assert self._work.fork
            await self._work.fork({"step": path(name), "request": request})
            return await self._inner.step(name, request, doing, repeatable=repeatable)

    async def move(self, store: Store, lease: Lease) -> None:
        """Writes what this work has done so far into the episode of this lease, and goes on there."""
        there = {row.key for row in await store.steps(lease.episode) if row.done}
        for key, request in self._open.items():
            await store.begin_step(lease, key, request, digest(request))
        for key, request, result in self._done:
            if key not in there:
                await store.begin_step(lease, key, request, digest(request))
                await store.finish_step(lease, key, result)
        self._inner.move(lease)

    def _told(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        self._done.append((key, request, result))


async def forked(recorder: Recorder, work: Work, stack: AsyncExitStack, why: Json) -> None:
    """Makes this the work on a fork of its episode. why: how the two part."""
    old, store, journal = work.episode, cast(Store, work.store), cast(ForkingJournal, work.journal)
    run = digest([old.id, len(work.events), why])[:12]
    if work.resumed and not any(isinstance(event, Stopped) for event in work.kept):
        await work.tell(Stopped(Stop("interrupted", f"it went on otherwise, as run {run}")))
    begun = replace(from_json(Episode, work.begun), id=f"{run}.1", run=run, forked_from=old.id)
    files = await store.files(old.id)
    work.begun, work.episode = to_json(begun), replace(old, id=begun.id, run=run, forked_from=old.id)
    work.kept, work.place, work.resumed = (), 0, True
    try:
        await store.load(begun.id)
    except NotFound:
        await store.create(begun, files)
    await recorder.take(work, stack, journal)
