"""`mulligan demo`: runs the example of this package with the small local model, or with a named model or agent."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from mulligan.app.config import load
from mulligan.app.solve import solve
from mulligan.cli.conduct import Watch, conduct
from mulligan.cli.options import progress_options
from mulligan.core.records import Episode

EXAMPLE = Path(__file__).parent.parent / "examples" / "factorial"


async def solve_example(*, model: str | None = None, actor: str | None = None, **hooks: Any) -> Episode:
    """Solves the example. `hooks`: what else `solve` takes, such as observers.

    actor: a coding agent, "command:…". It works on a copy of the folder `demo` beside the store, and is shown the
    check's output; no model is needed. Raises what `solve` raises.
    """
    if actor is None:
        return await solve(EXAMPLE, model=model, **hooks)
    folder = load().database.parent / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "factorial.py").write_text("", encoding="utf-8")
    tests = (EXAMPLE / "tests.py").read_text(encoding="utf-8")
    (folder / "test_factorial.py").write_text(f"from factorial import factorial\n\n{tests}", encoding="utf-8")
    task = (EXAMPLE / "task.md").read_text(encoding="utf-8").strip()
    return await solve(
        f"{task} Write it into the file factorial.py.",
        actor=actor,
        check=f"{shlex.quote(sys.executable)} test_factorial.py",
        workspace=folder,
        settings={"workspace": {"mode": "copy", "deliver": "in_place"}},
        model=model,
        **hooks,
    )


@click.command()
@click.option("--model", metavar="MODEL", help="local (default: fetches 98 MB once), PROVIDER:NAME, scripted:FILE, …")
@click.option("--actor", metavar="COMMAND", help='A coding agent that tries instead: "command:claude -p".')
@progress_options
@click.pass_context
def demo(ctx: click.Context, model: str | None, actor: str | None, quiet: bool, as_json: bool, trace: bool) -> None:
    """Run the built-in example: write a function that passes its tests.

    The small local model usually fails its first trial and passes its second. Ends as `mulligan solve` does.
    """
    work = partial(solve_example, model=model, actor=actor)
    ctx.exit(conduct(work, Watch(quiet, as_json, trace)))
