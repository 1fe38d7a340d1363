"""Opens the store of this folder for commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mulligan.app.config import load
from mulligan.core.protocols import Store
from mulligan.store import open_store

T = TypeVar("T")


def with_store(work: Callable[[Store], Awaitable[T]]) -> T:
    """Runs `work` with the store of this folder, and closes it afterwards."""

    async def main() -> T:
        async with open_store(load().store) as store:
            return await work(store)

    return asyncio.run(main())
