"""The journal's rules, over any store: a step that is done is reused, one that changed is named, none runs twice.

Moves are events and the effects inside them are steps: design/001.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import takewhile
from typing import TypeAlias, cast

from mulligan.core.codec import json_text
from mulligan.core.errors import JournalDiverged, JournalError, StepInFlight
from mulligan.core.protocols import Lease, StepRow, Store
from mulligan.core.records import Json
from mulligan.core.scope import path, scope

log = logging.getLogger("mulligan")


def digest(value: Json) -> str:
    """sha256 of the canonical JSON of `value`. Raises `InvalidInput` for what is not JSON."""
    return hashlib.sha256(json_text(value, canonical=True).encode()).hexdigest()


def changes(before: Json, after: Json, at: str = "") -> list[str]:
    """Where two requests differ, as paths such as `messages.0.text`; at most five."""
    if before == after:
        return []
    found = [c for key, old, new in _pairs(before, after) for c in changes(old, new, f"{at}.{key}" if at else key)]
    return found[:5] or [at or "the request"]


def _pairs(before: Json, after: Json) -> Iterator[tuple[str, Json, Json]]:
    """The children that two containers of one shape have, side by side; nothing for what is not alike."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast(dict[str, Json], before), cast(dict[str, Json], after)
        yield from ((key, old.get(key), new.get(key)) for key in sorted({*old, *new}))
    elif isinstance(before, list) and isinstance(after, list):
        ours, theirs = cast(list[Json], before), cast(list[Json], after)
        if len(ours) == len(theirs):
            yield from ((str(n), old, new) for n, (old, new) in enumerate(zip(ours, theirs, strict=True)))


Told: TypeAlias = Callable[[str, Json, Json, bool], None]
"""Is told of each step once it is done: its key, request and result, and whether it was recorded before."""


Known: TypeAlias = Callable[[str, str], Awaitable[tuple[Json, ...]]]
"""The result that another episode has recorded for a step of this name and request hash, or nothing."""


class StoredJournal:
    """A `Journal` for one drive of one episode. Keys are (path, n), n counted within the path.

    An effect that raises is not done: a failure that the role goes on from belongs into the result.
    A step inside another is keyed below it, so that it does not shift the count when the outer one is reused.
    `fork` goes on where a recorded request differs: what was recorded from there on is left behind.
    `told` watches; it cannot change anything, and what it raises is logged.
    fresh: nothing was recorded for this drive before, so that nothing is looked up. known: asked before a step is done
    that is not in the record; what it has found is recorded as the step's own result.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        *,
        fork: bool = False,
        told: Told | None = None,
        fresh: bool = False,
        known: Known | None = None,
    ) -> None:
        self._store = store
        self._known = known
        self._told = told
        self._lease = lease
        self._fork = fork
        self._recorded: dict[str, StepRow] | None = {} if fresh else None
        self._counts: Counter[str] = Counter()
        self._under_way: set[str] = set()

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        where = path(name)
        if where in self._under_way:
            raise JournalError(
                f"Two steps {where} at once would be numbered by who comes first, and mixed up on resuming. "
                "Give each branch a name of its own: with scope(name)."
            )
        self._counts[where] += 1
        count = self._counts[where]
        self._under_way.add(where)
        try:
            return await self._settle(name, f"{where}#{count}", f"{name}#{count}", request, do, repeatable)
        except JournalDiverged:
            self._counts[where] -= 1  # it was not taken
            raise
        finally:
            self._under_way.remove(where)

    def move(self, lease: Lease) -> None:
        """Goes on in another episode, which holds what this drive has taken so far."""
        self._lease, self._recorded = lease, None

    async def _settle(
        self, name: str, key: str, inner: str, request: Json, do: Callable[[], Awaitable[Json]], repeatable: bool
    ) -> Json:
        wanted = digest(request)
        row = await self._row(key)
        if row and row.request != request:
            if not self._fork:
                raise JournalDiverged(changes(row.request, request), key)
            self._leave_behind(key)
        elif row and row.done:
            self._tell(key, request, row.result, True)
            return row.result
        elif row and not repeatable and not self._fork:
            raise StepInFlight(key)
        found = await self._known(name, wanted) if self._known else ()
        await self._store.begin_step(self._lease, key, request, wanted)
        with scope(inner):
            result = found[0] if found else await do()
        await self._store.finish_step(self._lease, key, result)
        self._tell(key, request, result, bool(found))
        return result

    def _tell(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        try:
            if self._told:
                self._told(key, request, result, recorded)
        except Exception:
            log.exception("an observer of steps failed; the episode goes on")

    async def _row(self, key: str) -> StepRow | None:
        """What was recorded before this drive; under the lease nobody else adds to it."""
        if self._recorded is None:
            rows = {row.key: row for row in await self._store.steps(self._lease.episode)}
            if self._recorded is None:  # else a parallel branch was faster, and may have forked since
                self._recorded = rows
        return self._recorded.get(key)

    def _leave_behind(self, key: str) -> None:
        """Forget this row and those that were begun after it, as the store will when the step is begun anew."""
        rows = self._recorded or {}
        self._recorded = {kept: rows[kept] for kept in takewhile(lambda other: other != key, rows)}


class NoJournal:
    """A `Journal` that records nothing: for roles that are used alone, outside an episode.

    It refuses what could not be recorded, so that a role which works here works with a record too.
    """

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        json_text(request)
        result = await do()
        json_text(result)
        return result
