"""Defines the exit statuses of commands, on which scripts rely, and prints errors."""

from __future__ import annotations

import os
import re
import traceback

from mulligan.app.options import ResumeOptions, SolveOptions, options_in
from mulligan.app.workspaces import unjudged
from mulligan.cli.terminal import clean, say
from mulligan.core.errors import InvalidInput, JournalDiverged, MulliganError, NotFound
from mulligan.core.records import Episode

SOLVED, NOT_SOLVED, BAD_INPUT, UNFINISHED, NOT_JUDGED, UNSURE, ABSENT = range(7)


def exit_status(end: Episode | BaseException) -> int:
    """Returns the exit status for the end of an episode, or for an error.

    0: solved, or done without a judge. 1: not solved. 2: bad input. 3: interrupted, over budget, or an error. 4: never
    judged. 5: an answer that was judged not good enough, but not proved wrong. 6: the subject of the task does not
    exist.
    """
    if isinstance(end, BaseException):
        return BAD_INPUT if isinstance(end, (InvalidInput, JournalDiverged, NotFound)) else UNFINISHED
    if end.solved or unjudged(end):
        return SOLVED
    if end.stop is None or end.stop.resumable:
        return UNFINISHED
    if end.stop.reason in ("unsure", "absent"):
        return UNSURE if end.stop.reason == "unsure" else ABSENT
    return NOT_SOLVED if end.judged else NOT_JUDGED


def run_status(best: Episode, last: Episode) -> int:
    """Returns the exit status of a run, which is unfinished if its last episode was interrupted."""
    return UNFINISHED if not best.solved and exit_status(last) == UNFINISHED else exit_status(best)


_OPTIONS = {
    **{it.name: it.flags[0] for it in options_in(SolveOptions) + options_in(ResumeOptions) if it.flags},
    **{name: f"--{name.replace('_', '-')}" for name in ("agent_id", "format", "max_iter", "task")},
    "bank": "--memory",
    "success": "--outcome",
}
"""The options of commands by the Python arguments that errors name, such as check='pytest -q'."""
_ARGUMENT = re.compile(rf"(?<![\w.\-\[{{'\"])({'|'.join(_OPTIONS)})=('[^']*'|\"[^\"]*\"|[\w:…]*)")


def message_of(error: BaseException) -> str:
    """Returns the error's message, with options in place of Python arguments."""

    def option(match: re.Match[str]) -> str:
        value = re.sub(r"^'([^'\s]+)'$", r"\1", match[2])
        return _OPTIONS[match[1]] if value in ("", "True") else f"{_OPTIONS[match[1]]} {value}"

    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = ": ".join(map(str, filter(None, (error.filename, error.strerror))))
    return _ARGUMENT.sub(option, text)


def report(error: Exception, run: str = "") -> int:
    """Prints the error and how to show the run's record on stderr. Returns the exit status.

    If `MULLIGAN_DEBUG` is set, the traceback is also printed.
    """
    if os.environ.get("MULLIGAN_DEBUG"):
        say("".join(traceback.format_exception(error)))
    if isinstance(error, (MulliganError, OSError)):  # a full disk or a missing folder is not a bug
        say(f"Error: {clean(message_of(error))}")
    else:
        say(f"Error: {type(error).__name__}: {clean(str(error))}")
        say("This is a bug: please report it, with the traceback that MULLIGAN_DEBUG=1 prints.")
    if run:
        say(f"The steps so far are recorded: mulligan runs show {run}")
    return exit_status(error)
