"""`mulligan bench plan`: how many cases and samples a comparison needs."""

from __future__ import annotations

import json

import click

from mulligan.bench.report.statistics import Design
from mulligan.cli.options import format_option
from mulligan.cli.terminal import columns, emit
from mulligan.core.errors import InvalidInput

SAMPLES = (1, 2, 3, 5, 10)
"""The numbers of samples that are compared, unless --samples gives one."""


@click.command("plan")
@click.option(
    "--arms",
    type=click.IntRange(2),
    default=2,
    show_default=True,
    help="Number of arms, each of which is compared with the first.",
)
@click.option(
    "--difference",
    type=float,
    metavar="D",
    help="The difference to detect between two rates, such as 0.05.",
)
@click.option(
    "--cases", type=click.IntRange(2), metavar="N", help="Print the difference that this number of cases can detect."
)
@click.option("--rate", type=float, default=0.5, show_default=True, help="The first arm's expected success rate.")
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Number of episodes per case and arm.")
@click.option(
    "--correlation",
    type=float,
    default=0.5,
    show_default=True,
    help="Correlation between two verdicts on the same case: 0 if all cases are equally hard, 1 if each case always "
    "has the same result.",
)
@format_option("table", "json")
def command(
    arms: int,
    difference: float | None,
    cases: int | None,
    rate: float,
    samples: int | None,
    correlation: float,
    form: str,
) -> None:
    """Calculate how many cases and samples you need to detect a difference.

    All arms use the same cases. The power is 80 % and the significance level 5 % (two-sided), divided among the
    comparisons with the first arm.
    """
    if (difference is None) == (cases is None):
        raise click.UsageError(
            "Use --difference to see how many cases you need, or --cases to see what difference that many can show."
        )
    if not 0 < rate < 1 or not 0 <= correlation < 1:
        raise InvalidInput("A rate must be between 0 and 1. A correlation may also be 0.")
    if difference is not None and not 0 < difference <= 1 - rate:
        raise InvalidInput(f"With a rate of {rate:g}, the difference must be more than 0 and at most {1 - rate:g}.")
    designs = list[dict[str, float | None]]()
    for number in [samples] if samples else SAMPLES:
        design = Design(rate, number, correlation, arms - 1)
        n = cases if difference is None else design.cases(difference)
        assert n is not None
        detectable = design.difference(n) if difference is None else difference
        designs.append({"samples": number, "cases": n, "difference": detectable, "episodes": n * number * arms})
    if form == "json":
        about = {"arms": arms, "rate": rate, "correlation": correlation, "power": 0.8, "level": 0.05}
        emit(json.dumps({**about, "designs": designs}, indent=2))
        return
    rows = [["samples", "cases", "difference", "episodes in all"]]
    for row in designs:
        detectable = "none at all" if row["difference"] is None else f"{row['difference']:.3f}"
        rows.append([f"{row['samples']}", f"{row['cases']:,}", detectable, f"{row['episodes']:,}"])
    emit(columns(rows) + "\n")
    emit(
        f"{arms} arms on the same cases, from a rate of {rate:g}; the correlation between two verdicts on one case is "
        f"{correlation:g}. Power 80 %, two-sided 5 %"
        + (f", divided among {arms - 1} comparisons with the first arm." if arms > 2 else ".")
    )
