"""`mulligan memory`: the commands that add, change, merge and remove lessons. All but `purge` can be undone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from mulligan.app.config import load, project_here
from mulligan.app.teaching import memory_command
from mulligan.bank.learn.validation import checked_fields
from mulligan.cli import memory_words
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.memory import dumped, field_options, json_of, memory
from mulligan.cli.memory_banks import (
    EVERY,
    agent_options,
    for_bank,
    library,
    named_agent,
    with_bank,
    writing,
)
from mulligan.cli.memory_words import learned_lines, question_json
from mulligan.cli.terminal import clean, emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import LessonDetails, LessonFields, annotations_of
from mulligan.core.protocols import Learned
from mulligan.core.records import Json, Lesson

if TYPE_CHECKING:
    from mulligan.app.memory import Bank


model_option = click.option(
    "--model",
    "-m",
    metavar="MODEL",
    help="The model to ask (default: the model set under [memory], or else MULLIGAN_MODEL).",
)


@memory.command()
@click.argument("change")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project's folder (default: the working folder).",
)
@agent_options
def announce(change: str, project: Path | None) -> None:
    """Report a CHANGE to the project, in one sentence.

    The project's facts are marked "to be checked" until they are confirmed.
    """

    async def work(bank: Bank) -> None:
        marked = await bank.announce(change)
        say(f"{count(marked, 'fact')} of the project {bank.project or '(unnamed)'} marked to be checked")

    with_bank(writing(), work, project=project and project_here(load(), project).id)


_OPTIONAL = list(annotations_of(LessonDetails))


@memory.command(
    help=f"""Store a handwritten lesson and print its id.

    With `-`, read a JSON object, or a list of such objects, from standard input. The fields are title, content and,
    optionally, {", ".join(_OPTIONAL[:-1])} and {_OPTIONAL[-1]}. The options provide defaults for these fields.
    """
)
@click.argument("source", nargs=-1, metavar="[-]")
@field_options(LessonFields)
@click.option("--failure", is_flag=True, help="Same as --outcome failure.")
@for_bank(writing)
async def add(bank: Bank, source: Sequence[str], failure: bool, **given: Any) -> None:
    if source not in ((), ("-",)):
        raise InvalidInput(
            "Describe the lesson with options (mulligan memory add --title TEXT --content TEXT), or pass it as JSON "
            "on standard input with -."
        )
    fields: dict[str, Any] = {**_written(given), **({"outcome": "failure"} if failure else {})}
    if not source and not ("title" in fields and "content" in fields):
        raise InvalidInput("A lesson needs --title and --content.")
    for draft in _drafts(json_of("-", "lesson")) if source else [{}]:
        begun = time.time()
        lesson = await bank.add(**{**fields, **draft}, by_a_person=True)
        emit(lesson.id)
        if lesson.support == 1 and lesson.created < begun - 0.001:
            say(f"{lesson.id} says nearly the same, so the new lesson was not stored (near_duplicates = skip).")
        if lesson.support > 1:
            say(f"{lesson.id} already says the same. It now represents {lesson.support} lessons.")
        if lesson.state == "retired":
            say(
                f"{lesson.id} is retired, so it is not recalled. To restore it: "
                f"{memory_command(bank.agent_id, 'retire', '--undo', lesson.id)}"
            )
        elif lesson.superseded_by:
            say(f"{lesson.id} was merged into {lesson.superseded_by}, which replaces it.")
        elif lesson.flags:
            how = "recalled, with a mark" if lesson.state == "active" else lesson.state
            say(f"{lesson.id} is flagged ({', '.join(lesson.flags)}) and {how}.")


def _drafts(value: Json) -> list[dict[str, Any]]:
    """The lessons on standard input. All are checked before one is stored."""
    drafts: list[dict[str, Any]] = []
    for n, item in enumerate(cast(list[Any], value) if isinstance(value, list) else [value], 1):
        where = f"lesson {n} on standard input"
        if not isinstance(item, dict):
            raise InvalidInput(f"{where} must be a JSON object with title and content.")
        drafts.append(checked_fields(cast(dict[str, Any], item), where, whole=True))
    return drafts


def _written(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a lesson that were written as options."""
    return {name: value for name, value in options.items() if value not in (None, ())}


