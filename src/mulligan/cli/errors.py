"""The exit status of a command, and a line for each error. Scripts rely on the numbers."""

from __future__ import annotations

import os
import traceback

from mulligan.app.workspaces import unjudged
from mulligan.cli.terminal import clean, say
from mulligan.core.episode import RESUMABLE
from mulligan.core.errors import InvalidInput, JournalDiverged, MulliganError, NotFound
from mulligan.core.records import Episode

SOLVED, NOT_SOLVED, BAD_INPUT, UNFINISHED, NOT_JUDGED = range(5)


def exit_status(end: Episode | BaseException) -> int:
    """0 solved, or done where nobody was to judge; 1 not solved; 2 bad input; 3 interrupted, over budget or an error; 4
    never judged."""
    if isinstance(end, BaseException):
        return BAD_INPUT if isinstance(end, (InvalidInput, JournalDiverged, NotFound)) else UNFINISHED
    if end.solved or unjudged(end):
        return SOLVED
    if end.stop is None or end.stop.reason in RESUMABLE:
        return UNFINISHED
    return NOT_SOLVED if end.judged else NOT_JUDGED


def run_status(best: Episode, last: Episode) -> int:
    """Of a run that gave out `best` and ended with `last`: a restart that was cut off leaves it unfinished."""
    return UNFINISHED if not best.solved and exit_status(last) == UNFINISHED else exit_status(best)


def report(error: Exception, run: str = "") -> int:
    """Says what went wrong, on stderr, and where the record of the run is; the exit status.

    `MULLIGAN_DEBUG` set to anything adds the traceback.
    """
    if os.environ.get("MULLIGAN_DEBUG"):
        say("".join(traceback.format_exception(error)))
    if isinstance(error, (MulliganError, OSError)):  # a full disk or a folder that is gone is nobody's bug
        say(f"Error: {clean(str(error))}")
    else:
        say(f"Error: {type(error).__name__}: {clean(str(error))}")
        say("That should not happen: please report it, with what MULLIGAN_DEBUG=1 adds.")
    if run:
        say(f"What was done so far is kept: mulligan runs show {run}")
    return exit_status(error)
