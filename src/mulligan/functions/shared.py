"""The stores and banks that calls share while the program runs, and objects for callers of both kinds."""

from __future__ import annotations

import atexit
import inspect
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from mulligan.app.config import Config
from mulligan.app.memory import open_bank
from mulligan.core.protocols import Bank, Store
from mulligan.recording.bridge import keeper, portal, settled
from mulligan.store import file_of, open_store

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a call waits for a lock held by another process, before it continues without a record."""

_shared: dict[tuple[str, ...], Any] = {}
_sharing = threading.Lock()


def shared_store(address: str | Path) -> Store:
    """The store at this address, which stays open while the program runs."""
    with _sharing:
        name, file = ("store", str(address)), file_of(address)
        return _shared.get(name) or _opened(name, open_store(address) if file is None else _patient(file))


def shared_bank(agent_id: str, config: Config) -> Bank:
    """The bank of this agent in the configured store; it stays open while the program runs."""
    store = shared_store(config.store)
    with _sharing:
        name = ("bank", str(config.store), agent_id)
        return _shared.get(name) or _opened(name, open_bank(agent_id, store=store.memory, config=config))


def _patient(file: Path) -> Store:
    from mulligan.store.sqlite import SqliteStore

    return SqliteStore(file, busy_seconds=PATIENCE)


def _opened(name: tuple[str, ...], what: T) -> T:
    _shared[name] = what
    return what


@atexit.register
def close_shared() -> None:
    """Closes the stores and banks that calls share. The next call opens them again."""
    with _sharing:
        opened = sorted(_shared.items())  # banks before the stores that they are in
        _shared.clear()
    for (kind, *_), what in opened:
        with suppress(Exception):  # the program ends, and what is kept was kept
            (portal if kind == "bank" else keeper).run(what.close())
    for one in (portal, keeper):
        one.close()


class Placed:
    """An object for callers of both kinds: each of its coroutine methods runs on the portal where it has to."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*given: Any, **named: Any) -> Any:
            return await settled(found(*given, **named))

        return call
