"""`mulligan memory`: the group, and the commands that search, list, show and check lessons."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args, get_origin

import click

from mulligan.app.config import load, project_here
from mulligan.bank.exchange.lesson_page import LessonPage, existing, outcomes_of
from mulligan.cli import memory_words
from mulligan.cli.commands import with_examples
from mulligan.cli.counting import Counting
from mulligan.cli.groups import Group
from mulligan.cli.memory_banks import (
    agent_options,
    banks_here,
    for_bank,
    for_banks,
    library,
    of_lesson_or_recall,
    of_recall,
    reading,
    with_bank,
    writing,
)
from mulligan.cli.options import given_options, limit_option, together
from mulligan.cli.terminal import clean, drawn, emit, newest, one_line, say, standard_input
from mulligan.core.codec import to_json
from mulligan.core.errors import REMOVED, ModelError, NotFound, UnknownName
from mulligan.core.lesson_history import Fault
from mulligan.core.lessons import Selection, Time, annotations_of
from mulligan.core.records import Json
from mulligan.text.files import read_text
from mulligan.text.json_lines import parsed
from mulligan.text.times import time_of

if TYPE_CHECKING:
    from mulligan.app.memory import Bank


def json_of(file: str, what: str) -> Json:
    """The JSON in a file, or on standard input for "-". Raises `InvalidInput` that names the line of a mistake."""
    path = Path("standard input" if file == "-" else file)
    return parsed(path, standard_input(what) if file == "-" else read_text(path))


def dumped(value: Json) -> str:
    """The value as JSON text with control characters escaped, so that it cannot steer the terminal."""
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\x7f", "\\u007f")


def threshold_of(text: str | None) -> float | str | None:
    """The threshold as a number, or else as the name of a preset, which the bank checks."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def field_options(cls: type) -> Callable[[Any], Any]:
    """An option for each field of this class that is written as one."""
    options: list[Callable[[Any], Any]] = []
    for name, (kind, written) in annotations_of(cls).items():
        parts = (kind, *get_args(kind))
        words: list[str] = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
        spelled = f"--{name.replace('_', '-')}"
        how: dict[str, Any] = {"type": click.Choice(list(filter(None, words)))} if words else {"metavar": "TEXT"}
        if kind is bool:
            spelled, how = f"{spelled}/--no-{spelled[2:]}", {"default": None}
        elif kind is float:
            how = {"type": float, "metavar": "N"}
        elif kind == Time:
            how = {"metavar": "TIME"}
        elif kind == Sequence[str]:
            spelled = spelled.removesuffix("s")
            how = {"multiple": True, "metavar": spelled[2:].upper()}
        if written.option:
            options.append(click.option(spelled, name, help=written.help, **how))
    return together(*options)


STATES = ("active", "quarantined", "retired", "superseded")
T = TypeVar("T")
_kind = click.option("--kind", metavar="KIND", help=annotations_of(Selection)["kind"][1].help)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_SECTIONS: Mapping[str, Collection[str]] = {
    "Look": ("list", "search", "show", "history", "stats", "balance"),
    "Decide": ("review", "retire", "release", "pin", "rate", "outcome"),
    "Change": ("add", "edit", "merge", "undo", "announce", "purge"),
    "Move and maintain": ("export", "import", "sync", "verify", "pending", "work"),
}
_OLD: Mapping[str, Sequence[str]] = {
    "audit": ("history",),
    "banks": ("stats", "--all-banks"),
    "commit": ("pending",),
    "notebook": ("list", "--notebook"),
    "question": ("pending",),
    "receipt": ("show",),
    "reembed": ("verify", "--vectors"),
    "restore": ("retire", "--undo"),
    "unmerge": ("merge", "--undo"),
    "unpin": ("pin", "--undo"),
}


_APART = {
    **dict.fromkeys(
        ("announce", "add", "edit", "retire", "pin", "release", "undo", "merge", "purge", "import"), "memory_changes"
    ),
    **dict.fromkeys(("review", "rate", "export"), "memory_review"),
    **dict.fromkeys(("pending", "work"), "memory_jobs"),
    "sync": "memory_sync",
    "balance": "memory_balance",
}
"""The commands that stand in other modules, which are imported with them."""


class _MemoryGroup(Group):
    sections = _SECTIONS
    old = _OLD

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in self.sections.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in REMOVED["command of mulligan memory"]:
            raise UnknownName("command of mulligan memory", cmd_name, self.list_commands(ctx))
        if cmd_name in _APART:
            import_module(f"mulligan.cli.{_APART[cmd_name]}")
        return with_examples(super().get_command(ctx, cmd_name), f"memory {cmd_name}")


@click.group(cls=_MemoryGroup)
@agent_options
def memory() -> None:
    """Search, change, import and export the bank: the lessons that agents have learned."""


