"""The live display on a terminal: entries that stay, in colour and wrapped, above one line for the current step."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live as RichLive
from rich.padding import Padding
from rich.spinner import Spinner
from rich.text import Text

from mulligan.app.story import run_state
from mulligan.cli import words
from mulligan.cli.progress import Lines, print_result
from mulligan.cli.words import Entry
from mulligan.core.episode import Event
from mulligan.core.limits import Limits
from mulligan.core.records import Episode
from mulligan.text.figures import used
from mulligan.text.plain import clean
from mulligan.text.states import STATES

INDENT = 4
"""Columns by which the text of an entry, such as a lesson, stands to the right."""


class Screen:
    """Writes entries to a terminal, and redraws a status line below them until `stop`.

    Args:
        status: gives the current status line; it is asked a few times a second. "" for none.
        console: where to write (default: stderr).
    """

    def __init__(self, status: Callable[[], str], console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._status, self._spinner = status, Spinner("line")
        self._block = RichLive(console=self._console, get_renderable=lambda: self, refresh_per_second=4, transient=True)

    def start(self) -> None:
        self._block.start()

    def stop(self) -> None:
        self._block.stop()

    def refresh(self) -> None:
        """Draw the status line now, and not only at its next turn."""
        self._block.refresh()

    def show(self, entry: Entry) -> None:
        """Write an entry that stays: its symbol and what happened, then its text, wrapped to the terminal's width."""
        state = STATES[entry.state]
        colour = "" if state.colour == "default" else state.colour
        symbol = state.symbol if self._writes(state.symbol) else state.ascii
        head = Text.assemble((f"{symbol} {self._text(entry.head)}", colour))
        self._print(head)
        style = colour if entry.state == "lesson" else ""
        for text in filter(None, (entry.text.strip(), entry.more.lstrip("; ").strip())):
            self._print(Padding(Text(self._text(text), style), (0, 0, 0, INDENT), expand=False))

    def changes(self, lines: list[str]) -> None:
        """Write a diff: what was added as what passed looks, what was removed as what failed does."""
        colours = {"+": STATES["passed"].colour, "-": STATES["failed"].colour, "@": STATES["running"].colour}
        for line in lines:
            self._print(Padding(Text(self._text(line), colours.get(line[:1], "")), (0, 0, 0, INDENT), expand=False))

    def _print(self, what: RenderableType) -> None:
        self._console.print(what, overflow="fold", soft_wrap=False)

    def _writes(self, text: str) -> bool:
        try:
            text.encode(self._console.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def _text(self, text: str) -> str:
        """Without control characters, and with escapes for what the terminal's encoding lacks."""
        encoding = self._console.encoding
        return clean(text).expandtabs(4).encode(encoding, "backslashreplace").decode(encoding)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if status := self._status():
            self._spinner.update(text=Text(self._text(status), no_wrap=True, overflow="crop"))
            yield self._spinner


class Live(Lines):
    """Shows a heading, then each verdict and lesson as it comes, and at the end what changed between the attempts."""

    def __init__(self, console: Console | None = None) -> None:
        self._screen = Screen(self._status, console)

    def began(self, episode: Episode, limits: Limits) -> None:
        self._limits = limits
        self._at(episode)
        self._screen.show(Entry("running", words.heading(episode, limits)))
        self._screen.start()

    def saw(self, episode: Episode, event: Event) -> None:
        self._at(episode)
        if entry := words.entry(episode, event, self._limits):
            self._screen.show(entry)
        self._screen.refresh()

    def notice(self, sentence: str) -> None:
        self._screen.show(Entry("note", sentence))

    def interrupting(self) -> None:
        self._screen.stop()
        super().interrupting()

    def ended(self, episode: Episode, limits: Limits) -> None:
        self._screen.stop()
        if lines := words.changes(episode):
            self._screen.show(Entry("note", "from the first attempt to the last:"))
            self._screen.changes(lines)
        headline, *rest = words.closing(episode, limits)
        self._screen.show(Entry(run_state(episode, False).mark, headline))
        for line in rest:
            self._screen.show(Entry("note", line))
        print_result(episode)

    def failed(self, error: Exception) -> None:
        self._screen.stop()

    def _at(self, episode: Episode) -> None:
        self._episode = episode
        self._since = time.monotonic()

    def _status(self) -> str:
        episode = self._episode
        step, spent = words.doing(episode, self._limits), used(episode.usage)
        return step and f"{step} ({time.monotonic() - self._since:.0f} s{f'; {spent} so far' if spent else ''})"
