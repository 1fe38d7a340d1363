"""`mulligan memory review`, and `mulligan memory export --to`: what is kept of what coding agents taught."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from mulligan.app.editing import person
from mulligan.app.guards import MAX_PATTERN, Record, Trial, guardable, may_be_proposed, pattern_of, set_guard
from mulligan.app.sessions import project_bank
from mulligan.app.teaching import memory_command
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.importing import archives_from_json
from mulligan.bank.exchange.lesson_page import markdown
from mulligan.bank.exchange.marked_block import with_block
from mulligan.cli.memory import dumped, memory
from mulligan.cli.memory_banks import (
    agent_options,
    for_bank,
    library,
    project_agent,
    reading,
    with_bank,
    writing,
)
from mulligan.cli.memory_changes import say_changed
from mulligan.cli.options import export_options, rating_options, score_of
from mulligan.cli.terminal import clean, drawn, emit, one_line, put, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.hooks.guards import is_path, words_of
from mulligan.hooks.journal import Journal
from mulligan.hooks.learning import add, confirm, confirmable, is_strangers, reject
from mulligan.hooks.project import USER
from mulligan.hooks.recall import DENY, store_file
from mulligan.sessions.pairs import TAG
from mulligan.store import open_store

T = TypeVar("T")


def with_project_bank(agent: str, work: Callable[[Bank], Awaitable[T]], model: str | None = None) -> T:
    """Run `work` with the bank of a project's lessons, and close the bank afterwards."""
    return with_bank(agent, work, model=model, project="", store=open_store(store_file()).memory)


async def _hooked(bank: Bank, kept: bool) -> Sequence[Lesson]:
    """The lessons that coding agents taught, oldest first: those that are kept, or the candidates, with those of
    strangers' sessions.
    """
    lessons = await bank.list(Selection(("active", "quarantined"), tag=TAG, limit=None))
    there = [one for one in reversed(lessons) if one.state == "active" or is_strangers(one)]
    return [one for one in there if (one.confirmed or one.pinned) == kept]


@memory.command()
@click.option("--keep", "keep", multiple=True, metavar="ID", help="Keep this candidate. Repeatable.")
@click.option("--drop", "drop", multiple=True, metavar="ID", help="Drop this candidate. Repeatable.")
@click.option(
    "--guard", "--deny", "guard", multiple=True, metavar="ID", help="Keep this lesson and turn it into a guard."
)
@click.option("--everywhere", multiple=True, metavar="ID", help="Keep this lesson for all your projects.")
@agent_options
def review(keep: Sequence[str], drop: Sequence[str], guard: Sequence[str], everywhere: Sequence[str]) -> None:
    """Review this project's candidates: keep, reject or reword each one with a single key, or turn it into a guard.

    Without a terminal, the command lists the candidates. Lessons that you keep are also shown at the start of sessions.
    Lessons that you reject are retired; `retire --undo` restores them. A guard refuses calls that use the
    command, flag or path named in its lesson. If the agent insists and can ask you, you decide. `undo` removes the
    guard. A guard is not a security boundary. With --everywhere, a lesson moves to the bank that all your projects
    read. You can also move a lesson later, by its id.
    """
    agent = project_agent()

    async def work(bank: Bank) -> None:
        chosen = ((keep, _keep), (guard, _guard), (everywhere, _everywhere), (drop, _drop))
        for ids, do in chosen:
            for id in ids:
                await do(bank, id)
        if any(ids for ids, _ in chosen):
            return
        waiting = [(one, None) for one in await _hooked(bank, kept=False)]
        kept = await _hooked(bank, kept=True)
        waiting += _proposed(kept, agent)
        if not waiting:
            listed = f" {count(len(kept), 'lesson')} kept: {memory_command(bank.agent_id, 'list')}" if kept else ""
            say(f"No candidates here.{listed}")
        elif sys.stdin.isatty() and sys.stdout.isatty():
            await _ask(bank, waiting)
        else:
            for one, trial in waiting:
                emit(_page(one, trial))
            say(f"To keep one: {memory_command(agent, 'review', '--keep', 'ID')} (or --guard, --everywhere, --drop)")

    with_project_bank(agent, work)


def _proposed(kept: Sequence[Lesson], bank: str) -> list[tuple[Lesson, Trial | None]]:
    """The lessons of which a guard is proposed, with what it would have done: not those that a person decided on."""
    named = [one for one in kept if not one.pinned and DENY not in one.tags and may_be_proposed(one)]
    if not named:
        return []
    with Journal() as journal:
        record = Record(journal, bank)
        trials = [(one, record.trial(one, pattern_of(one))) for one in named]
    return [(one, trial) for one, trial in trials if trial.is_proposed]


@memory.command()
@click.argument("id")
@rating_options
@for_bank(writing, of="id")
async def rate(bank: Bank, id: str, by: str | None, comment: str, **given: Any) -> None:
    """Rate the lesson with this ID. SCORE is a number from 0 to 1; higher is better.

    `memory stats` compares ratings with the lessons' measured worth.
    """
    say_changed(await bank.rate(id, score_of(given), by=person() if by is None else by, comment=comment), "rated")