@memory.command()
@click.argument("query")
@click.option("--top-k", type=int, metavar="N", help="Maximum number of lessons to show.")
@click.option(
    "--threshold", metavar="T", help="The minimum relevance: strict, standard, lenient, or a number from 0 to 1."
)
@click.option(
    "--as-of", metavar="TIME", help="Search the bank as of this time, for example 2026-01-31 or 2026-01-31T12:00Z."
)
@click.option("--all-projects", is_flag=True, help="Include other projects' facts.")
@_kind
@json_option
@for_banks
async def search(
    banks: Sequence[Bank], query: str, threshold: str | None, as_of: str | None, as_json: bool, **given: Any
) -> None:
    """Show the lessons that each bank would return for the task QUERY, best first."""
    asked: dict[str, Any] = {
        "threshold": threshold_of(threshold),
        "as_of": time_of(as_of),
        "forms": ("lessons",),
        **given,
    }
    recalls = [(bank, await bank.recall(query, **asked)) for bank in banks]
    found = [(bank, recall) for bank, recall in recalls if recall.lessons]
    if as_json:
        emit(dumped(memory_words.recalls_json(query, [recall for _, recall in recalls])))
    elif found:
        texts = [memory_words.found(recall, bank.project, of=_named(bank, banks)) for bank, recall in found]
        emit(drawn(part for n, text in enumerate(texts) for part in (["", text] if n else [text])))
    lines = [line for _, recall in found or recalls for line in memory_words.about(recall)]
    for line in dict.fromkeys(lines):
        say(line)


def _named(bank: Bank, banks: Sequence[Bank]) -> str:
    """The bank in words, where there are several."""
    return "" if len(banks) == 1 else memory_words.bank_name(bank.agent_id or "")


@memory.command("list")
@click.option(
    "--state",
    type=click.Choice([*STATES, "expired", "all"]),
    default="active",
    show_default=True,
    help="List only lessons in this state.",
)
@click.option("--quarantined", is_flag=True, help="List only quarantined lessons (same as --state quarantined).")
@field_options(Selection)
@limit_option(50)
@click.option(
    "--notebook",
    is_flag=True,
    help="Show this project's facts in full, formatted like the notebook in prompts.",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With --notebook: the project's folder (default: the working folder).",
)
@click.option(
    "--as-of", metavar="TIME", help="With --notebook: show the facts as of this time, for example 2026-01-31."
)
@json_option
@agent_options
@click.pass_context
def list_lessons(
    ctx: click.Context, notebook: bool, project: Path | None, as_of: str | None, as_json: bool, **given: Any
) -> None:
    """List the lessons, newest first."""
    of_notebook = ("notebook", "project", "as_of", "as_json", "all_agents", "agent_id")
    if notebook and (wrong := given_options(ctx, besides=of_notebook)):
        raise click.UsageError(f"Omit {', '.join(wrong)}: --notebook shows all of the project's facts.")
    if not notebook and (project or as_of):
        raise click.UsageError("--project and --as-of need --notebook.")
    if notebook:
        id = project and project_here(load(), project).id
        with_bank(reading(), lambda bank: _notebook(bank, as_of, as_json), project=id)
    else:
        _list(as_json=as_json, **given)


@for_banks
async def _list(banks: Sequence[Bank], state: str, quarantined: bool, limit: int, as_json: bool, **given: Any) -> None:
    state = "quarantined" if quarantined else state
    states: Any = {"all": STATES, "expired": ("active",)}.get(state, (state,))
    which = Selection(states, limit=limit + 1, expired=True if state == "expired" else None, **given)
    found = [lesson for bank in banks for lesson in await bank.list(which)]
    lessons = newest(sorted(found, key=lambda lesson: -lesson.created), limit)
    is_empty = not lessons and not any([await bank.list(Selection(STATES, limit=1)) for bank in banks])
    nothing = "This bank has no lessons." if is_empty else "No lessons match in this bank."
    nothing += "" if reading() is None else " To search all banks: --all-banks"
    rows = partial(memory_words.lesson_rows, banks=len(banks) > 1 or banks[0].agent_id is None)
    say_each(lessons, rows, nothing, as_json)


def say_each(several: Sequence[T], rows: Callable[[Sequence[T]], str], nothing: str, as_json: bool) -> None:
    """Print these as JSON or as rows; where there are none, say so."""
    if as_json:
        emit(dumped([to_json(one) for one in several]))
    elif several:
        emit(rows(several))
    else:
        say(nothing)


async def _notebook(bank: Bank, as_of: str | None, as_json: bool) -> None:
    entries = await bank.notebook(time_of(as_of))
    page = partial(memory_words.notebook_page, project=bank.project)
    say_each(entries, page, f"No facts about the project {bank.project or '(unnamed)'} yet.", as_json)


@memory.command()
@click.argument("id")
@json_option
@for_bank(reading, of="id", look=of_lesson_or_recall)
async def show(bank: Bank, id: str, as_json: bool) -> None:
    """Show the lesson or recall with this ID: a lesson's origin and links, or a recall's lessons and task outcome.

    The first few characters of a lesson's id are enough.
    """
    try:
        lesson = await bank.get(id)
    except NotFound:
        try:
            receipt = await bank.receipt(id)
        except NotFound:
            here = f"There is no lesson or recall {id!r} in this bank."
            raise NotFound(f"{here} To list the lessons: mulligan memory list") from None
        lessons = await existing(bank, (*receipt.lessons, *receipt.withheld))
        emit(dumped(to_json(receipt)) if as_json else memory_words.receipt_story(receipt, lessons))
        return
    its = await LessonPage(lesson).relatives(bank)
    if as_json:
        links = [to_json(link) for link, _ in its.near]
        ids = {name: [one.id for one in lessons] for name, lessons in its.lineage.items()}
        emit(dumped({"lesson": to_json(lesson), "links": links, "lineage": ids}))
    else:
        emit(memory_words.story(lesson, its.lineage, its.near))


