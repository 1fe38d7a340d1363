"""Shows how far long work has come: a last line with percent and time left, on a terminal alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mulligan.cli.terminal import has_screen, say
from mulligan.cli.words import Entry

if TYPE_CHECKING:
    from mulligan.cli.live import Screen


def about(seconds: float) -> str:
    """An estimate of the time left, such as "about 3 min left"."""
    if seconds >= 5400:
        return f"about {seconds / 3600:.0f} h left"
    return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"


class Pace:
    """How fast counted work goes, by what was done since the first count."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._first = 0

    def skip(self, done: int) -> None:
        """Leave out what was found done: it took no time."""
        self._first += done

    def left(self, done: int, total: int) -> str:
        """The time left; "" while it is unknown, in the first second, and at the end."""
        now = time.monotonic()
        if self._began is None:
            self._began, self._first = now, done
        here, seconds = done - self._first, now - self._began
        return about((total - done) * seconds / here) if here > 0 and seconds >= 1 and done < total else ""


class Counting:
    """Shows events as lines, and on a terminal how far the work is, in a last line that `stop` takes away.

    A context manager, which stops at its end.

    Args:
        quiet: show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._quiet, self._status, self._pace = quiet, "", Pace()
        self._screen: Screen | None = None
        if not quiet and has_screen():
            from mulligan.cli.live import Screen  # which imports rich

            self._screen = Screen(lambda: self._status)

    def __enter__(self) -> Counting:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        if self._screen is not None:
            self._screen.start()

    def stop(self) -> None:
        """Take the last line away."""
        self._status = ""
        if self._screen is not None:
            self._screen.stop()

    def say(self, line: str) -> None:
        """Show an event as a line that stays."""
        self.show(Entry("note", line))

    def show(self, entry: Entry) -> None:
        """Show an event as lines that stay. What is more stands in the last line, where there is one."""
        if self._screen is not None:
            self._screen.show(replace(entry, more=""))
        elif not self._quiet:
            say(entry.line)

    def doing(self, step: str) -> None:
        """Show the current step in the last line. Elsewhere than on a terminal it is not shown."""
        self._status = step
        if self._screen is not None:
            self._screen.refresh()

    def at(self, step: str, done: int, total: int, amount: Callable[[int], str] = str) -> None:
        """Show the current step with how much is done. amount: writes a number with its unit."""
        left = self._pace.left(done, total)
        came = f"{100 * done // max(total, 1)} % ({amount(done)} of {amount(total)}{left and f', {left}'})"
        self.doing(f"{step}: {came}")

    def skip(self, done: int) -> None:
        """Leave this much, which was found done, out of the estimate."""
        self._pace.skip(done)
