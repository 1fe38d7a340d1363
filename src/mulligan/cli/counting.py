"""Shows the progress of long work on a terminal, in a last line with a percentage and the time left."""

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
    """Returns an estimate of the time left, such as "about 3 min left"."""
    if seconds >= 5400:
        return f"about {seconds / 3600:.0f} h left"
    return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"


class Pace:
    """The speed of counted work since its first count."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._first = 0

    def skip(self, done: int) -> None:
        """Excludes work that was done before, and so took no time."""
        self._first += done

    def left(self, done: int, total: int) -> str:
        """Returns the time left, or "" while it is unknown, in the first second, and at the end."""
        now = time.monotonic()
        if self._began is None:
            self._began, self._first = now, done
        new, seconds = done - self._first, now - self._began
        return about((total - done) * seconds / new) if new > 0 and seconds >= 1 and done < total else ""


class Counting:
    """Shows events as lines, and on a terminal the progress in a last line, which `stop` removes.

    It is a context manager.

    Args:
        quiet: whether to show nothing.
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
        """Removes the last line."""
        self._status = ""
        if self._screen is not None:
            self._screen.stop()

    def say(self, line: str) -> None:
        """Shows an event as a line that stays."""
        self.show(Entry("note", line))

    def show(self, entry: Entry) -> None:
        """Shows an event as lines that stay. A terminal omits its further text."""
        if self._screen is not None:
            self._screen.show(replace(entry, more=""))
        elif not self._quiet:
            say(entry.line)

    def doing(self, step: str) -> None:
        """Shows the current step in the last line of a terminal."""
        self._status = step
        if self._screen is not None:
            self._screen.refresh()

    def at(self, step: str, done: int, total: int, amount: Callable[[int], str] = str) -> None:
        """Shows the current step with its progress. amount: formats a number with its unit."""
        left = self._pace.left(done, total)
        self.doing(f"{step}: {100 * done // max(total, 1)} % ({amount(done)} of {amount(total)}{left and f', {left}'})")

    def skip(self, done: int) -> None:
        """Excludes this much work, which was done before, from the estimate."""
        self._pace.skip(done)
