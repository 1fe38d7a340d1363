"""`mulligan memory`: find and show lessons, change them, take them in and out. All but `purge` can be undone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mulligan.app.config import read_text
from mulligan.app.teaching import memory_command
from mulligan.bank.exchange.importing import archives_from_json
from mulligan.bank.exchange.lesson_page import around, existing, markdown
from mulligan.bank.learn.validation import checked_fields
from mulligan.cli import memory_words
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.memory_words import learned_lines, question_json
from mulligan.cli.terminal import clean, emit, one_line, put, say, standard_input
from mulligan.cli.words import count
from mulligan.core.codec import to_json
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.lessons import Finding, Selection
from mulligan.core.protocols import Learned
from mulligan.core.records import Json, Lesson
from mulligan.text.json_lines import parsed

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EVERY = "*"
_ID = "Whose lessons: an agent's id; without it, the unnamed agent's."
_ALL = f"The lessons of all agents, for reading only; the same as --agent-id '{EVERY}'."


def agent_options(command: F) -> F:
    """--agent-id and --all-agents, on the group and on each of its commands; the command's own goes before."""

    def note(ctx: click.Context, option: click.Parameter, value: str | bool | None) -> None:
        if value:
            ctx.meta[_KEY] = EVERY if value is True else value
        elif value == "":
            ctx.meta[_KEY] = ""

    for option in (
        click.option("--all-agents", is_flag=True, expose_value=False, callback=note, help=_ALL),
        click.option("--agent-id", metavar="NAME", expose_value=False, callback=note, help=_ID),
    ):
        command = option(command)
    return command


_KEY = "mulligan.memory.agent"


def named_agent() -> str | None:
    """The agent that was named, EVERY for all; None where none was."""
    return click.get_current_context().meta.get(_KEY)


def reading() -> str | None:
    """The agent_id to read with: None is all agents."""
    named = named_agent()
    return None if named == EVERY else named or ""


def writing() -> str:
    """The agent_id to write with. Raises `InvalidInput` where all were named."""

    if named_agent() == EVERY:
        raise InvalidInput("This changes lessons, and a change is of one agent: name it with --agent-id NAME.")
    return named_agent() or ""


def _library():  # pyright gives it the type of the module
    from mulligan.app import memory as library  # with numpy

    return library


def with_bank(agent_id: str | None, work: Callable[[Bank], Awaitable[T]], **given: Any) -> T:
    """`work` with the bank of this agent, which is closed afterwards. What is queued meanwhile is begun with."""

    async def main() -> T:
        bank = _library().open_bank(agent_id, **{key: value for key, value in given.items() if value is not None})
        try:
            return await work(bank)
        finally:
            await bank.close()

    return asyncio.run(main())


