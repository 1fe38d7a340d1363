"""Being told to stop: the first signal is a request, the second an order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress


def stop_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, SIGINT and SIGHUP (the terminal was closed); not SIGHUP where it is ignored, as under `nohup`."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is None or signal.getsignal(hangup) == signal.SIG_IGN:
        return signal.SIGTERM, signal.SIGINT
    return signal.SIGTERM, signal.SIGINT, hangup


@contextmanager
def told_to_stop() -> Generator[asyncio.Event]:
    """Set by the first SIGTERM, SIGINT or SIGHUP; from then on they end the process at once.

    Where signals cannot be had (another thread than the main one, Windows) it is never set.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    signals = stop_signals()
    before = {number: signal.getsignal(number) for number in signals}

    def first() -> None:
        told.set()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    with suppress(NotImplementedError, RuntimeError, ValueError):
        for number in signals:
            loop.add_signal_handler(number, first)
    try:
        yield told
    finally:
        with suppress(NotImplementedError, RuntimeError, ValueError):
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
