"""The commands of `mulligan memory` that change lessons. Each can be undone, but for `purge`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from mulligan.app.teaching import memory_command
from mulligan.bank.learn.validation import checked_fields
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.memory_bank import agent_options, dumped, json_of, with_bank, writing
from mulligan.cli.memory_words import learned_lines, question_json
from mulligan.cli.terminal import emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Learned
from mulligan.core.records import Json, Lesson

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank


_TEXTS = {
    "title": "Its title, a few words.",
    "content": "What it says.",
    "description": "When it is of use, in a sentence.",
    "query": "The task that it was learned from.",
    "kind": "The kind of task.",
}
_model = click.option(
    "--model", metavar="MODEL", help="Who thinks; without one, the one of [memory] or MULLIGAN_MODEL."
)


def _text_options(command: Any) -> Any:
    command = click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag; may be repeated.")(command)
    for name, help in reversed(_TEXTS.items()):
        command = click.option(f"--{name}", metavar="TEXT", help=help)(command)
    return command


@click.command()
@click.argument("source", nargs=-1, metavar="[-]")
@_text_options
@click.option("--failure", is_flag=True, help="It was learned from a failure.")
@click.option(
    "--nature",
    type=click.Choice(["fact", "strategy"]),
    help="fact: it holds for this project alone; strategy (default): for tasks of a kind.",
)
@agent_options
def add(source: Sequence[str], failure: bool, nature: str | None, **given: Any) -> None:
    """Keep a lesson written by hand, and print its id.

    With `-`, a JSON object of it (or a list of them) is read from standard input: title, content, and if need be
    outcome (success or failure), description, query, tags, kind, context, confidence, nature (fact or strategy),
    project.
    """

    if source not in ((), ("-",)):
        raise InvalidInput(
            "Give a lesson by its options, mulligan memory add --title TEXT --content TEXT, or as JSON on "
            "standard input with -."
        )
    drafts: list[dict[str, Any]]
    if source:
        drafts = _drafts(json_of("-", "lesson"))
    else:
        if not given["title"] or not given["content"]:
            raise InvalidInput("A lesson needs --title and --content.")
        drafts = [{**_given(given), "outcome": "failure" if failure else "success"}]
    if nature is not None:
        drafts = [{"nature": nature, **draft} for draft in drafts]

    async def work(bank: Bank) -> None:
        for draft in drafts:
            begun = time.time()
            lesson = await bank.add(**draft, by_a_person=True)
            emit(lesson.id)
            if lesson.support == 1 and lesson.created < begun - 0.001:
                say(f"{lesson.id} nearly says the same, so this one was not kept (near_duplicates = skip).")
            if lesson.support > 1:
                say(f"{lesson.id} says the same already; it stands for {lesson.support} now.")
            if lesson.state == "retired":
                say(
                    f"{lesson.id} is retired, so it is not recalled. To bring it back: "
                    f"{memory_command(bank.agent_id, 'restore', lesson.id)}"
                )
            elif lesson.superseded_by:
                say(f"{lesson.id} was merged into {lesson.superseded_by}, which stands in its place.")
            elif lesson.flags:
                how = "recalled, with a mark" if lesson.state == "active" else lesson.state
                say(f"{lesson.id} is flagged ({', '.join(lesson.flags)}) and {how}.")

    with_bank(writing(), work)


def _drafts(value: Json) -> list[dict[str, Any]]:
    """The lessons that `add -` read, all checked before one is kept."""

    drafts: list[dict[str, Any]] = []
    for n, item in enumerate(cast(list[Any], value) if isinstance(value, list) else [value], 1):
        where = f"lesson {n} on standard input"
        if not isinstance(item, dict):
            raise InvalidInput(f"{where} must be a JSON object with title and content.")
        drafts.append(checked_fields(cast(dict[str, Any], item), where, whole=True))
    return drafts


def _given(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were named, tags as a tuple."""
    named = {key: value for key, value in given.items() if key in _TEXTS and value is not None}
    return {**named, **({"tags": given["tags"]} if given["tags"] else {})}


@click.command()
@click.argument("id")
@_text_options
@click.option("--outcome", type=click.Choice(["success", "failure"]), help="Learned from a success, or a failure.")
@click.option("--file", "file", metavar="FILE", help="A JSON object with the fields to change; - is standard input.")
@agent_options
def edit(id: str, outcome: str | None, file: str | None, **given: Any) -> None:
    """Change the lesson ID. What it said before stays in its history."""

    changes: dict[str, Any] = {}
    if file is not None:
        read = json_of(file, "lesson")
        if not isinstance(read, dict):
            raise InvalidInput(f"{file}: a JSON object with the fields to change is wanted.")
        changes = checked_fields(cast(dict[str, Any], read), file)
    changes |= {**_given(given), **({"outcome": outcome} if outcome else {})}
    if not changes:
        raise InvalidInput("Nothing to change was named: --title, --content, or --file FILE, for example.")
    _one(lambda bank: bank.edit(id, **changes), "edited")


