"""`mulligan memory balance`: what a bank cost and saved."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mulligan.bank.upkeep.balance import DAYS, HEADINGS
from mulligan.cli.memory import dumped, memory
from mulligan.cli.memory_banks import for_bank, reading
from mulligan.cli.memory_words import SHORT
from mulligan.cli.terminal import columns, emit, say

if TYPE_CHECKING:
    from mulligan.app.memory import Bank


@memory.command("balance")
@click.option(
    "--days", type=click.FloatRange(min=0), default=DAYS, metavar="N", help="Number of days to look back (default: 30)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@for_bank(reading)
async def show_balance(bank: Bank, days: float, as_json: bool) -> None:
    """Show how many tokens learning and recalls cost, and how many tokens they saved."""
    balance = await bank.balance(days)
    if as_json:
        emit(dumped({**asdict(balance), "net": balance.net and asdict(balance.net)}))
        return
    if not balance.tasks:
        say(f"Nothing was learned from tasks in the last {days:g} days.")
        return
    emit(columns(balance.rows))
    say(balance.verdict)
    if balance.net:
        say(
            "Tasks that were shown lessons are compared with the others. For a randomised comparison: mulligan docs "
            "worth"
        )
    if balance.ends:
        emit(columns([HEADINGS, *((id[:SHORT], *rest) for id, *rest in balance.lesson_rows)]))
