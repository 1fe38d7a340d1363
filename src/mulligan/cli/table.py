"""Formats recorded episodes as a table or as JSON objects."""

from __future__ import annotations

from collections.abc import Container, Sequence

from mulligan.app.run_context import RunContext
from mulligan.app.story import run_state
from mulligan.cli.terminal import columns, on_terminal, one_line, width
from mulligan.core.codec import to_json
from mulligan.core.records import Episode, Json
from mulligan.recording.drivers import asked_by_name, sentence_in
from mulligan.text.figures import when

COLUMNS = ("run", "when", "state", "tries", "model", "task")
WIDTHS = {"model": 24, "task": 60}
"""The maximum width of columns with free text."""
NARROWEST, NARROW, SHORT = 72, 96, 110
"""The widths of a terminal below which the table has no times, no models, and no years."""


def facts(episode: Episode, running: bool) -> dict[str, Json]:
    return {
        "run": episode.run,
        "episode": episode.id,
        "started": episode.started,
        "state": run_state(episode, running).name,
        "trials": len(episode.trials),
        "models": dict(episode.head.models),
        "task": episode.task.prompt,
        "used": to_json(episode.usage),
        "seconds": episode.seconds,
        "stop": episode.stop and to_json(episode.stop),
    }


def story(episode: Episode, context: RunContext) -> dict[str, Json]:
    """Returns `facts` with the trials instead of their number, people's ratings, and the answer as a sentence."""
    trials, ratings = ([to_json(one) for one in records] for records in (episode.trials, episode.ratings))
    answer = sentence_in(context.steps) if asked_by_name(episode) else ""
    fields: dict[str, Json] = {**facts(episode, context.running), "trials": trials, "ratings": ratings}
    return {**fields, "answer": answer} if answer else fields


def rows(episodes: Sequence[Episode], running: Container[str]) -> str:
    """Returns a table of the episodes. running: the ids of those in progress."""
    several = {episode.run for episode in episodes if not episode.id.endswith(".1")}
    cells = [list(COLUMNS), *(list(_cells(e, e.run in several, e.id in running)) for e in episodes)]
    model = COLUMNS.index("model")
    if on_terminal() and width() < NARROW:
        cells = [[*row[:model], *row[model + 1 :]] for row in cells]
    if on_terminal() and width() < NARROWEST:
        cells = [[row[0], *row[2:]] for row in cells]
    return columns(cells, fold=False, shorten=(model,) if len(cells[0]) == len(COLUMNS) else ())


def cut(episodes: Sequence[Episode]) -> bool:
    """Whether the table shortens a task or the name of a model."""
    texts = [text for e in episodes for text in ((_model(e), "model"), (e.task.prompt, "task"))]
    return any(len(one_line(text)) > WIDTHS[name] for text, name in texts)


def _model(episode: Episode) -> str:
    return next(iter(episode.head.models.values()), "-")


def _cells(episode: Episode, one_of_several: bool, running: bool) -> tuple[str, ...]:
    """Returns the cells of a row. A run with several episodes has their ids, which other commands also accept."""
    started = when(episode.started)
    return (
        episode.id if one_of_several else episode.run,
        started[5:] if on_terminal() and width() < SHORT else started,
        run_state(episode, running).word,
        str(len(episode.trials)),
        one_line(_model(episode), WIDTHS["model"]),
        one_line(episode.task.prompt, WIDTHS["task"]),
    )
