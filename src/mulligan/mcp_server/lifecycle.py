"""When a server stops, and what it does in the background until then."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mulligan.app.service import Service

SETTLE_SECONDS = 1.0
"""How long to wait before background work, so that the client gets its first answers first."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, SIGINT and SIGHUP; without SIGHUP where it is ignored (`nohup`) or does not exist (Windows)."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) == signal.SIG_IGN:
        return signal.SIGTERM, signal.SIGINT
    return signal.SIGTERM, signal.SIGINT, hangup


@contextmanager
def stop_requested() -> Generator[asyncio.Event]:
    """An event that the first stop signal sets; a second signal ends the process at once.

    Where signals cannot be handled (outside the main thread, on Windows) the event is never set.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    signals = stop_signals()
    before = {number: signal.getsignal(number) for number in signals}

    def first() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number in signals:
            loop.add_signal_handler(number, first)
    try:
        yield stop
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)


@asynccontextmanager
async def background_learning(service: Service) -> AsyncGenerator[None]:
    """Meanwhile finishes learning jobs that an earlier process left behind."""
    task = asyncio.create_task(_finish_pending(service))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _finish_pending(service: Service) -> None:
    await asyncio.sleep(SETTLE_SECONDS)
    from mulligan.app.going_on import go_on  # imports the store

    await go_on(service)
