"""`mulligan strategies`: shows and resets the counts of strategies that learn from outcomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from mulligan.cli.groups import Group
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import columns, emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.arms import ArmRow
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.rates import interval

_model = click.option("--model", "-m", metavar="MODEL", help="Consider only this model (its id, as shown by `stats`).")
_kind = click.option("--kind", metavar="KIND", help="Consider only this kind of task.")


@click.group(cls=Group)
def strategies() -> None:
    """Show or reset what adaptive strategies have learned."""


@strategies.command()
@_model
@_kind
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(model: str | None, kind: str | None, as_json: bool) -> None:
    """Show how often each arm of a strategy was tried and passed, by model and kind of task.

    Newer tries carry more weight in the share that passed and in its 95 % interval.
    """
    rows = with_store(lambda store: store.arms(model, kind))
    if as_json:
        emit(json.dumps([_facts(row) for row in rows], ensure_ascii=False, indent=2))
    elif rows:
        emit(_table(rows))
    else:
        say("No counts yet: run tasks with a strategy that learns, such as examples/thompson_strategy.py.")


@strategies.command()
@_model
@_kind
@click.option("--yes", is_flag=True, help="Reset. Without this option, the command only shows what would be reset.")
def forget(model: str | None, kind: str | None, yes: bool) -> None:
    """Reset what adaptive strategies have learned, either entirely or for one model or kind of task. Recorded runs do
    not change.
    """

    async def work(store: Store) -> int:
        rows = await store.arms(model, kind)
        if yes:
            return await store.forget_arms(model, kind)
        return len([row for row in rows if kind is None or row.kind])

    if kind is not None and not kind.strip():
        raise InvalidInput("The kind is empty: specify one, or omit --kind.")
    found = count(with_store(work), "arm")
    say(f"{found} reset" if yes else f"{found} would be reset. To reset, add --yes.")


def _facts(row: ArmRow) -> dict[str, object]:
    low, high = interval(row.won, row.lost)
    return {**asdict(row), "share": _share(row), "interval": [round(low, 4), round(high, 4)]}


def _share(row: ArmRow) -> float | None:
    weight = row.won + row.lost
    return round(row.won / weight, 4) if weight else None


def _table(rows: Sequence[ArmRow]) -> str:
    lines = [("model", "kind", "arm", "tried", "passed", "share now", "95 %")]
    for row in rows:
        low, high = interval(row.won, row.lost)
        share = _share(row)
        shown = "" if share is None else f"{share:.0%}"
        names = (one_line(row.model, 40), one_line(row.kind, 40) or "(all)", one_line(row.arm, 40))
        lines.append((*names, str(row.tried), str(row.passed), shown, f"{low:.0%} to {high:.0%}"))
    return columns(lines)
