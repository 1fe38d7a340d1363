"""`mulligan lint`: lists every mistake in the files of agents, with file and line."""

from __future__ import annotations

import json

import click

from mulligan.app.config import project_root
from mulligan.app.lint import lint as library
from mulligan.cli.errors import BAD_INPUT, SOLVED
from mulligan.cli.terminal import clean, emit, say
from mulligan.cli.words import count


@click.command()
@click.argument("path", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def lint(ctx: click.Context, path: str | None, as_json: bool) -> None:
    """Check a project, an agent, a skill, or one of their files. No model is called.

    PATH is a folder or a file (default: the project that contains this folder). Each mistake is printed as `file:line:
    what is wrong and what to do`. Exit status: 2 if there are errors, otherwise 0.
    """
    linted = library(path or project_root() or ".")
    if as_json:
        rows = [{"file": str(p.file), "line": p.line, "level": p.level, "message": p.message} for p in linted.problems]
        emit(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for problem in linted.problems:
            emit(clean(str(problem)))
    errors = sum(problem.level == "error" for problem in linted.problems)
    warnings = len(linted.problems) - errors
    found = f"{count(errors, 'error')}, {count(warnings, 'warning')}" if linted.problems else "no mistake"
    say(f"{count(linted.agents, 'agent')}, {count(linted.skills, 'skill')}: {found}")
    ctx.exit(SOLVED if linted.ok else BAD_INPUT)