@memory.command()
@click.argument("id")
@field_options(LessonFields)
@click.option(
    "--file",
    "file",
    metavar="FILE",
    help="A file that contains a JSON object with the fields to change (- for standard input).",
)
@for_bank(writing, of="id")
async def edit(bank: Bank, id: str, file: str | None, **given: Any) -> None:
    """Edit the lesson with this ID. Its history keeps the earlier version."""
    changes: dict[str, Any] = {}
    if file is not None:
        read = json_of(file, "lesson")
        if not isinstance(read, dict):
            raise InvalidInput(f"{file} must be a JSON object with the fields to change.")
        changes = checked_fields(cast(dict[str, Any], read), file)
    changes |= _written(given)
    if not changes:
        raise InvalidInput("Specify what to change, for example --title, --content or --file FILE.")
    say_changed(await bank.edit(id, **changes), "edited")


_undo = click.option("--undo", is_flag=True, help="Undo an earlier use of this command.")


@memory.command()
@click.argument("id")
@click.option("--why", default="", metavar="TEXT", help="The reason, recorded in the lesson's history.")
@_undo
@for_bank(writing, of="id")
async def retire(bank: Bank, id: str, why: str, undo: bool) -> None:
    """Stop recalling the lesson with this ID or, with --undo, start recalling it again."""
    if undo:
        say_changed(await bank.restore(id), "restored")
    else:
        say_changed(await bank.retire(id, why), "retired")


@memory.command()
@click.argument("id")
@_undo
@for_bank(writing, of="id")
async def pin(bank: Bank, id: str, undo: bool) -> None:
    """Protect the lesson with this ID: it is never withheld to measure its worth, and never retired for doing harm."""
    say_changed(await bank.pin(id, not undo), "unpinned" if undo else "pinned")


@memory.command()
@click.argument("id")
@for_bank(writing, of="id")
async def release(bank: Bank, id: str) -> None:
    """Release the lesson with this ID from quarantine. Read it first, and make sure that it is harmless."""
    say_changed(await bank.release(id), "released")


@memory.command()
@click.argument("id")
@for_bank(writing, of="id")
async def undo(bank: Bank, id: str) -> None:
    """Undo the last change to the lesson with this ID, such as a replacement, a retirement or an edit."""
    say_changed(await bank.undo(id), "as it was before")


def say_changed(lesson: Lesson, done: str) -> None:
    emit(lesson.id)
    held = f"; it is quarantined: {', '.join(lesson.flags)}" if lesson.state == "quarantined" else ""
    say(f"{done}: {one_line(lesson.title, 80)}{held}")


