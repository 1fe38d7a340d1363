"""`mulligan solve`: tries one task until it is solved or a limit is reached."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from mulligan.cli.options import (
    bank_of,
    edit_option,
    foresight_of,
    foresight_options,
    limit_options,
    limits_of,
    memory_options,
    numbers,
    progress_options,
    scale_option,
    settings,
)
from mulligan.cli.terminal import standard_input

ROLES = ("actor", "evaluator", "reflector", "strategy")
MODELS = ("model", "reflect_model", "judge_model", "vision_model")
PASSED_ON = (
    "kind",
    *ROLES,
    *MODELS,
    "environment",
    "tests",
    "check",
    "workspace",
    "restarts",
    "scale",
    "prompts",
    "sandbox",
    "seed",
    "edit_reflections",
)
"""Options that are passed on to `mulligan.solve` under their own names; it has their defaults."""


@click.command()
@click.argument("task")
@click.option("--kind", metavar="KIND", help="The kind of task, in free words; lessons of it are recalled first.")
@click.option("--tests", "-t", metavar="FILE", help="A Python file of tests judges: plain asserts or pytest style.")
@click.option(
    "--tests-run",
    type=click.Choice(["apart", "beside"]),
    help="The tests run apart from the attempt (default), or beside it in one process, where it can forge the verdict.",
)
@click.option(
    "--check", metavar="COMMAND", help="A command judges: exit status 0 passes. {attempt} is the attempt's file."
)
@click.option("--evaluator", "-e", metavar="NAME[:ARG]", help="Another judge: exact_match:42, human, ./mine.py, …")
@click.option(
    "--actor", metavar="NAME[:ARG]", help='What makes attempts: complete (default), "command:claude -p", ./mine.py.'
)
@click.option("--reflector", metavar="NAME[:ARG]", help="What reflects on a failed trial: verbal (a model), self, …")
@click.option(
    "--strategy", "-s", metavar="NAME", help="What the next trial is shown (default: evidence_and_reflexion)."
)
@click.option("--workspace", metavar="DIR", help="The folder that the actor works on, apart from your own files.")
@click.option("--mode", metavar="MODE", help="How the workspace is kept apart: worktree (default), copy or in_place.")
@click.option(
    "--protect",
    multiple=True,
    metavar="PATH",
    help="Files or a folder of the workspace, judged as they were before the first trial. Repeatable.",
)
@click.option("--fresh", is_flag=True, help="Each trial starts from your files, not from the last trial's.")
@limit_options
@click.option("--restarts", type=int, metavar="K", help="The most independent episodes; stops at the first solved one.")
@scale_option
@click.option("--model", "-m", metavar="MODEL", help="local (default), PROVIDER:NAME, scripted:FILE or replay:FILE.")
@click.option("--reflect-model", metavar="MODEL", help="The model that reflects (default: --model).")
@click.option("--judge-model", metavar="MODEL", help="The model that judges (default: --model).")
@click.option("--vision-model", metavar="MODEL", help="The model that describes images to models that cannot see.")
@click.option("--environment", metavar="NAME[:ARG]", help="The world to act in, by the actor interact: ./screens.py, …")
@click.option(
    "--window",
    type=int,
    metavar="N",
    help="How many lessons the next trial is shown (default: 1; with reflexion: 3).",
)
@click.option(
    "--lesson-tokens", type=int, metavar="N", help="The most tokens of all lessons that the next trial is shown."
)
@click.option(
    "--overflow",
    type=click.Choice(["newest", "useful", "condense"]),
    help="Of more lessons: show the newest (default), the most useful, or what a model condenses them into.",
)
@click.option(
    "--temperatures",
    callback=numbers,
    metavar="T,T,…",
    help="A temperature for each trial; the last one also for all later trials.",
)
@click.option("--examples", metavar="FILE", help="Worked examples for the actor, instead of the built-in ones.")
@click.option("--prompts", metavar="DIR", help="A folder with your own prompts; for others the built-in ones are used.")
@click.option("--sandbox", metavar="LEVEL", help="auto (default), strict, or a level that `mulligan doctor` names.")
@click.option("--seed", type=int, metavar="N", help="The seed for models that take one (default: 0).")
@click.option(
    "--set", "settings", multiple=True, callback=settings, metavar="ROLE.KEY=VALUE", help="Any other setting."
)
@edit_option
@foresight_options
@memory_options
@progress_options
@click.pass_context
def solve(ctx: click.Context, task: str, quiet: bool, as_json: bool, trace: bool, **given: Any) -> None:
    """Try TASK, judge, reflect, and try again.

    The next trial is shown what the judge found and the newest lesson. --strategy evidence makes no lessons;
    `mulligan docs strategies` compares the strategies.

    TASK is a sentence, a folder with task.md and tests.py (or evaluate.toml), or - for standard input. The best
    attempt goes to stdout, progress to stderr. Without --tests, --check or --evaluator, the named model judges.

    A command-line agent is shown what the check printed. It gets lessons only if a reflector or a model is named.

    Ends with 0 when solved, 1 when not solved, 2 for bad input, 3 when interrupted, over budget or stopped by an error
    (resume it), 4 when it could not be judged.
    """
    from mulligan.app.solve import solve as library
    from mulligan.cli.conduct import Watch, conduct, mention_keys
    from mulligan.core.records import Task

    given_task = Task(standard_input("task")) if task == "-" else task
    if not quiet and not as_json:
        mention_keys(given["actor"], given["model"])
    options = {name: given[name] for name in PASSED_ON if given[name] is not None}
    options |= {"settings": _settings(given), "limits": limits_of(given), **bank_of(given), **foresight_of(given)}
    work = partial(library, given_task, **options)
    ctx.exit(conduct(work, Watch(quiet, as_json, trace)))


def _settings(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings by role: those of --set, and of the options that are short for one."""
    examples = str(Path(given["examples"]).expanduser().resolve()) if given["examples"] else None
    short = {
        "actor": {"temperatures": given["temperatures"], "examples": examples, "fresh": given["fresh"] or None},
        "evaluator": {"tests_run": given["tests_run"]},
        "strategy": {
            "window": given["window"],
            "tokens": given["lesson_tokens"],
            "overflow": given["overflow"],
        },
        "workspace": {"mode": given["mode"], "protect": list(given["protect"]) or None},
        "memory": {"forms": given["forms"]},
    }
    together: dict[str, dict[str, Any]] = {}
    for named in (short, given["settings"]):
        for role, values in named.items():
            together.setdefault(role, {}).update({k: v for k, v in values.items() if v is not None})
    return {role: values for role, values in together.items() if values}
