"""`mulligan hooks package`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mulligan.cli.terminal import emit, say
from mulligan.hooks.packaging import package
from mulligan.sessions.agents import agent


@click.command("package", short_help="Write plug-ins and extensions for coding agents.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write to FOLDER a plug-in or extension for each coding agent, with hooks, a skill and the MCP server.

    The packages run `mulligan-hook` and `mulligan`, which must be on the agent's PATH. The MCP server also needs the
    `serve` extra. The command prints instructions for installing each package. For each agent, use either its package
    or `mulligan hooks install`, but not both.
    """
    made = package(folder)
    for one in made:
        emit(str(one))
    say('They need mulligan with the `serve` extra on the PATH: uv tool install "mulligan[serve]"')
    say("\n".join(["To install one:", *(f"  {_installing(one)}" for one in made)]))


def _installing(made: Path) -> str:
    """The command that installs the package in a folder."""
    return agent(made.name).packaged.format(shlex.quote(str(made.resolve())))
