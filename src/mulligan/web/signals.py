"""The signals that ask a server to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress


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
