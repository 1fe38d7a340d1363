"""`mulligan memory`: what the bank holds, found and looked at. What changes it stands in the files beside."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from mulligan.bank.exchange.lesson_page import around, existing
from mulligan.cli import memory_change, memory_move, memory_words
from mulligan.cli.memory_bank import agent_options, dumped, reading, threshold_of, time_of, with_bank
from mulligan.cli.terminal import emit, say
from mulligan.core.codec import to_json
from mulligan.core.lessons import Selection

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank


STATES = ("active", "quarantined", "retired", "superseded")
_json = click.option("--json", "as_json", is_flag=True, help="JSON for a program.")


@click.group()
@agent_options
def memory() -> None:
    """The bank: lessons that agents have learned, kept and found again."""


@memory.command()
@click.argument("query")
@click.option("--top-k", type=int, metavar="N", help="How many at most.")
@click.option("--threshold", metavar="T", help="strict, standard, lenient, or the relevance from 0 to 1.")
@click.option("--as-of", metavar="TIME", help="What was known then, such as 2026-01-31 or 2026-01-31T12:00Z.")
@click.option("--all-projects", is_flag=True, help="Facts of other projects, too.")
@_json
@agent_options
def search(
    query: str, top_k: int | None, threshold: str | None, as_of: str | None, all_projects: bool, as_json: bool
) -> None:
    """The lessons that help with the task QUERY, best first, as an agent is given them."""

    at, limit = time_of(as_of), threshold_of(threshold)

    async def work(bank: Bank) -> None:
        recall = await bank.recall(query, top_k=top_k, threshold=limit, as_of=at, all_projects=all_projects)
        if as_json:
            emit(dumped(memory_words.recall_json(query, recall)))
        elif recall.lessons:
            emit(memory_words.found(recall, bank.project))
        for line in memory_words.about(recall):
            say(line)

    with_bank(reading(), work)


@memory.command("list")
@click.option(
    "--state", type=click.Choice([*STATES, "all"]), default="active", show_default=True, help="In this state."
)
@click.option(
    "--quarantined",
    is_flag=True,
    help="Those that a filter for known shapes holds back; the same as --state quarantined.",
)
@click.option("--outcome", type=click.Choice(["success", "failure"]), help="Learned from a success, or a failure.")
@click.option("--nature", type=click.Choice(["fact", "strategy"]), help="Facts of a project, or strategies.")
@click.option("--tag", metavar="TAG", help="With this tag.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many, newest first.")
@_json
@agent_options
def list_lessons(limit: int, as_json: bool, **given: Any) -> None:
    """The lessons, newest first."""

    state = "quarantined" if given["quarantined"] else given["state"]
    states = STATES if state == "all" else (state,)
    which = Selection(states, given["outcome"], given["tag"], limit=limit, nature=given["nature"])  # pyright: ignore[reportArgumentType]

    async def work(bank: Bank) -> None:
        lessons = await bank.list(which)
        if as_json:
            emit(dumped([to_json(lesson) for lesson in lessons]))
        elif lessons:
            emit(memory_words.lesson_rows(lessons, agents=bank.agent_id is None))
        else:
            say("There is no such lesson here." + ("" if reading() is None else " Those of all agents: --all-agents"))

    with_bank(reading(), work)


@memory.command()
@click.argument("id")
@_json
@agent_options
def show(id: str, as_json: bool) -> None:
    """All of the lesson ID (the beginning of its id is enough): where it comes from, what it is linked with."""

    async def work(bank: Bank) -> None:
        lesson = await bank.get(id)
        its = await around(bank, lesson)
        if as_json:
            links = [to_json(link) for link, _ in its.near]
            ids = {name: [one.id for one in lessons] for name, lessons in its.lineage.items()}
            emit(dumped({"lesson": to_json(lesson), "links": links, "lineage": ids}))
        else:
            emit(memory_words.story(lesson, its.lineage, its.near))

    with_bank(reading(), work)


@memory.command()
@click.argument("id")
@_json
@agent_options
def history(id: str, as_json: bool) -> None:
    """What happened to the lesson ID, oldest first."""

    async def work(bank: Bank) -> None:
        versions = await bank.history(id)
        emit(dumped([to_json(one) for one in versions]) if as_json else memory_words.history_rows(versions))

    with_bank(reading(), work)


@memory.command()
@click.argument("id")
@_json
@agent_options
def receipt(id: str, as_json: bool) -> None:
    """What the recall ID gave out, for which task, and what came of it."""

    async def work(bank: Bank) -> None:
        kept = await bank.receipt(id)
        if as_json:
            emit(dumped(to_json(kept)))
        else:
            emit(memory_words.receipt_story(kept, await existing(bank, tuple(kept.lessons))))

    with_bank(reading(), work)


@memory.command()
@_json
@agent_options
def stats(as_json: bool) -> None:
    """How many lessons there are, by state, and what they take."""

    async def work(bank: Bank) -> None:
        counts = await bank.stats()
        if as_json:
            emit(dumped(dict(counts)))
        elif counts:
            emit(memory_words.stats_rows(counts, sorted(counts)))
        else:
            say("There is no lesson here yet.")

    with_bank(reading(), work)


@memory.command()
@_json
@agent_options
def pending(as_json: bool) -> None:
    """Work that was accepted and is not done: queued, running, failed, or waiting for somebody's thinking."""

    async def work(bank: Bank) -> None:
        several = await bank.pending()
        if as_json:
            emit(dumped([asdict(one) for one in several]))
        elif several:
            emit(memory_words.work_rows(several))
        else:
            say("Nothing is pending.")

    with_bank(reading(), work)


for _command in (*memory_change.COMMANDS, *memory_move.COMMANDS):
    memory.add_command(_command)
