"""What a server does behind its clients' backs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from mulligan.app.service import Service

SETTLED = 1.0
"""Seconds after the start: by then a client has had its first answers."""


@asynccontextmanager
async def in_the_background(service: Service) -> AsyncGenerator[None]:
    """Meanwhile what an earlier process was asked to learn and did not live to do is gone on with."""
    task = asyncio.create_task(_go_on(service))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _go_on(service: Service) -> None:
    await asyncio.sleep(SETTLED)
    from mulligan.app.going_on import go_on

    await go_on(service)
