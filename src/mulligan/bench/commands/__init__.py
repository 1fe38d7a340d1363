"""`mulligan bench`: the group of benchmark commands. Each is a file, which is imported when the command is called."""

from __future__ import annotations

from importlib import import_module

import click

from mulligan.cli.commands import with_examples
from mulligan.cli.groups import Group

COMMANDS = {
    "exam": "Measure how much each memory helps or harms, on task streams and on your own sessions.",
    "export": "Write the results of an ALFWorld RUN in the format that Reflexion's code uses, with one file per try.",
    "fetch": "Download the data for benchmark NAME.",
    "learn": "Learn from SOURCE: a benchmark run, a file or folder of transcripts, or state-bench's trajectories.",
    "list": "List the benchmarks with their subsets and methods, and show whether their data has been downloaded.",
    "plan": "Calculate how many cases and samples you need to detect a difference.",
    "prove": "Compare a coding agent with and without this project's lessons.",
    "replay": "Replay the published episodes in FILE and show where the replay differs from the log.",
    "report": "Report the figures for one or more runs and compare each run with the first.",
    "run": "Run the cases of benchmark NAME or of a task file (mine.toml).",
    "runs": "List the benchmark runs, newest first.",
    "score": "Use benchmark NAME's hidden tests to judge solutions that were generated elsewhere.",
    "stream": "Run the cases in TASKS as a stream, once for each memory, and let the memories learn as they go.",
}
"""The subcommands, each with the first line of its help, so that `mulligan bench --help` imports none of them.

Each is a file of this folder with a click command called `command`, or stands in `_IN_DATA`.
"""
_IN_DATA = {"fetch": "fetch", "list": "listing"}
"""The names of the commands in data.py."""


class LazyGroup(Group):
    """A group that imports a subcommand when it is called."""

    lines = COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        file, name = ("data", _IN_DATA[cmd_name]) if cmd_name in _IN_DATA else (cmd_name, "command")
        return with_examples(getattr(import_module(f"mulligan.bench.commands.{file}"), name), f"bench {cmd_name}")


@click.group(cls=LazyGroup)
def bench() -> None:
    """Run benchmarks and score their cases against hidden targets."""
