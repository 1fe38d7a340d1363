"""`mulligan doctor`: checks what works on this machine, and says how to fix the rest."""

import json

import click

from mulligan.app.doctor import check_machine
from mulligan.cli.terminal import columns, emit, symbol


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check what works on this machine (sandbox, store, models) and explain how to fix the rest.

    Exit status: 0 if everything that Mulligan needs by default works, otherwise 1.
    """
    report = check_machine()
    if as_json:
        emit(json.dumps({"fine": report.fine, "rows": [row._asdict() for row in report.rows]}, indent=2))
        ctx.exit(0 if report.fine else 1)
    cells: list[tuple[str, str, str]] = []
    for row in report.rows:
        cells.append((symbol(row.ok), row.name, row.detail))
        cells += [("", "", f"-> {row.remedy}")] if row.remedy else []
    emit(columns(cells, heading=False))
    ctx.exit(0 if report.fine else 1)
