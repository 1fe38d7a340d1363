"""`mulligan memory pending` and `work`: jobs of the bank that wait for a model or for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mulligan.app.teaching import memory_command
from mulligan.cli import memory_words
from mulligan.cli.memory import dumped, json_of, json_option, memory, say_each
from mulligan.cli.memory_banks import agent_options, for_bank, for_banks, of_work, with_bank, writing
from mulligan.cli.memory_changes import model_option, report_learning
from mulligan.cli.memory_words import question_json
from mulligan.cli.terminal import emit, say
from mulligan.cli.words import count

if TYPE_CHECKING:
    from mulligan.app.memory import Bank


@memory.command()
@click.argument("work", required=False)
@click.argument("answer", metavar="[FILE]", required=False)
@json_option
@agent_options
def pending(work: str | None, answer: str | None, as_json: bool) -> None:
    """List pending jobs, which are queued, running, failed, or waiting for an answer.

    With WORK, print the job's question and the answer's JSON schema. With FILE, answer the question with the JSON in
    FILE (- for standard input).
    """
    if work is None:
        _pending(as_json=as_json)
    else:
        _answer(work=work.removeprefix("extract_"), answer=answer)  # as agents see it


@for_banks
async def _pending(banks: Sequence[Bank], as_json: bool) -> None:
    several = [one for bank in banks for one in await bank.pending()]
    say_each(several, memory_words.work_rows, "There are no pending jobs.", as_json)


@for_bank(writing, of="work", look=of_work)
async def _answer(bank: Bank, work: str, answer: str | None) -> None:
    if answer is not None:
        given_answer = json_of(answer, "answer")
        report_learning(bank, await bank.commit(work, given_answer), ("pending", "{work}", "FILE"))
        return
    emit(dumped(question_json(work, await bank.question(work))))
    say(f"Write your answer to a file, then run: {memory_command(bank.agent_id, 'pending', work, 'FILE')}")


@memory.command()
@click.option("--seconds", type=float, metavar="S", help="Do not start new jobs after S seconds.")
@model_option
def work(seconds: float | None, model: str | None) -> None:
    """Run all pending jobs, including other processes' jobs."""

    async def do(bank: Bank) -> None:
        done = await bank.work(seconds, ask=True)
        left = len(await bank.pending())
        say(f"{count(done, 'job')} done{f', {left} left: mulligan memory pending' if left else ''}")

    with_bank(None, do, model=model)