@memory.command()
@click.argument("ids", nargs=-1)
@click.option("--answer", metavar="FILE", help="A JSON file with your own merged lesson (- for standard input).")
@click.option(
    "--related", is_flag=True, help="Only list groups of related lessons, each with the command that merges it."
)
@click.option(
    "--similarity", type=float, metavar="T", help="With --related: the minimum similarity of each pair (default: 0.6)."
)
@click.option("--undo", is_flag=True, help="Restore the lessons that ID was merged from, and retire ID.")
@model_option
@for_bank(writing, of="ids")
async def merge(
    bank: Bank, ids: Sequence[str], answer: str | None, related: bool, similarity: float | None, undo: bool
) -> None:
    """Merge the lessons with these IDS into one rule and print its id.

    With --related, only list groups of lessons that a single rule might explain.

    If the merging strategy needs a model and you do not name one, the command prints the question and the answer's JSON
    schema instead. Pass the answer with --answer FILE.
    """
    if undo and (len(ids) != 1 or answer or related):
        raise click.UsageError("Specify one merged lesson: mulligan memory merge --undo ID.")
    if related == bool(ids) or (similarity is not None and not related) or (related and answer):
        raise click.UsageError("Specify the lessons to merge, or use only --related (with --similarity T).")
    if undo:
        emit("\n".join(await bank.unmerge(ids[0])))
        return
    if related:
        groups = await (bank.related() if similarity is None else bank.related(similarity=similarity))
        for group in groups:
            emit(memory_words.lesson_rows(group, banks=False))
            say(f"To merge them into one rule: {memory_command(bank.agent_id, 'merge', *(one.id for one in group))}")
        if not groups:
            say("No three lessons are similar enough to form a group. To find more groups: --similarity 0.5")
        return
    given_answer = None if answer is None else json_of(answer, "answer")
    again = ("merge", *ids, "--answer", "FILE")
    report_learning(bank, await bank.merge(ids, answer=given_answer), again)


def report_learning(bank: Bank, result: Learned, command: Sequence[str]) -> None:
    """Print the ids of the new lessons, or the question, and end with the exit status.

    command: The words of the command that takes the answer, with {work} for the id.
    """
    for line in learned_lines(result, bank.agent_id):
        say(line)
    for id in (*result.lessons, *result.folded):
        emit(id)
    if result.question is not None:
        emit(dumped(question_json(result.work, result.question)))
        words = [word.format(work=result.work) for word in command]
        say(f"No model was named. Write your answer to a file, then run: {memory_command(bank.agent_id, *words)}")
    click.get_current_context().exit(UNFINISHED if result.failed else SOLVED)


@memory.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Delete all of this agent's lessons.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@for_bank(writing, of="ids")
async def purge(bank: Bank, ids: Sequence[str], everything: bool, yes: bool) -> None:
    """Delete the lessons with these IDS, along with their history. This cannot be undone."""
    if bool(ids) == everything:
        raise InvalidInput("Specify the lessons to remove, or use --all for all of this agent's lessons, but not both.")
    whose = f"the agent {bank.agent_id!r}" if bank.agent_id else "the unnamed agent"
    what = f"all lessons of {whose}" if everything else " ".join(ids)
    if not yes and not click.confirm(f"Permanently remove {what}?", err=True):
        say("Nothing was removed.")
        return
    say(f"{count(await bank.purge(None if everything else ids), 'lesson')} removed")


@memory.command("import")
@click.argument("file")
@agent_options
def import_(file: str) -> None:
    """Import the lessons in FILE.

    FILE is an export from Mulligan, a coding agent's Markdown notes (a MEMORY.md or its folder), or a file from mem0,
    Letta, Graphiti, mcp-memory-service, ReasoningBank-MCP or the official memory server. With -, the command reads JSON
    from standard input. The lessons are stored for the agents named in the file or, with --bank, all for that agent.
    The whole file is checked before anything is stored. Existing lessons are skipped.
    """
    path, name = ("/dev/stdin", "standard input") if file == "-" else (file, file)
    agent = None if named_agent() in (None, EVERY) else writing()
    with Counting() as shown:
        embedding = partial(shown.at, "computing vectors")
        done = asyncio.run(library().import_file(Path(path), agent, on_embedded=embedding))
    for note in done.notes:
        say(clean(note))
    if done.lessons:
        emit("\n".join(done.lessons))
    for n, what in (
        (done.known, "already known"),
        (done.quarantined, "quarantined: mulligan memory list --quarantined"),
    ):
        if n:
            say(f"{count(n, 'lesson')} {what}")
    if done.accounts:
        say(f"{name} also has {count(done.accounts, 'account')} of earlier episodes, which the `history` form shows")
    say(f"{count(len(done.lessons), 'lesson')} imported from {name} ({done.format})")
