"""`mulligan init`: starts a new project."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.agentfile.scaffold import init as library
from mulligan.agentfile.scaffold import kebab
from mulligan.cli.terminal import emit, say


@click.command()
@click.argument("folder", default=".")
def init(folder: str) -> None:
    """Begin a project in FOLDER (default: here).

    Creates the folder if needed, and writes mulligan.toml, agents/, .env.example and .gitignore. Overwrites nothing.
    """
    path = Path(folder).expanduser()
    whole = path.resolve()
    name = (kebab(whole.name) or "project") if path.is_dir() else whole.name
    for file in library(path, name):
        emit(str(file))
    there = "" if whole == Path.cwd() else f"cd {folder} && "
    say(f"Next: {there}mulligan add reflexion my-agent")
