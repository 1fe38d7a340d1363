"""`mulligan hooks package`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.terminal import emit, say
from mulligan.hooks.packaging import package


@click.command("package")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a plug-in or an extension for each coding agent into FOLDER, with hooks, a skill and the MCP server.

    They start `mulligan-hook` and `mulligan`, which the PATH of the agent has to have. docs/coding-agents says how each
    is installed.
    """
    for made in package(folder):
        emit(str(made))
    say("docs/coding-agents says how to install each.")