@click.command()
@click.argument("id")
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
@agent_options
def retire(id: str, why: str) -> None:
    """Recall the lesson ID no more. `restore` brings it back."""
    _one(lambda bank: bank.retire(id, why), "retired")


@click.command()
@click.argument("id")
@agent_options
def restore(id: str) -> None:
    """Recall the retired lesson ID again."""
    _one(lambda bank: bank.restore(id), "restored")


@click.command()
@click.argument("id")
@agent_options
def release(id: str) -> None:
    """Let the lesson ID out of quarantine: you have read it, and it is harmless."""
    _one(lambda bank: bank.release(id), "released")


def _one(do: Callable[[Bank], Awaitable[Lesson]], done: str) -> None:
    async def work(bank: Bank) -> None:
        lesson = await do(bank)
        emit(lesson.id)
        held = f"; it is held back: {', '.join(lesson.flags)}" if lesson.state == "quarantined" else ""
        say(f"{done}: {one_line(lesson.title, 80)}{held}")

    with_bank(writing(), work)


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--answer", metavar="FILE", help="The merged lesson as JSON, thought by you; - is standard input.")
@_model
@agent_options
@click.pass_context
def merge(ctx: click.Context, ids: Sequence[str], answer: str | None, model: str | None) -> None:
    """Make one lesson of the lessons IDS, and print its id. `unmerge` brings them back.

    Without a model, and where the strategy needs one, what has to be thought about is printed instead, with the JSON
    schema of the answer: give the answer with --answer FILE.
    """
    said = None if answer is None else json_of(answer, "answer")
    again = ("merge", *ids, "--answer", "FILE")
    ctx.exit(_learned(lambda bank: bank.merge(ids, answer=said), again, model))


@click.command()
@click.argument("work")
@agent_options
def question(work: str) -> None:
    """Print the question that WORK waits with, and the JSON schema of its answer: think, then `commit`."""

    id = _of_task(work)

    async def look(bank: Bank) -> None:
        emit(dumped(question_json(id, await bank.question(id))))
        say(f"Think about this, and then: {memory_command(bank.agent_id, 'commit', id, 'FILE')}")

    with_bank(writing(), look)


@click.command()
@click.argument("work")
@click.argument("answer", metavar="FILE")
@agent_options
@click.pass_context
def commit(ctx: click.Context, work: str, answer: str) -> None:
    """Give the answer in FILE (JSON; - is standard input) to the question that WORK waits with."""
    said, id = json_of(answer, "answer"), _of_task(work)
    ctx.exit(_learned(lambda bank: bank.commit(id, said), ("commit", "{work}", "FILE"), None))


def _of_task(work: str) -> str:
    """The id of the work; an agent is told of it as `extract_` and this id."""
    return work.removeprefix("extract_")


def _learned(do: Callable[[Bank], Awaitable[Learned]], again: Sequence[str], model: str | None) -> int:
    """The ids of what was made on stdout, or the question; the exit status. again: the command that answers it, with
    {work} for the id."""

    async def work(bank: Bank) -> int:
        learned = await do(bank)
        for line in learned_lines(learned, bank.agent_id):
            say(line)
        for id in (*learned.lessons, *learned.folded):
            emit(id)
        if learned.question is not None:
            emit(dumped(question_json(learned.work, learned.question)))
            words = [word.format(work=learned.work) for word in again]
            say(f"No model was named, so think about this, and then: {memory_command(bank.agent_id, *words)}")
        return UNFINISHED if learned.failed else SOLVED

    return with_bank(writing(), work, model=model)


@click.command()
@click.argument("id")
@agent_options
def unmerge(id: str) -> None:
    """Bring back the lessons that ID was merged from, as they were, and print their ids. ID is retired."""

    async def work(bank: Bank) -> None:
        emit("\n".join(await bank.unmerge(id)))

    with_bank(writing(), work)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All lessons of this agent.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@agent_options
def purge(ids: Sequence[str], everything: bool, yes: bool) -> None:
    """Remove the lessons IDS for good, with their history. Nothing brings them back."""

    if bool(ids) == everything:
        raise InvalidInput("Name the lessons to remove, or --all for those of this agent, and not both.")
    agent = writing()
    what = f"all lessons of {f'the agent {agent!r}' if agent else 'the unnamed agent'}" if everything else " ".join(ids)
    if not yes and not click.confirm(f"Remove {what} for good?", err=True):
        say("Nothing was removed.")
        return

    async def work(bank: Bank) -> None:
        say(f"{count(await bank.purge(None if everything else ids), 'lesson')} removed")

    with_bank(agent, work)


COMMANDS = (add, edit, retire, restore, release, merge, question, commit, unmerge, purge)
