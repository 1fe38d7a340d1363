"""Stores and banks that calls share while the program runs, and objects for synchronous and asynchronous callers."""

from __future__ import annotations

import atexit
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from mulligan.app.config import Config
from mulligan.app.memory import open_bank
from mulligan.core.protocols import Bank, Store
from mulligan.recording.bridge import keeper, portal
from mulligan.store import file_of, open_store

T = TypeVar("T")

LOCK_SECONDS = 5.0
"""How long a call waits for a lock held by another process before it continues without a record."""

_shared: dict[tuple[str, ...], Any] = {}
_sharing = threading.Lock()


def shared_store(address: str | Path) -> Store:
    """The store at this address; it stays open while the program runs."""
    with _sharing:
        name, file = ("store", str(address)), file_of(address)
        return _shared.get(name) or _share(name, open_store(address) if file is None else _open_file(file))


def shared_bank(agent_id: str, config: Config) -> Bank:
    """The bank of this agent in the configured store; it stays open while the program runs."""
    store = shared_store(config.store)
    with _sharing:
        name = ("bank", str(config.store), agent_id)
        return _shared.get(name) or _share(name, open_bank(agent_id, store=store.memory, config=config))


def _open_file(file: Path) -> Store:
    from mulligan.store.sqlite import SqliteStore

    return SqliteStore(file, busy_seconds=LOCK_SECONDS)


def _share(name: tuple[str, ...], resource: T) -> T:
    _shared[name] = resource
    return resource


@atexit.register
def close_shared() -> None:
    """Closes the stores and banks that calls share. The next call opens them again."""
    with _sharing:
        resources = sorted(_shared.items())  # banks before the stores that they are in
        _shared.clear()
    for (kind, *_), resource in resources:
        with suppress(Exception):  # the program is ending, and everything written is safe
            (portal if kind == "bank" else keeper).run(resource.close())
    portal.close()
    keeper.close()
