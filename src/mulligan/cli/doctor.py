"""`mulligan doctor`: what works on this machine, and what would make more of it work."""

import json

import click

from mulligan.app.doctor import fine, report
from mulligan.cli.terminal import emit


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A JSON object instead of lines.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """What works here (sandbox, store, models), and what mends the rest.

    Ends with 0 when all that the defaults need is fine, else with 1.
    """
    rows = report()
    if as_json:
        emit(json.dumps({"fine": fine(rows), "rows": [row._asdict() for row in rows]}, indent=2))
        ctx.exit(0 if fine(rows) else 1)
    width = max(len(row.name) for row in rows)
    for row in rows:
        emit(f"{'ok' if row.ok else 'no':<3} {row.name:<{width}}  {row.detail}")
        if row.remedy:
            emit(f"    {'':<{width}}  -> {row.remedy}")
    ctx.exit(0 if fine(rows) else 1)
