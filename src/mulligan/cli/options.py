"""Options that several commands share, and functions that read the values of options."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])
ROLES = ("actor", "evaluator", "reflector", "strategy", "workspace", "memory")
BENCH_ROLES = ("actor", "evaluator", "reflector", "strategy", "environment", "benchmark", "memory")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """One decorator for several options, which the help shows in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


budget_options = together(
    click.option("--max-tokens", type=int, metavar="N", help="Stop before more than N tokens, in and out."),
    click.option("--max-cost", type=float, metavar="USD", help="Stop before more than this many US dollars."),
    click.option("--max-seconds", type=float, metavar="S", help="Stop after S seconds of work."),
    click.option("--identical", type=int, metavar="N", help="Stop after N equal attempts in a row; 0: never."),
)
limit_options = together(
    click.option("--trials", "-n", type=int, metavar="N", help="Attempts at most, the first included (default: 4)."),
    budget_options,
)


def export_options(json_is: str) -> Callable[[F], F]:
    """In which format, and to where. json_is: what the format json is good for."""
    return together(
        click.option(
            "--format",
            "form",
            type=click.Choice(["json", "md"]),
            default="json",
            show_default=True,
            help=f"{json_is}, md is for reading.",
        ),
        click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout."),
    )


role_options = together(
    click.option("--method", metavar="NAME", help="One of the benchmark's bundles of roles: mulligan bench list."),
    click.option(
        "--strategy",
        "-s",
        metavar="NAME",
        help="Decides what the next attempt is shown, instead of the method's own: as in solve, or ./mine.py.",
    ),
    click.option("--model", "-m", metavar="MODEL", help="PROVIDER:NAME, local:NAME, scripted:FILE or replay:FILE."),
    click.option("--reflect-model", metavar="MODEL", help="The model that reflects (default: --model)."),
    click.option("--judge-model", metavar="MODEL", help="The model that judges or writes tests (default: --model)."),
    click.option("--agent", metavar="NAME", help="An agent kept as files acts, instead of the method's actor."),
)
episode_options = together(
    click.option("--trials", "-n", type=int, metavar="N", help="The most attempts of an episode, the first included."),
    budget_options,
)
player_options = together(
    role_options,
    click.option("--data", "--data-root", metavar="PATH", help="The data: a file, or the folder that it is in."),
    episode_options,
)
"""Who plays in the episodes of a benchmark, and within which limits."""
memory_options = together(
    click.option("--memory", is_flag=True, help="Recall lessons from the bank first, and teach it afterwards."),
    click.option(
        "--bank",
        "--agent-id",
        "agent_id",
        metavar="NAME",
        help="The agent whose bank --memory uses (default: the unnamed agent).",
    ),
    click.option(
        "--forms",
        metavar="FORM,FORM",
        help="What of the bank a task is shown, with --memory: lessons (the default), notebook, history, or several.",
    ),
)
foresight_options = together(
    click.option(
        "--check-before",
        multiple=True,
        metavar="PATTERN",
        help="Ask what could go wrong before actions that the pattern (a regular expression) is found in; before those "
        "that are declared critical anyway. `declared`: only those; `model`: the model says what is critical.",
    ),
    click.option("--checks", type=int, metavar="N", help="The most checks of an episode (default: 5)."),
    click.option("--foresight", metavar="NAME[:ARG]", help="What checks: premortem (default), ./mine.py."),
)
scale_option = click.option(
    "--scale",
    metavar="KIND:K",
    help="K trajectories: parallel:5 (the bank learns from what tells them apart), vanilla:5 (from each alone), "
    "sequential:3 (checked and refined). With :judge behind it, a model chooses among equally good ones.",
)
parallel_option = click.option("--parallel", type=int, metavar="N", help="Cases at once (default: 1).")
on_option = click.option(
    "--on",
    metavar="PLACE",
    help="Work on the cases there: ray (a Ray on this machine, started for the run), ray://HOST:10001 or "
    "ray:HOST:6379 (a cluster). Default: in this process.",
)
edit_option = click.option(
    "--edit-reflections", is_flag=True, help="Ask at the terminal about each lesson before the next trial is shown it."
)
rating_options = together(
    click.argument("score", type=float, required=False),
    click.option("--good", is_flag=True, help="The same as a score of 1."),
    click.option("--bad", is_flag=True, help="The same as a score of 0."),
    click.option("--comment", default="", metavar="TEXT", help="Why."),
    click.option("--by", metavar="NAME", help="Who says so (default: the user of this machine)."),
)


