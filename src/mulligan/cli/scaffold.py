"""`mulligan init` starts a new project; `mulligan add` writes a new agent or skill."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mulligan.agentfile import scaffold
from mulligan.app.config import project_root
from mulligan.app.trusting import trust_settings
from mulligan.cli.terminal import emit, say
from mulligan.models.weights import without_embedder


@click.command()
@click.argument("folder", default=".")
def init(folder: str) -> None:
    """Create a project in FOLDER (default: the working folder).

    The command creates the folder if needed, and writes mulligan.toml, agents/, .env.example and .gitignore. It
    overwrites nothing.
    """
    path = Path(folder).expanduser()
    whole = path.resolve()
    name = (scaffold.kebab(whole.name) or "project") if path.is_dir() else whole.name
    for file in scaffold.init(path, name):
        emit(str(file))
    trust_settings(path)
    missed, command = without_embedder()
    if missed:
        say(f"Optional: {missed}: {command}")
    there = "" if whole == Path.cwd() else f"cd {folder} && "
    say(f"Next: {there}mulligan add reflexion my-agent")


@click.command()
@click.argument("kind", metavar="KIND")
@click.argument("name")
def add(kind: str, name: str) -> None:
    """Write a new, ready-to-use agent or skill named NAME.

    KIND is reflexion (act, review, try again), react (step by step, with tools), oneshot (one answer), or skill. The
    files are written to agents/ or skills/ in the project's folder or, without a mulligan.toml, in the working folder.
    """
    root = project_root()
    for file in scaffold.add(kind, name, root or Path.cwd()):
        emit(os.path.relpath(file))
    if root is None:
        say(
            "There is no mulligan.toml here or above, so the files are in this folder. To make it a project: mulligan "
            "init"
        )
    if kind == "skill":
        say(f"Next: put `call: {{uses: [{name}]}}` into the front matter of a react step, then run: mulligan lint")
    else:
        say(f'Next: mulligan run {name} "Write a haiku about autumn."')