@memory.command()
@click.argument("id", required=False)
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="Show only changes since this time."
)
@click.option("--by", metavar="TEXT", help="Show only changes by authors whose names contain this text, such as mcp.")
@json_option
@agent_options
def history(id: str | None, since: datetime | None, by: str | None, as_json: bool) -> None:
    """Show the changes to the lesson with this ID, or to all lessons, oldest first: who made them, when and why."""
    if id is None:
        _changes(since=since.timestamp() if since else 0.0, by=by or "", as_json=as_json)
    elif since or by:
        raise click.UsageError("--since and --by select changes to all lessons: omit ID.")
    else:
        _history(id=id, as_json=as_json)


@for_bank(reading, of="id")
async def _history(bank: Bank, id: str, as_json: bool) -> None:
    versions = await bank.history(id)
    if as_json:
        emit(dumped([to_json(one) for one in versions]))
        return
    outcomes = await outcomes_of(bank.receipt, versions)
    emit(memory_words.history_rows(versions, outcomes))


@for_banks
async def _changes(banks: Sequence[Bank], since: float, by: str, as_json: bool) -> None:
    every = sorted([one for bank in banks for one in await bank.decided()], key=lambda one: one.at)
    found = [one for one in every if one.at >= since and by in one.by]
    rows = partial(memory_words.audit_rows, banks=len(banks) > 1 or banks[0].agent_id is None)
    say_each(found, rows, "No lessons have been changed here.", as_json)


@memory.command()
@click.argument("recall")
@click.argument("ended", metavar="success|failure", type=click.Choice(["success", "failure"]))
@for_bank(writing, of="recall", look=of_recall)
async def outcome(bank: Bank, recall: str, ended: str) -> None:
    """Report how RECALL's task ended, without learning from it. Only the first report counts."""
    counted = await bank.outcome_of(recall, ended == "success")
    if counted != (ended == "success"):
        say(
            f"The task was already reported as a {'success' if counted else 'failure'}, and only the first report "
            f"counts."
        )
    for sentence in await bank.retired_for_harm():
        say(one_line(f"From now on {sentence}.", 400))


@memory.command()
@json_option
@for_banks
async def stats(banks: Sequence[Bank], as_json: bool) -> None:
    """Show the number of lessons in each state, their size and their worth.

    With --all-banks, list every bank; `*` marks those used in this folder.
    """
    counts = {name: cast(dict[str, Json], of) for bank in banks for name, of in (await bank.stats()).items()}
    here = banks_here() if reading() is None else ()
    worth = [one for bank in banks for one in await bank.worth()]
    ids = tuple(one.id for one in worth if one.id)
    lessons = [lesson for bank in banks for lesson in await existing(bank, ids)]
    if as_json:
        marked = {name: {**of, "here": name in here} if here else of for name, of in counts.items()}
        emit(dumped(memory_words.stats_json(marked, worth)))
    elif counts:
        emit(memory_words.stats_rows(counts, sorted(counts), here=here))
        if worth:
            emit(memory_words.worth_story(worth, lessons))
        if hint := memory_words.not_measured(worth, share=max(bank.withhold for bank in banks)):
            say(hint)
        every = [lesson for bank in banks for lesson in await bank.list(Selection(STATES, limit=None))]
        for line in memory_words.agreements(every, worth):
            say(line)
    else:
        say("No lessons here yet.")


@memory.command()
@click.option("--mend", is_flag=True, help="Repair as much as possible.")
@click.option(
    "--vectors",
    is_flag=True,
    help="Compute missing vectors with the configured embedder instead of checking the store.",
)
@agent_options
@click.pass_context
def verify(ctx: click.Context, mend: bool, vectors: bool) -> None:
    """Check the lesson store. The exit status is 1 if the store is damaged."""
    if vectors:
        _reembed()
        return

    async def work(bank: Bank) -> list[Fault]:
        return list(await bank.verify(mend=mend))

    found = with_bank(None, work)
    for one in found:
        about = f"{one.id}: " if one.id else ""
        emit(clean(f"{'repaired' if one.mended else 'wrong'}  {about}{one.what}"))
    wrong = sum(not one.mended for one in found)
    if wrong and not mend:
        say("To repair as much as possible: mulligan memory verify --mend")
    elif not found:
        say("No problems found.")
    ctx.exit(1 if wrong else 0)


@for_bank(writing)
async def _reembed(bank: Bank) -> None:
    with Counting() as shown:
        why_not = await library().reembed(bank, partial(shown.at, "computing vectors"))
    if why_not:
        raise ModelError(f"No vectors could be computed: {why_not}")
    say("Every lesson has a vector.")
