"""Formats recorded episodes: as lines of a table, or as JSON objects."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Container, Sequence

from mulligan.app.story import state
from mulligan.cli.terminal import columns, one_line
from mulligan.core.codec import to_json
from mulligan.core.records import Episode, Json

COLUMNS = ("run", "when", "state", "trials", "model", "task")
WIDTHS = {"model": 24, "task": 60}
"""The most characters of columns with free text."""


def facts(episode: Episode, running: bool) -> dict[str, Json]:
    return {
        "run": episode.run,
        "episode": episode.id,
        "started": episode.started,
        "state": state(episode, running),
        "trials": len(episode.trials),
        "models": dict(episode.head.models),
        "task": episode.task.prompt,
        "used": to_json(episode.usage),
        "seconds": episode.seconds,
        "stop": episode.stop and to_json(episode.stop),
    }


def story(episode: Episode, running: bool) -> dict[str, Json]:
    """`facts`, with the trials themselves instead of their number, and people's ratings."""
    trials, ratings = ([to_json(one) for one in several] for several in (episode.trials, episode.ratings))
    return {**facts(episode, running), "trials": trials, "ratings": ratings}


def rows(episodes: Sequence[Episode], running: Container[str]) -> str:
    """A table of the episodes; on a terminal, lines are cut to its width. running: ids of those in progress."""
    several = {episode.run for episode in episodes if not episode.id.endswith(".1")}
    cells = [COLUMNS, *(_cells(e, e.run in several, e.id in running) for e in episodes)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return "\n".join(line[:width] for line in columns(cells).split("\n"))


def _cells(episode: Episode, one_of_several: bool, running: bool) -> tuple[str, ...]:
    """The cells of a row. A run with several episodes shows their ids, which the other commands take, too."""
    return (
        episode.id if one_of_several else episode.run,
        time.strftime("%Y-%m-%d %H:%M", time.localtime(episode.started)),
        state(episode, running),
        str(len(episode.trials)),
        one_line(next(iter(episode.head.models.values()), "-"), WIDTHS["model"]),
        one_line(episode.task.prompt, WIDTHS["task"]),
    )
