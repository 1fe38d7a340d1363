"""`mulligan models`: lists, pulls and removes weights of local models; lists remote providers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import click

from mulligan.app.config import load
from mulligan.cli.counting import Counting
from mulligan.cli.groups import Group
from mulligan.cli.options import quiet_option
from mulligan.cli.terminal import columns, emit, on_terminal, say, width
from mulligan.core.errors import InvalidInput
from mulligan.models.providers import PROVIDERS
from mulligan.models.weights import Progress, installed, megabytes, partial_folder, path_of
from mulligan.models.weights import pull as pull_weights
from mulligan.models.weights import remove as remove_weights
from mulligan.models.weights.known import ALL, EMBEDDERS, KNOWN, Weights

WIDE = 90
"""The width of a terminal from which the table has the licences of weights."""


@click.group(cls=Group)
def models() -> None:
    """List, pull and remove the weights of local models and embedders, and list providers."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_models(as_json: bool) -> None:
    """List local models, local embedders, and providers (with the environment variables for their keys)."""
    load()  # a .env may hold keys
    if as_json:
        emit(json.dumps({"models": _facts(KNOWN), "embedders": _facts(EMBEDDERS), "providers": _providers()}, indent=2))
        return
    emit("Local models\n" + _indented(_weights(KNOWN)))
    emit("\nLocal embedders, for the bank\n" + _indented(_weights(EMBEDDERS)))
    remote = [
        (
            provider["example"],
            " or ".join(provider["keys"]) + ("" if provider["needs_key"] else " (optional)"),
            "set" if provider["key_set"] else "not set",
        )
        for provider in _providers()
    ]
    emit("\nProviders, each with an example model\n" + _indented(remote, 0))


@models.command()
@click.argument("name")
@quiet_option
def pull(name: str, quiet: bool) -> None:
    """Download the weights for NAME. An interrupted download resumes where it stopped."""
    try:
        with Counting(quiet) as shown:
            path = pull_weights(name, downloading(shown), known=ALL)
    except KeyboardInterrupt:
        say(f"\nTo resume the download: mulligan models pull {name}")
        raise
    if not quiet:
        use = f"the bank's embedder local:{name} uses it" if name in EMBEDDERS else f"use it with --model local:{name}"
        say(f"{name} is installed; {use}")
    emit(str(path))


@models.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
def remove(name: str, yes: bool) -> None:
    """Remove the weights for NAME."""
    path = path_of(name, ALL)
    if not path.exists() and not partial_folder(name).exists():
        here = ", ".join(installed(ALL)) or "none"
        raise InvalidInput(
            f"The weights of {name} are not on this machine, so there is nothing to remove. Available: {here}."
        )
    if not yes and not click.confirm(f"Remove {path}?", err=True):
        say("Nothing was removed.")
        return
    say(f"{megabytes(remove_weights(name, ALL))} freed")


def _facts(known: Mapping[str, Weights]) -> list[dict[str, Any]]:
    here = installed(known)
    return [
        {
            "name": f"local:{name}",
            "bytes": weights.size,
            "licence": weights.licence,
            "path": str(here[name]) if name in here else None,
        }
        for name, weights in known.items()
    ]


def _providers() -> list[dict[str, Any]]:
    return [
        {
            "provider": name,
            "example": f"{name}:{provider.example}",
            "keys": list(provider.keys),
            "needs_key": not provider.keyless,
            "key_set": any(os.environ.get(key, "").strip() for key in provider.keys),
        }
        for name, provider in PROVIDERS.items()
    ]


def _weights(known: Mapping[str, Weights]) -> list[tuple[str, ...]]:
    """Returns a table, without the licences on a narrow terminal, so that names and commands are not shortened."""
    wide = not on_terminal() or width() >= WIDE
    return [
        (
            weights["name"],
            megabytes(weights["bytes"]),
            *((weights["licence"],) if wide else ()),
            weights["path"] or f"mulligan models pull {weights['name'].partition(':')[2]}",
        )
        for weights in _facts(known)
    ]


def _indented(rows: list[tuple[str, ...]], *shorten: int) -> str:
    return columns(rows, heading=False, inset=2, shorten=shorten)


def downloading(shown: Counting) -> Progress:
    """Returns a progress callback for a download. It shows each new line as an event, and counts the bytes."""
    last = ""

    def report(line: str, done: int, total: int) -> None:
        nonlocal last
        if line != last:
            last = line
            shown.say(line)
        shown.at("fetching", done, total, megabytes)

    return report
