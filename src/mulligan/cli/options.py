"""Makes the options of commands: from a record of options, and those that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from mulligan.app.options import Option, options_in
from mulligan.text.model_names import SEPARATOR

F = TypeVar("F", bound=Callable[..., Any])
ROLES = ("actor", "evaluator", "reflector", "strategy", "workspace", "memory")
BENCH_ROLES = ("actor", "evaluator", "reflector", "strategy", "environment", "benchmark", "memory")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Returns one decorator for several options. The help shows them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def limit_option(default: int) -> Callable[[F], F]:
    """Adds --limit, for a list of the newest entries."""
    most = click.IntRange(1, 10**9)
    return click.option(
        "--limit",
        type=most,
        default=default,
        show_default=True,
        help="Maximum number of entries to list, newest first.",
    )


def record_options(record: type[Any], *, roles: Sequence[str] = ROLES, without: Sequence[str] = ()) -> Callable[[F], F]:
    """Returns a decorator for a record's options (`app.options`). A bank also needs `--memory`.

    Args:
        roles: the roles that `--set` can set.
        without: the names of options that the command does not have.
    """
    listed = [it for it in options_in(record) if it.flags and it.name not in without]
    made = [_option(it, roles) for it in listed]
    if any(it.name == "bank" for it in listed):
        made.append(memory_flag)
    return together(*made)


def _option(it: Option, roles: Sequence[str]) -> Callable[[Any], Any]:
    how: dict[str, Any] = {"help": it.help, "hidden": bool(it.same_as)}
    if "/" in it.flags[0]:
        how |= {"default": None}
    elif it.kind.startswith("bool"):
        how |= {"is_flag": True, "default": None}
    elif it.name == "settings":
        how |= {"multiple": True, "callback": settings(roles), "metavar": it.metavar}
    elif "|" in it.metavar:
        how |= {"type": click.Choice(it.metavar.split("|"))}
    else:
        how |= {"metavar": it.metavar, **_TYPES.get(it.kind, {})}
    return click.option(*it.flags, it.name, **how)


def arguments(record: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Python arguments for the options of a command. Raises `click.UsageError` for a bank without --memory."""
    names = [it.name for it in options_in(record) if it.flags]
    values = {name: given[name] for name in names if given.get(name) is not None and given[name] != ()}
    if "bank" in names:
        for name in ("bank", "forms"):
            if given.get(name) is not None and not given["memory"]:
                raise click.UsageError(f"--{name} is a bank option, so it needs --memory.")
        if given["memory"]:
            values.setdefault("bank", "")
    return values


def export_options(json_is: str) -> Callable[[F], F]:
    """Returns a decorator for the format and the file of an export. json_is: what the format json is for."""
    return together(
        click.option(
            "--format",
            "form",
            type=click.Choice(["json", "md"]),
            default="json",
            show_default=True,
            help=f"{json_is}; md is for reading.",
        ),
        click.option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout."),
    )


memory_flag = click.option(
    "--memory", is_flag=True, help="Recall lessons from the bank first, and learn from the run afterwards."
)
on_option = click.option(
    "--on",
    metavar="PLACE",
    help="Where to run the cases: ray (starts Ray on this machine for the run) or a cluster, ray://HOST:10001 or "
    "ray:HOST:6379 (default: in this process).",
)
rating_options = together(
    click.argument("score", type=float, required=False),
    click.option("--good", is_flag=True, help="Same as a score of 1."),
    click.option("--bad", is_flag=True, help="Same as a score of 0."),
    click.option("--comment", default="", metavar="TEXT", help="The reason for the rating."),
    click.option("--by", metavar="NAME", help="The rater's name (default: your user name)."),
)


def score_of(given: Mapping[str, Any]) -> float:
    """Returns the score on the command line. Raises `click.UsageError` for none or several."""
    scores = [given["score"], 1.0 if given["good"] else None, 0.0 if given["bad"] else None]
    found = [score for score in scores if score is not None]
    if len(found) != 1:
        raise click.UsageError("Pass one score: a number from 0 to 1, --good, or --bad.")
    return found[0]


_EVENTS = 'Print one JSON object per event to stdout. The last event, "result", contains the result.'
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print only errors to stderr, not progress.")

progress_options = together(
    quiet_option,
    click.option("--json", "as_json", is_flag=True, help=_EVENTS),
    click.option("--trace", is_flag=True, help="Also print each model call and tool call."),
)


def format_option(*forms: str, help: str = "Output format.") -> Callable[[F], F]:
    """Returns the option --format. The first format is the default."""
    return click.option(
        "--format", "form", type=click.Choice(list(forms)), default=forms[0], show_default=True, help=help
    )


def numbers(ctx: click.Context, option: click.Parameter, value: str | None) -> list[float] | None:
    """Returns the numbers in a text such as `0,0.8`."""
    try:
        return None if value is None else [float(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 0,0.8.") from None


def names_text(ctx: click.Context, option: click.Parameter, names: tuple[str, ...]) -> str | None:
    """Returns the names of models as one text."""
    return SEPARATOR.join(names) if names else None


_TYPES: Mapping[str, Mapping[str, Any]] = {
    "int": {"type": int},
    "float": {"type": float},
    "Sequence[str]": {"multiple": True},
    "str | Model | Sequence[str]": {"multiple": True, "callback": names_text},
    "Sequence[float]": {"callback": numbers},
}
"""The readers of options by their types. Options of other types are texts."""


def settings(roles: Sequence[str]) -> Callable[..., dict[str, dict[str, Any]]]:
    """Returns the settings `role.key=value` of --set by role. A value that is not JSON is a text."""

    def read(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for text in values:
            name, equals, value = text.partition("=")
            role, dot, key = name.strip().partition(".")
            if not (equals and dot and key) or role not in (*roles, "judge"):
                raise click.BadParameter(
                    f"{text!r} does not have the form role.key=value, where role is one of {', '.join(roles)}."
                )
            table = found.setdefault("evaluator" if role == "judge" else role, {})
            try:
                table[key] = json.loads(value)
            except (ValueError, RecursionError):
                table[key] = value
        return found

    return read


def given_options(ctx: click.Context, *, besides: Sequence[str]) -> list[str]:
    """Returns the options on the command line, such as `--seed`, except those with these names."""
    return [
        option.opts[0]
        for option in ctx.command.params
        if option.name not in besides and ctx.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
    ]
