"""The live display of progress: a block on the terminal, redrawn while the episode runs and removed at its end."""

from __future__ import annotations

import time

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live as RichLive
from rich.spinner import Spinner
from rich.text import Text

from mulligan.cli import words
from mulligan.cli.progress import Lines
from mulligan.core.episode import Evaluated, Event
from mulligan.core.limits import Limits
from mulligan.core.records import Episode

MAX_VERDICTS = 8
"""The most judged trials in the block, so that it fits into a small terminal."""


class Live(Lines):
    """Shows a heading, a line for each judged trial, the current step with its time, and the usage so far."""

    def __init__(self) -> None:
        self._block = RichLive(
            console=Console(stderr=True), get_renderable=lambda: self, refresh_per_second=4, transient=True
        )
        self._spinner = Spinner("line")
        self._verdicts: list[str] = []

    def began(self, episode: Episode, limits: Limits) -> None:
        self._limits = limits
        self._verdicts.clear()
        self._show(episode)
        self._block.start()

    def saw(self, episode: Episode, event: Event) -> None:
        if isinstance(event, Evaluated) and (line := words.event_line(episode, event, self._limits)):
            self._verdicts.append(line)
        self._show(episode)
        self._block.refresh()

    def notice(self, sentence: str) -> None:
        self._block.stop()
        super().notice(sentence)

    def interrupting(self) -> None:
        self._block.stop()
        super().interrupting()

    def ended(self, episode: Episode, limits: Limits) -> None:
        self._block.stop()
        super().ended(episode, limits)

    def failed(self, error: Exception) -> None:
        self._block.stop()

    def _show(self, episode: Episode) -> None:
        self._episode = episode
        self._since = time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        episode = self._episode
        step = words.doing(episode, self._limits)
        lines = [words.heading(episode, self._limits), *self._verdicts[-MAX_VERDICTS:]]
        yield Group(*(_line(line) for line in lines))
        if step:
            self._spinner.update(text=_line(f"{step} ({time.monotonic() - self._since:.0f} s)"))
            yield self._spinner
        yield _line(f"{words.used(episode.usage)} so far")


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="crop")
