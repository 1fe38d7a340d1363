"""`mulligan memory balance`: what a bank cost and saved."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mulligan.bank.upkeep.balance import DAYS, LEAST, Balance, Saving
from mulligan.cli.memory import dumped, memory
from mulligan.cli.memory_banks import for_bank, reading
from mulligan.cli.memory_words import SHORT
from mulligan.cli.terminal import columns, emit, one_line, say
from mulligan.cli.words import count

if TYPE_CHECKING:
    from mulligan.app.memory import Bank

ENDS = 3
"""Lessons that are shown from each end."""


@memory.command("balance")
@click.option("--days", type=click.FloatRange(min=0), default=DAYS, metavar="N", help="How far back (default: 30).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@for_bank(reading)
async def show_balance(bank: Bank, days: float, as_json: bool) -> None:
    """Show the tokens that learning and recalls cost, and what the tasks saved."""
    balance = await bank.balance(days)
    if as_json:
        emit(dumped({**asdict(balance), "net": balance.net and asdict(balance.net)}))
        return
    if not balance.tasks:
        say(f"Nothing was learned from tasks in the last {days:g} days.")
        return
    emit(
        columns(
            [
                ("tasks", f"{balance.tasks:,}", f"{balance.task_tokens:,} tokens"),
                (
                    "shown lessons",
                    f"{balance.recalls:,}",
                    f"{balance.recalled_tokens:,} tokens, included in the line above",
                ),
                ("learning", "", f"{balance.learning_tokens:,} tokens"),
                ("more passed on the first try", _saved(balance.first), ""),
                ("fewer failed", _saved(balance.failures), ""),
                ("tokens saved", _saved(balance.tokens), ""),
                ("minus the tokens of learning", _saved(balance.net), ""),
            ]
        )
    )
    say(verdict(balance))
    if balance.net:
        say("Tasks that were shown lessons are compared with the others. To compare at random: mulligan docs worth")
    titles = {
        lesson.id: lesson.title for lesson in await bank.list() if lesson.id in {one.id for one in balance.lessons}
    }
    ends = balance.lessons if len(balance.lessons) <= 2 * ENDS else (*balance.lessons[:ENDS], *balance.lessons[-ENDS:])
    if ends:
        rows = [
            (
                one.id[:SHORT],
                f"{one.tally.solved} of {one.tally.known} passed",
                str(one.tally),
                one_line(titles.get(one.id, "-"), 50),
            )
            for one in ends
        ]
        emit(columns([("lesson, best first", "tasks", "worth", "title"), *rows]))


def verdict(balance: Balance) -> str:
    """In a sentence: whether the memory pays, and the setting that changes it."""
    if balance.net is None:
        return (
            f"Too few tasks to compare: this needs {count(LEAST, 'task')} with and {LEAST} without a recall, from "
            "agents whose tokens are counted."
        )
    if balance.net.high < 0:
        lost = -balance.tokens.value if balance.tokens else 0.0
        change = "learn_share = 0" if balance.learning_tokens > lost else 'reader = "small"'
        return f"It costs more than it saves. To change that, set {change} in [memory] of mulligan.toml."
    if balance.net.low > 0:
        return "It saves more than it costs."
    return "It is not known yet whether it saves more than it costs: the interval contains 0."


def _saved(one: Saving | None) -> str:
    return "-" if one is None else f"{one.value:+,.0f} ({one.low:+,.0f} to {one.high:+,.0f})"
