"""`mulligan store`: back-ups of the file that holds runs and lessons."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from mulligan.app import backup as library
from mulligan.app.config import load
from mulligan.cli.terminal import emit, say
from mulligan.cli.words import count


@click.group()
def store() -> None:
    """The store of runs and lessons: back it up, and restore it."""


@store.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Copy the store to the new FILE, while servers and commands use it."""
    library.back_up(load(), file)
    emit(f"{file}  {file.stat().st_size:,} bytes")


@store.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="A store that exists is renamed, and its place taken.")
def restore(file: Path, replace: bool) -> None:
    """Put the back-up FILE in the place of the store, without what was erased since."""
    done = asyncio.run(library.restore(load(), file, replace=replace))
    if done.lessons or done.episodes:
        erased = f"{count(done.lessons, 'lesson')} and {count(done.episodes, 'episode')}"
        say(f"Erased again, as they were erased after the back-up: {erased}")
    if done.replaced:
        say(f"The store of before is {done.replaced}; it holds what it held, so remove it once you need it no more.")
    emit(str(load().store))
