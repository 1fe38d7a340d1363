"""Exit statuses of commands, and how errors are printed. Scripts rely on the numbers."""

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
    """The exit status for the end of an episode, or for an error.

    0: solved, or done where there is no judge. 1: not solved. 2: bad input. 3: interrupted, over budget, or an error.
    4: never judged. 5: an answer that was judged not good enough, though nothing proves it wrong. 6: what the task
    asks about does not exist.
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
    """The exit status of a run with the best episode `best`: unfinished where its last episode was interrupted."""
    return UNFINISHED if not best.solved and exit_status(last) == UNFINISHED else exit_status(best)


_OPTIONS = {
    **{it.name: it.flags[0] for it in options_in(SolveOptions) + options_in(ResumeOptions) if it.flags},
    **{name: f"--{name.replace('_', '-')}" for name in ("agent_id", "format", "max_iter", "task")},
    "bank": "--memory",
    "success": "--outcome",
}
"""The options of commands, by the arguments of Python that errors name, such as check='pytest -q'."""
_ARGUMENT = re.compile(rf"(?<![\w.\-\[{{'\"])({'|'.join(_OPTIONS)})=('[^']*'|\"[^\"]*\"|[\w:…]*)")


def message_of(error: BaseException) -> str:
    """The error's message, with the options of commands in place of the arguments that Python has for them."""

    def option(found: re.Match[str]) -> str:
        value = re.sub(r"^'([^'\s]+)'$", r"\1", found[2])
        return _OPTIONS[found[1]] if value in ("", "True") else f"{_OPTIONS[found[1]]} {value}"

    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = ": ".join(map(str, filter(None, (error.filename, error.strerror))))
    return _ARGUMENT.sub(option, text)


def report(error: Exception, run: str = "") -> int:
    """Print the error on stderr, and where the record of the run is; returns the exit status.

    With `MULLIGAN_DEBUG` set to anything, the traceback is printed, too.
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
