"""How far a download is: its line once; on a terminal with a counter that is written over."""

from __future__ import annotations

import sys

import click

from mulligan.cli.terminal import say


class Counting:
    def __init__(self) -> None:
        self._line = ""
        self._percent = -1

    def tell(self, line: str, done: int, total: int) -> None:
        from mulligan.models.weights import megabytes

        counting = sys.stderr.isatty()
        if line != self._line:
            self._line, self._percent = line, -1
            say(line)
        percent = 100 * done // max(total, 1)
        step = 1 if counting else 10
        if percent // step == self._percent // step:
            return
        self._percent = percent
        said = f"{percent} % ({megabytes(done)} of {megabytes(total)})"
        if counting:
            click.echo(f"\r{said}", err=True, nl=done >= total)
        else:
            say(said)
