"""`mulligan learn`: learns lessons from the transcript of a session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mulligan.app.teaching import summary
from mulligan.app.transcripts import learn_from, read_transcript
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.importing import file_text
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.memory import agent_options, with_bank, writing
from mulligan.cli.terminal import columns, emit, one_line, say, standard_input
from mulligan.cli.words import count
from mulligan.core.protocols import Turn
from mulligan.text.secrets import mask


@click.command()
@click.argument("file")
@click.option(
    "--outcome", type=click.Choice(["success", "failure"]), help="How the session ended (default: the model judges)."
)
@click.option("--task", metavar="TEXT", help="The task (default: the user's first message).")
@click.option(
    "--format", "form", metavar="NAME", help="The format of FILE, such as openai or ./mine.py (default: detected)."
)
@click.option(
    "--model", metavar="MODEL", help="The model that learns (default: that of [memory], else MULLIGAN_MODEL)."
)
@click.option("--recall", metavar="ID", help="The recall that gave the session its lessons; it gets the outcome.")
@click.option("--dry-run", is_flag=True, help="Print the turns as they were read; ask no model and keep nothing.")
@agent_options
@click.pass_context
def learn(
    ctx: click.Context,
    file: str,
    outcome: str | None,
    task: str | None,
    form: str | None,
    model: str | None,
    recall: str | None,
    dry_run: bool,
) -> None:
    """Learn lessons from the transcript in FILE (-: standard input), and print their ids and titles.

    The transcript is a list of chat messages of OpenAI's or Anthropic's API (JSON or JSON Lines), or plain text in
    which each turn begins with User:, Assistant: or Tool:.
    """
    agent = writing()
    name = "standard input" if file == "-" else file
    text = standard_input("transcript") if file == "-" else file_text(Path(file))
    transcript = read_transcript(text, name, form)
    say(f"{count(len(transcript.turns), 'turn')} read from {name} ({transcript.format})")
    if dry_run:
        emit(_turn_rows(transcript.turns))
    episode = transcript.episode(task=task, success=None if outcome is None else outcome == "success")
    if dry_run:
        emit(f"task: {one_line(mask(episode.task.prompt), 400)}")
        return

    async def work(bank: Bank) -> int:
        learned = await learn_from(bank, episode, recall)
        if outcome is None and learned.success is not None:
            verdict = "success" if learned.success else "failure"
            say(f"judged to be a {verdict}: {one_line(learned.reason, 200)}")
        say(one_line(summary(learned, bank.agent_id), 2000))
        for id in dict.fromkeys((*learned.facts, *learned.lessons, *learned.folded)):
            emit(f"{id}  {one_line((await bank.get(id)).title, 100)}")
        return UNFINISHED if learned.failed or learned.pending else SOLVED

    ctx.exit(with_bank(agent, work, model=model))


def _turn_rows(turns: Sequence[Turn]) -> str:
    """A line for each turn, with secrets masked."""

    rows = [
        (str(n), f"{turn.role} ({one_line(turn.tool, 40)})" if turn.tool else turn.role, one_line(mask(turn.text), 100))
        for n, turn in enumerate(turns, 1)
    ]
    return columns([("turn", "who", "what"), *rows])
