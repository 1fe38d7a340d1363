"""`mulligan models`: the weights on this machine, and the providers that can be named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from mulligan.cli.counting import Counting
from mulligan.cli.terminal import emit, say

if TYPE_CHECKING:
    from mulligan.models.weights_known import Weights


@click.group()
def models() -> None:
    """See, pull and remove weights of local models and embedders; see remote providers."""


@models.command("list")
def list_models() -> None:
    """Weights that are known here, and providers with the variable that holds their key."""
    import os

    from mulligan.app.config import load
    from mulligan.models.providers import PROVIDERS
    from mulligan.models.weights_known import EMBEDDERS, KNOWN

    load()  # a .env may hold keys
    emit("Local models\n" + _columns(_weights(KNOWN)))
    emit("\nLocal embedders, for the bank\n" + _columns(_weights(EMBEDDERS)))
    remote = [
        (
            f"{name}:{provider.example}",
            " or ".join(provider.keys) + (" (optional)" if provider.keyless else ""),
            "set" if any(os.environ.get(key, "").strip() for key in provider.keys) else "not set",
        )
        for name, provider in PROVIDERS.items()
    ]
    emit("\nProviders, each with an example of a model\n" + _columns(remote))


@models.command()
@click.argument("name")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr, only errors.")
def pull(name: str, quiet: bool) -> None:
    """Fetch the weights called NAME. An interrupted pull goes on where it stopped."""
    from mulligan.models.weights import pull, silent
    from mulligan.models.weights_known import ALL, EMBEDDERS

    try:
        path = pull(name, silent if quiet else Counting().tell, known=ALL)
    except KeyboardInterrupt:
        say(f"\nPull again to go on: mulligan models pull {name}")
        raise
    if not quiet:
        use = "the bank's embedder local uses it" if name in EMBEDDERS else f"use it with --model local:{name}"
        say(f"{name} is here; {use}")
    emit(str(path))


@models.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove the weights called NAME."""
    from mulligan.models.weights import megabytes, path_of, remove
    from mulligan.models.weights_known import ALL

    path = path_of(name, ALL)
    if not yes and not click.confirm(f"Remove {path}?", err=True):
        say("Nothing was removed.")
        return
    freed = remove(name, ALL)
    say(f"{megabytes(freed)} set free" if freed else f"There was nothing of {name} to remove.")


def _weights(known: Mapping[str, Weights]) -> list[tuple[str, ...]]:
    from mulligan.models.weights import installed, megabytes

    here = installed(known)
    return [
        (
            f"local:{name}",
            megabytes(weights.size),
            weights.licence,
            str(here.get(name) or f"mulligan models pull {name}"),
        )
        for name, weights in known.items()
    ]


def _columns(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
