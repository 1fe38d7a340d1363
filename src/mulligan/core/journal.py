"""The journal's rules, over any store: a step that is done is reused, one that changed is named, none runs twice."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import cast

from mulligan.core.errors import JournalDiverged, StepInFlight
from mulligan.core.protocols import Lease, Store
from mulligan.core.records import Json
from mulligan.core.scope import path


def digest(value: Json) -> str:
    """sha256 of the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def changes(before: Json, after: Json, at: str = "") -> list[str]:
    """Where two requests differ, as paths such as `messages.0.text`; at most five."""
    pairs = list(_pairs(before, after))
    if not pairs:
        return [] if before == after else [at or "the request"]
    found = [c for key, old, new in pairs for c in changes(old, new, f"{at}.{key}" if at else key)]
    return found[:5]


def _pairs(before: Json, after: Json) -> Iterator[tuple[str, Json, Json]]:
    """The children that two containers of one shape have, side by side; nothing for what is not alike."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast(dict[str, Json], before), cast(dict[str, Json], after)
        yield from ((key, old.get(key), new.get(key)) for key in sorted({*old, *new}))
    elif isinstance(before, list) and isinstance(after, list):
        ours, theirs = cast(list[Json], before), cast(list[Json], after)
        if len(ours) == len(theirs):
            yield from ((str(n), old, new) for n, (old, new) in enumerate(zip(ours, theirs, strict=True)))


class StoredJournal:
    """A `Journal` for one drive of one episode. Keys are (path, n), n counted within the path.

    `fork` goes on where a recorded request differs: the old row is left behind for the new one.
    """

    def __init__(self, store: Store, lease: Lease, *, fork: bool = False) -> None:
        self._store = store
        self._lease = lease
        self._fork = fork
        self._counts: Counter[str] = Counter()

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        where = path(name)
        self._counts[where] += 1
        key = f"{where}#{self._counts[where]}"
        wanted = digest(request)
        row = await self._store.step(self._lease, key)
        if row and row.request_hash != wanted and not self._fork:
            raise JournalDiverged(changes(row.request, request), key)
        if row and row.request_hash == wanted:
            if row.done:
                return row.result
            if not repeatable and not self._fork:
                raise StepInFlight(key)
        await self._store.begin_step(self._lease, key, request, wanted)
        result = await do()
        await self._store.finish_step(self._lease, key, result)
        return result


class NoJournal:
    """A `Journal` that records nothing: for roles that are used alone, outside an episode."""

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        return await do()
