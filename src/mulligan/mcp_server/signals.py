"""Being told to stop: the first signal is a request, the second an order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_stop() -> Generator[asyncio.Event]:
    """Set by the first SIGTERM or SIGINT; from then on they end the process at once.

    Where signals cannot be had (another thread than the main one, Windows) it is never set.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def first() -> None:
        told.set()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number in SIGNALS:
            loop.add_signal_handler(number, first)
    try:
        yield told
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