def score_of(given: Mapping[str, Any]) -> float:
    """The one score that was given. Raises `click.UsageError` for none, or several."""
    scores = [given["score"], 1.0 if given["good"] else None, 0.0 if given["bad"] else None]
    found = [score for score in scores if score is not None]
    if len(found) != 1:
        raise click.UsageError("Give one score: a number from 0 to 1, --good, or --bad.")
    return found[0]


_EVENTS = 'A JSON object for each event on stdout; the last, "result", has the result in it.'
progress_options = together(
    click.option("--quiet", "-q", is_flag=True, help="No progress on stderr, only errors."),
    click.option("--json", "as_json", is_flag=True, help=_EVENTS),
    click.option("--trace", is_flag=True, help="Print each model call and tool call, too."),
)


def bank_of(given: Mapping[str, Any]) -> dict[str, str]:
    """The argument `bank` of `solve` and `run`. Raises `click.UsageError` for an option that needs --memory."""
    for option in ("agent_id", "forms"):
        if given[option] is not None and not given["memory"]:
            raise click.UsageError(f"--{option.replace('_', '-')} is about the bank, so it needs --memory.")
    return {"bank": given["agent_id"] or ""} if given["memory"] else {}


def foresight_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The argument `foresight` of `solve`, `run` and benchmark runs. Raises `click.UsageError` for --checks alone."""
    from mulligan.app.plugins import parse_spec

    settings = {"before": list(given["check_before"]) or None, "checks": given["checks"]}
    settings = {name: value for name, value in settings.items() if value is not None}
    if given["foresight"] is not None:
        spec = parse_spec("foresights", given["foresight"])
        return {"foresight": {"name": spec.name, **spec.settings, **settings}}
    if "checks" in settings and "before" not in settings:
        raise click.UsageError("--checks is the number of checks, so it needs --check-before or --foresight.")
    return {"foresight": settings} if settings else {}


def format_option(*forms: str, help: str = "For a terminal, or for programs.") -> Callable[[F], F]:
    """The option --format; the first format is the default."""
    return click.option(
        "--format", "form", type=click.Choice(list(forms)), default=forms[0], show_default=True, help=help
    )


def limits_of(given: Mapping[str, Any]) -> dict[str, float | None]:
    """The limits that were given, by their names in `Limits`."""
    options = ("trials", "max_tokens", "max_cost", "max_seconds", "identical")
    return {name.removeprefix("max_"): given[name] for name in options if given.get(name) is not None}


def numbers(ctx: click.Context, option: click.Parameter, value: str | None) -> list[float] | None:
    """The numbers in a text such as `0,0.8`."""
    try:
        return None if value is None else [float(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 0,0.8.") from None


def settings(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return settings_of(ROLES, values)


def bench_settings(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return settings_of(BENCH_ROLES, values)


setting_options = together(
    click.option(
        "--sandbox",
        default="auto",
        metavar="LEVEL",
        help="auto (default), strict, or a level that `mulligan doctor` names.",
    ),
    click.option(
        "--set",
        "settings",
        multiple=True,
        callback=bench_settings,
        metavar="ROLE.KEY=VALUE",
        help="Any other setting; ROLE may be benchmark or memory, too.",
    ),
)


def settings_of(roles: tuple[str, ...], values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The settings of `role.key=value` texts, by role. A value is read as JSON, or else taken as text."""
    read: dict[str, dict[str, Any]] = {}
    for text in values:
        name, equals, value = text.partition("=")
        role, dot, key = name.strip().partition(".")
        if not (equals and dot and key) or role not in roles:
            raise click.BadParameter(f"{text!r} is not of the form role.key=value, with a role of {', '.join(roles)}.")
        try:
            read.setdefault(role, {})[key] = json.loads(value)
        except ValueError:
            read.setdefault(role, {})[key] = value
    return read


def given_options(ctx: click.Context, *, besides: Sequence[str]) -> list[str]:
    """The options on the command line, such as `--seed`, without those of these names."""
    return [
        option.opts[0]
        for option in ctx.command.params
        if option.name not in besides and ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