def _page(lesson: Lesson, trial: Trial | None = None) -> str:
    lines = [
        f"{lesson.id}  {one_line(lesson.title, 100)}",
        *([f"    from a session of {one_line(str(author), 100)}"] if (author := lesson.context.get("author")) else ()),
        *(f"    {line}" for line in clean(lesson.content).splitlines()),
    ]
    if trial:
        stopped = f"{trial.met}, to which you objected" if trial.met else "none"
        lines.append(
            f"    proposed guard: {one_line(trial.pattern, MAX_PATTERN)} (of {count(trial.calls, 'recorded call')}, it "
            f"would have stopped {stopped})"
        )
    elif pattern := pattern_of(lesson):
        lines.append(f"    a guard would stop: {one_line(pattern, MAX_PATTERN)}")
    return drawn(lines, [(r"\S", "bold"), (r"    (a|proposed) guard", "dim")])


async def _keep(bank: Bank, id: str) -> None:
    say(f"{(await confirm(bank, id)).id} kept")


async def _guard(bank: Bank, id: str) -> None:
    lesson, pattern = await guardable(bank, id)
    with Journal() as journal:
        await set_guard(bank, journal, lesson, pattern)
    say(
        f"{lesson.id} now guards {pattern}: matching calls are refused. To undo this: "
        f"{memory_command(bank.agent_id, 'undo', id)}"
    )
    if is_path(words_of(pattern)):
        say("Run `mulligan hooks install` so that the hooks also see edits to it.")


async def _everywhere(bank: Bank, id: str) -> None:
    """Moves a lesson to the user's bank: this project reads that one, too, so its own would be shown twice."""
    lesson = await confirmable(bank, id)
    if bank.agent_id == USER:
        raise InvalidInput(f"Lesson {lesson.id} is already kept for all your projects.")
    async with project_bank(USER) as users:
        copy = await add(users, lesson, confirmed=True, by_a_person=True)
        if copy.state == "retired":  # it was there before
            await users.restore(copy.id)
        await users.pin(copy.id)
        with Journal() as journal:
            if (pattern := (journal.guards() or {}).get(lesson.id)) is not None:
                journal.guard({copy.id: pattern})
    await bank.retire(lesson.id, f"kept for all projects, as {copy.id}")
    back = memory_command(bank.agent_id, "retire", "--undo", lesson.id), memory_command(USER, "retire", copy.id)
    say(f"{lesson.id} kept for all your projects, as {copy.id}. To undo this: {' && '.join(back)}")


async def _drop(bank: Bank, id: str) -> None:
    say(f"{(await reject(bank, id)).id} dropped")


async def _ask(bank: Bank, waiting: Sequence[tuple[Lesson, Trial | None]]) -> None:
    for n, (lesson, trial) in enumerate(waiting, 1):
        emit(f"{n} of {len(waiting)}:")
        emit(_page(lesson, trial))
        while True:
            say("k keep, r reject, w reword, g guard, a keep in all projects, s skip, q quit")
            key = click.getchar().lower()
            if key == "q":
                return
            if key in "we":
                text = click.edit(lesson.content)
                if text and text.strip() and text.strip() != lesson.content:
                    lesson = await bank.edit(lesson.id, read=lesson, content=text)
                    emit(_page(lesson))
                continue
            try:
                if key in _KEYS:
                    await _KEYS[key](bank, lesson.id)
            except InvalidInput as error:
                say(str(error))
                continue
            if key in (*_KEYS, "s"):
                break


_KEYS = {"k": _keep, "r": _drop, "d": _drop, "g": _guard, "n": _guard, "a": _everywhere}
"""With d and n, as these keys were called before."""


@memory.command()
@export_options("json contains everything and can be imported")
@click.option(
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Update a marked block in FILE, such as AGENTS.md, with the lessons kept from this project's sessions.",
)
@agent_options
def export(form: str, output: str | None, to: Path | None) -> None:
    """Export the bank: lessons in all states with their histories and links, recalls, and episode summaries."""
    if to is not None:
        _export_to(to)
        return
    everything = asyncio.run(library().export(reading()))
    text = clean(markdown(archives_from_json(everything))) if form == "md" else dumped(everything)
    put(text, output)


def _export_to(file: Path) -> None:
    """Writes the kept lessons into the marked block of this file."""
    agent = project_agent()
    kept, waiting = (
        with_project_bank(agent, lambda bank, kept=kept: _hooked(bank, kept=kept)) for kept in (True, False)
    )
    lessons = [lesson for lesson in kept if not lesson.is_expired(time.time())]
    try:
        before = file.read_bytes() if file.exists() else b""
        after = with_block(before, lessons, str(file))
        if after != before:
            _replace(file, after)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from error
    say(f"{file}: {count(len(lessons), 'kept lesson')}{'' if after != before else ', nothing changed'}")
    if waiting:
        say(f"{count(len(waiting), 'candidate')} to review first: {memory_command(agent, 'review')}")
    elif not lessons:
        say(f"Only lessons from coding agents' sessions are written, and {agent} has none: mulligan learn --since 30d")


def _replace(file: Path, text: bytes) -> None:
    """Writes the file whole, or not at all; a link stays one."""
    target = file.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        part.write_bytes(text)
        if target.exists():
            part.chmod(target.stat().st_mode & 0o7777)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