def for_bank(
    whose: Callable[[], str | None],
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Makes a command of a function of the bank: it gets --agent-id, --all-agents, and the bank of `whose` agent."""

    def made(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(command)
        def run(*, model: str | None = None, **given: Any) -> None:
            with_bank(whose(), lambda bank: command(bank, **given), model=model)

        return agent_options(run)

    return made


def json_of(file: str, what: str) -> Json:
    """The JSON in a file, or of standard input for "-". Raises `InvalidInput` with the line of what is wrong."""

    path = Path("standard input" if file == "-" else file)
    return parsed(path, standard_input(what) if file == "-" else read_text(path))


def dumped(value: Json) -> str:
    """As text that changes no terminal: control characters are escaped."""
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\x7f", "\\u007f")


def time_of(text: str | None) -> float | None:
    """A time such as 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00Z, or seconds since the epoch. Without a zone it is
    that of this machine. Raises `InvalidInput`."""

    if text is None:
        return None
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no time such as 2026-01-31, 2026-01-31T12:00Z or 1769860800.") from None


def threshold_of(text: str | None) -> float | str | None:
    """A number, else the name of a preset; the bank says what cannot be."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


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
@for_bank(reading)
async def search(bank: Bank, query: str, threshold: str | None, as_of: str | None, as_json: bool, **given: Any) -> None:
    """The lessons that help with the task QUERY, best first, as an agent is given them."""
    recall = await bank.recall(
        query, threshold=threshold_of(threshold), as_of=time_of(as_of), forms=("lessons",), **given
    )
    if as_json:
        emit(dumped(memory_words.recall_json(query, recall)))
    elif recall.lessons:
        emit(memory_words.found(recall, bank.project))
    for line in memory_words.about(recall):
        say(line)


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
@for_bank(reading)
async def list_lessons(bank: Bank, limit: int, as_json: bool, **given: Any) -> None:
    """The lessons, newest first."""

    state = "quarantined" if given["quarantined"] else given["state"]
    states = STATES if state == "all" else (state,)
    which = Selection(states, given["outcome"], given["tag"], limit=limit, nature=given["nature"])  # pyright: ignore[reportArgumentType]
    lessons = await bank.list(which)
    if as_json:
        emit(dumped([to_json(lesson) for lesson in lessons]))
    elif lessons:
        emit(memory_words.lesson_rows(lessons, agents=bank.agent_id is None))
    else:
        say("There is no such lesson here." + ("" if reading() is None else " Those of all agents: --all-agents"))


@memory.command()
@click.argument("id")
@_json
@for_bank(reading)
async def show(bank: Bank, id: str, as_json: bool) -> None:
    """All of the lesson ID (the beginning of its id is enough): where it comes from, what it is linked with."""
    lesson = await bank.get(id)
    its = await around(bank, lesson)
    if as_json:
        links = [to_json(link) for link, _ in its.near]
        ids = {name: [one.id for one in lessons] for name, lessons in its.lineage.items()}
        emit(dumped({"lesson": to_json(lesson), "links": links, "lineage": ids}))
    else:
        emit(memory_words.story(lesson, its.lineage, its.near))


@memory.command()
@click.argument("id")
@_json
@for_bank(reading)
async def history(bank: Bank, id: str, as_json: bool) -> None:
    """What happened to the lesson ID, oldest first."""
    versions = await bank.history(id)
    emit(dumped([to_json(one) for one in versions]) if as_json else memory_words.history_rows(versions))


@memory.command()
@click.argument("id")
@_json
@for_bank(reading)
async def receipt(bank: Bank, id: str, as_json: bool) -> None:
    """What the recall ID gave out, for which task, and what came of it."""
    kept = await bank.receipt(id)
    if as_json:
        emit(dumped(to_json(kept)))
    else:
        emit(memory_words.receipt_story(kept, await existing(bank, tuple(kept.lessons))))


@memory.command()
@_json
@for_bank(reading)
async def stats(bank: Bank, as_json: bool) -> None:
    """How many lessons there are, by state, and what they take."""
    counts = await bank.stats()
    if as_json:
        emit(dumped(dict(counts)))
    elif counts:
        emit(memory_words.stats_rows(counts, sorted(counts)))
    else:
        say("There is no lesson here yet.")


@memory.command()
@_json
@for_bank(reading)
async def pending(bank: Bank, as_json: bool) -> None:
    """Work that was accepted and is not done: queued, running, failed, or waiting for somebody's thinking."""
    several = await bank.pending()
    if as_json:
        emit(dumped([asdict(one) for one in several]))
    elif several:
        emit(memory_words.work_rows(several))
    else:
        say("Nothing is pending.")


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


@memory.command()
@click.argument("source", nargs=-1, metavar="[-]")
@_text_options
@click.option("--failure", is_flag=True, help="It was learned from a failure.")
@click.option(
    "--nature",
    type=click.Choice(["fact", "strategy"]),
    help="fact: it holds for this project alone; strategy (default): for tasks of a kind.",
)
@for_bank(writing)
async def add(bank: Bank, source: Sequence[str], failure: bool, nature: str | None, **given: Any) -> None:
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


@memory.command()
@click.argument("id")
@_text_options
@click.option("--outcome", type=click.Choice(["success", "failure"]), help="Learned from a success, or a failure.")
@click.option("--file", "file", metavar="FILE", help="A JSON object with the fields to change; - is standard input.")
@for_bank(writing)
async def edit(bank: Bank, id: str, outcome: str | None, file: str | None, **given: Any) -> None:
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
    say_changed(await bank.edit(id, **changes), "edited")


@memory.command()
@click.argument("id")
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
@for_bank(writing)
async def retire(bank: Bank, id: str, why: str) -> None:
    """Recall the lesson ID no more. `restore` brings it back."""
    say_changed(await bank.retire(id, why), "retired")


@memory.command()
@click.argument("id")
@for_bank(writing)
async def restore(bank: Bank, id: str) -> None:
    """Recall the retired lesson ID again."""
    say_changed(await bank.restore(id), "restored")


@memory.command()
@click.argument("id")
@for_bank(writing)
async def release(bank: Bank, id: str) -> None:
    """Let the lesson ID out of quarantine: you have read it, and it is harmless."""
    say_changed(await bank.release(id), "released")


def say_changed(lesson: Lesson, done: str) -> None:
    emit(lesson.id)
    held = f"; it is held back: {', '.join(lesson.flags)}" if lesson.state == "quarantined" else ""
    say(f"{done}: {one_line(lesson.title, 80)}{held}")


@memory.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--answer", metavar="FILE", help="The merged lesson as JSON, thought by you; - is standard input.")
@_model
@for_bank(writing)
async def merge(bank: Bank, ids: Sequence[str], answer: str | None) -> None:
    """Make one lesson of the lessons IDS, and print its id. `unmerge` brings them back.

    Without a model, and where the strategy needs one, what has to be thought about is printed instead, with the JSON
    schema of the answer: give the answer with --answer FILE.
    """
    said = None if answer is None else json_of(answer, "answer")
    again = ("merge", *ids, "--answer", "FILE")
    _say_learned(bank, await bank.merge(ids, answer=said), again)


@memory.command()
@click.argument("work")
@for_bank(writing)
async def question(bank: Bank, work: str) -> None:
    """Print the question that WORK waits with, and the JSON schema of its answer: think, then `commit`."""

    id = _of_task(work)
    emit(dumped(question_json(id, await bank.question(id))))
    say(f"Think about this, and then: {memory_command(bank.agent_id, 'commit', id, 'FILE')}")


@memory.command()
@click.argument("work")
@click.argument("answer", metavar="FILE")
@for_bank(writing)
async def commit(bank: Bank, work: str, answer: str) -> None:
    """Give the answer in FILE (JSON; - is standard input) to the question that WORK waits with."""
    said, id = json_of(answer, "answer"), _of_task(work)
    _say_learned(bank, await bank.commit(id, said), ("commit", "{work}", "FILE"))


def _of_task(work: str) -> str:
    """The id of the work; an agent is told of it as `extract_` and this id."""
    return work.removeprefix("extract_")


def _say_learned(bank: Bank, learned: Learned, again: Sequence[str]) -> None:
    """The ids of what was made on stdout, or the question; ends with the exit status. again: the command that answers
    it, with {work} for the id."""
    for line in learned_lines(learned, bank.agent_id):
        say(line)
    for id in (*learned.lessons, *learned.folded):
        emit(id)
    if learned.question is not None:
        emit(dumped(question_json(learned.work, learned.question)))
        words = [word.format(work=learned.work) for word in again]
        say(f"No model was named, so think about this, and then: {memory_command(bank.agent_id, *words)}")
    click.get_current_context().exit(UNFINISHED if learned.failed else SOLVED)


@memory.command()
@click.argument("id")
@for_bank(writing)
async def unmerge(bank: Bank, id: str) -> None:
    """Bring back the lessons that ID was merged from, as they were, and print their ids. ID is retired."""
    emit("\n".join(await bank.unmerge(id)))


@memory.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All lessons of this agent.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@for_bank(writing)
async def purge(bank: Bank, ids: Sequence[str], everything: bool, yes: bool) -> None:
    """Remove the lessons IDS for good, with their history. Nothing brings them back."""

    if bool(ids) == everything:
        raise InvalidInput("Name the lessons to remove, or --all for those of this agent, and not both.")
    whose = f"the agent {bank.agent_id!r}" if bank.agent_id else "the unnamed agent"
    what = f"all lessons of {whose}" if everything else " ".join(ids)
    if not yes and not click.confirm(f"Remove {what} for good?", err=True):
        say("Nothing was removed.")
        return

    say(f"{count(await bank.purge(None if everything else ids), 'lesson')} removed")


@memory.command("import")
@click.argument("file")
@agent_options
def import_(file: str) -> None:
    """Take in the lessons in FILE: an export of ours, a memories.json of ReasoningBank-MCP, a memory.jsonl of the
    official memory server.

    They go to the agents that the file names; with --agent-id, all to that one. Read whole and checked before anything
    is kept; what is there already is not taken in twice.
    """
    agent = None if named_agent() in (None, EVERY) else writing()
    done = asyncio.run(_library().import_file(Path(file), agent))
    for note in done.notes:
        say(clean(note))
    if done.lessons:
        emit("\n".join(done.lessons))
    for n, what in ((done.known, "known already"), (done.quarantined, "held back: mulligan memory list --quarantined")):
        if n:
            say(f"{count(n, 'lesson')} {what}")
    say(f"{count(len(done.lessons), 'lesson')} taken in from {file} ({done.format})")


@memory.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md"]),
    default="json",
    show_default=True,
    help="json has everything and can be imported, md is for reading.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
@agent_options
def export(form: str, output: str | None) -> None:
    """The lessons of all states, with their histories, links and recalls."""
    everything = asyncio.run(_library().export(reading()))
    text = clean(markdown(archives_from_json(everything))) if form == "md" else dumped(everything)
    put(text, output)


@memory.command("import-config")
@click.argument("file")
def import_config(file: str) -> None:
    """The config.yaml of ReasoningBank-MCP in FILE as a mulligan.toml, on stdout; what of it has no place here, on
    stderr."""
    from mulligan.app.memory_upstream import import_config as library

    text, notes = library(Path(file))
    emit(text)
    for note in notes:
        say(clean(f"note: {note}"))


@memory.command()
@for_bank(writing)
async def reembed(bank: Bank) -> None:
    """Make vectors for all lessons that have none of the embedder in force."""
    why_not = await _library().reembed(bank)
    if why_not:
        raise ModelError(f"No vectors could be made: {why_not}")
    say("Every lesson has its vector.")


@memory.command()
@click.option("--mend", is_flag=True, help="Put right what can be put right.")
@click.pass_context
def verify(ctx: click.Context, mend: bool) -> None:
    """Check the file that the lessons are kept in. Ends with 1 when something is wrong with it."""

    async def work(bank: Bank) -> list[Finding]:
        return list(await bank.verify(mend=mend))

    found = with_bank(None, work)
    for one in found:
        about = f"{one.id}: " if one.id else ""
        emit(clean(f"{'mended' if one.mended else 'wrong'}  {about}{one.what}"))
    wrong = sum(not one.mended for one in found)
    if wrong and not mend:
        say("mulligan memory verify --mend puts right what can be put right.")
    elif not found:
        say("All is well.")
    ctx.exit(1 if wrong else 0)


@memory.command()
@click.option("--seconds", type=float, metavar="S", help="Begin nothing new after S seconds.")
@click.option("--model", metavar="MODEL", help="Who thinks; without one, the one of [memory] or MULLIGAN_MODEL.")
def work(seconds: float | None, model: str | None) -> None:
    """Do the work that was accepted and is not done, whoever accepted it."""

    async def do(bank: Bank) -> None:
        done = await bank.work(seconds)
        left = len(await bank.pending())
        say(f"{count(done, 'piece')} of work done{f', {left} not: mulligan memory pending' if left else ''}")

    with_bank(None, do, model=model)
