"""`mulligan memory kinds`: the kinds of task that clusters of tasks show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mulligan.app.teaching import memory_command
from mulligan.cli.memory import dumped
from mulligan.cli.memory_banks import agent_options, with_bank, writing
from mulligan.cli.memory_review import memory
from mulligan.cli.terminal import clean, columns, emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import KindMap

if TYPE_CHECKING:
    from mulligan.app.memory import Bank
    from mulligan.bank.kinds.found import Proposal

__all__ = ["memory"]

SHOWN = 3
"""Tasks of a kind that are shown, the most like the others."""


@memory.command()
@click.option(
    "--alike", type=float, metavar="T", help="How similar tasks of a kind are, 0 to 1 (default: 0.4; by words 0.5)."
)
@click.option("--model", "-m", metavar="MODEL", help="Ask this model for the names; else words of the tasks are names.")
@click.option("--name", "names", multiple=True, metavar="OLD=NEW", help="Another name for a kind; may be repeated.")
@click.option("--without", multiple=True, metavar="NAME", help="Leave this kind out; may be repeated.")
@click.option("--keep", is_flag=True, help="Keep them: later tasks get the kind of the nearest cluster.")
@click.option("--lessons", is_flag=True, help="With --keep: lessons without a kind get theirs, too.")
@click.option("--kept", is_flag=True, help="Show the kinds that are kept.")
@click.option("--undo", is_flag=True, help="Take back what was kept last, and the kinds that lessons got by it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@agent_options
def kinds(model: str | None, as_json: bool, **given: Any) -> None:
    """Propose kinds of task: clusters of the tasks that the bank has seen in this project, each with a name.

    Nothing changes without --keep. Then a task without a kind, where no rule fits, gets that of the nearest cluster if
    it is similar enough; its record says so. A kind that tasks of a cluster have already is its name.
    """
    chosen = [name for name in ("keep", "kept", "undo") if given[name]]
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} were both given: give one of them.")
    if given["lessons"] and not given["keep"]:
        raise click.UsageError("--lessons changes lessons: give it with --keep.")
    finds = model or given["alike"] is not None or given["names"] or given["without"]
    if (given["kept"] or given["undo"]) and finds:
        raise click.UsageError(f"--{chosen[0]} finds no kinds, so of the other options it takes --json alone.")

    async def work(bank: Bank) -> None:
        if given["undo"]:
            await _undo(bank, as_json)
        elif given["kept"]:
            await _show_kept(bank, as_json)
        else:
            await _propose(bank, as_json, model is not None, given)

    with_bank(writing(), work, model=model)


async def _undo(bank: Bank, as_json: bool) -> None:
    back = await bank.kinds.undo()
    _emit_kept(back, as_json)
    lessons = f", and those of {count(len(back.lessons), 'lesson')}" if back.lessons else ""
    now = "those before them count again" if await bank.kinds.kept() else "none is kept now"
    say(f"{count(len(back.kinds), 'kind')} taken back{lessons}; {now}")


async def _show_kept(bank: Bank, as_json: bool) -> None:
    kept = await bank.kinds.kept()
    if kept is None:
        say(f"No kinds are kept. To find some: {memory_command(bank.agent_id, 'kinds')}")
    else:
        _emit_kept(kept, as_json)
        say(_about(kept))


async def _propose(bank: Bank, as_json: bool, by_model: bool, given: Mapping[str, Any]) -> None:
    names = _names(given["names"])
    found = await bank.kinds.propose(alike=given["alike"], by_model=by_model)
    found = found.without(given["without"]).renamed(names)
    if given["keep"]:
        kept = await bank.kinds.keep(found, lessons=given["lessons"])
        _emit_kept(kept, as_json)
        say(_about(kept))
        say(f"To take that back: {memory_command(bank.agent_id, 'kinds', '--undo')}")
        return
    if as_json:
        emit(dumped(_proposal_json(found)))
    elif found.kinds:
        emit(_page(found))
    if not found.kinds:
        say(found.note or f"no cluster of {count(found.tasks, 'task')} at a similarity of {found.alike:g}")
        return
    if found.note:
        say(one_line(found.note, 300))
    say(
        f"{count(len(found.kinds), 'kind')} among {count(found.tasks, 'task')}, {found.alone} of them in none; "
        f"similarity at least {found.alike:g} by {found.embedder}. To keep them: "
        f"{memory_command(bank.agent_id, 'kinds', '--keep')}"
    )


def _names(given: Sequence[str]) -> Mapping[str, str]:
    pairs = [one.partition("=") for one in given]
    for one, (old, sign, new) in zip(given, pairs, strict=True):
        if not (sign and old.strip() and new.strip()):
            raise InvalidInput(f"--name {one!r:.80}: write OLD=NEW, such as 'invoice total=billing'.")
    return {old: new for old, _, new in pairs}


def _page(found: Proposal) -> str:
    lines: list[str] = []
    for kind in found.kinds:
        lines.append(
            f"{clean(kind.name)}  {count(len(kind.tasks), 'task')}, "
            f"similarity {kind.similarities[0]:.2f} to {kind.similarities[-1]:.2f}"
        )
        lines += [f"    {one_line(task, 100)}" for task in kind.tasks[:SHOWN]]
    return "\n".join(lines)


def _proposal_json(found: Proposal) -> dict[str, Any]:
    kinds = [
        {"name": kind.name, "size": len(kind.tasks), "tasks": kind.tasks, "similarities": kind.similarities}
        for kind in found.kinds
    ]
    about = {"tasks": found.tasks, "alone": found.alone, "alike": found.alike, "embedder": found.embedder}
    return {"kinds": kinds, **about, "note": found.note}


def _emit_kept(kept: KindMap, as_json: bool) -> None:
    if as_json:
        kinds = [{"name": kind.name, "size": kind.size} for kind in kept.kinds]
        about = {"project": kept.project, "at": kept.at, "tasks": kept.tasks, "lessons": dict(kept.lessons)}
        emit(dumped({"kinds": kinds, **about, "alike": kept.alike, "embedder": kept.embedder}))
    else:
        emit(columns([(clean(kind.name), count(kind.size, "task")) for kind in kept.kinds]))


def _about(kept: KindMap) -> str:
    where = f" for the project {one_line(kept.project, 60)}" if kept.project else ""
    given = f"; {count(len(kept.lessons), 'lesson')} got theirs" if kept.lessons else ""
    return (
        f"{count(len(kept.kinds), 'kind')} kept{where}: a task gets one from a similarity of {kept.alike:g} on, by "
        f"{kept.embedder}{given}"
    )
