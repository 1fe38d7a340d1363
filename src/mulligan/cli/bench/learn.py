"""`mulligan bench learn`: learns from recorded trajectories, or replays them to see what a bank would have shown."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from mulligan.app.leave_one_out import Replay, Share, leave_one_out
from mulligan.app.transcripts import Transcript, has_something_to_learn, learn_from, read_transcripts
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.records import file_text
from mulligan.bench.state_bench._learnings import DOMAINS, bank_name, training_files
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.learn import transcripts_in
from mulligan.cli.memory_banks import agent_options, named_agent, with_bank, writing
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.terminal import columns, drawn, emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.text.secrets import mask


@click.command("learn")
@click.argument("source")
@click.option("--domain", type=click.Choice(DOMAINS), help="For state-bench: only this domain (default: all).")
@click.option(
    "--data", "--data-root", metavar="DIR", help="For state-bench: a checkout of its repository (or MULLIGAN_DATA)."
)
@click.option("--replay", is_flag=True, help="Learn nothing: replay each with a bank that has learned from the others.")
@click.option(
    "--model", "-m", metavar="MODEL", help="The model that learns (default: that of [memory], else MULLIGAN_MODEL)."
)
@format_option("table", "json")
@quiet_option
@agent_options
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    domain: str | None,
    data: str | None,
    replay: bool,
    model: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Learn from the trajectories of state-bench, or from transcripts in the file or folder SOURCE.

    How a trajectory ended is not used, and failed ones are learned from too. Each domain has a bank of its own.
    With --replay, says at how many refused calls the others' lessons would have been shown, and at how many
    right ones.
    """
    if source.replace("_", "-") == "state-bench":
        folder = data or os.environ.get("MULLIGAN_DATA")
        if not folder:
            raise InvalidInput("Name a checkout of STATE-Bench: --data DIR.")
        files = {name: training_files(Path(folder).expanduser(), name) for name in ([domain] if domain else DOMAINS)}
    elif domain or data:
        raise click.UsageError("--domain and --data go with state-bench.")
    else:
        files = {source: list(map(Path, transcripts_in(source)))}
    read = {
        name: [one for path in paths for one in read_transcripts(file_text(path), str(path))]
        for name, paths in files.items()
    }
    with Counting(quiet) as shown:
        if replay:
            replayed = {
                name: asyncio.run(leave_one_out(of, lambda done, n, name=name: shown.at(f"replaying {name}", done, n)))
                for name, of in read.items()
            }
            found = {name: one.to_json() for name, one in replayed.items()}
            page = _page(replayed)
        else:
            found = {name: _learned(name, of, model, shown) for name, of in read.items()}
            page = columns([("from", "bank", "transcripts", "lessons", "new"), *(_row(*one) for one in found.items())])
    emit(json.dumps(found, ensure_ascii=False, indent=1) if form == "json" else page)
    ctx.exit(UNFINISHED if any(one.get("errors") for one in found.values()) else SOLVED)


def _learned(name: str, transcripts: Sequence[Transcript], model: str | None, shown: Counting) -> dict[str, object]:
    """Learns from these transcripts; what came of it."""
    named = named_agent()
    agent = writing() if named is not None or name not in DOMAINS else bank_name(name)

    async def work(bank: Bank) -> dict[str, object]:
        before = {one.id for one in await bank.list()}
        lessons: dict[str, None] = {}
        errors = 0
        for n, transcript in enumerate(transcripts):
            shown.at(f"learning from {name}", n, len(transcripts))
            try:
                episode, found = transcript.episode(), transcript.found()
                if found or has_something_to_learn(bank, episode):
                    learned = await learn_from(bank, episode, found=found)
                    lessons |= dict.fromkeys((*learned.facts, *learned.lessons, *learned.folded))
            except MulliganError as error:
                errors += 1
                say(one_line(mask(f"{transcript.name}: {error}"), 300))
        new = len(lessons.keys() - before)
        return {"bank": agent, "transcripts": len(transcripts), "lessons": len(lessons), "new": new, "errors": errors}

    return with_bank(agent, work, model=model)


def _row(name: str, of: Mapping[str, object]) -> tuple[str, ...]:
    return name, *(str(of[key]) for key in ("bank", "transcripts", "lessons", "new"))


def _page(replayed: Mapping[str, Replay]) -> str:
    pages: list[str] = []
    for name, one in replayed.items():
        rows = [
            ("refused calls at which a lesson is shown", _share(one.hits)),
            ("transcripts with such a call", _share(one.sessions)),
            ("it names what the transcript then did right", _share(one.remedies)),
            ("nothing worked, and it says so", _share(one.dead_ends)),
            ("calls undone later: something is shown before", _share(one.reversals)),
            ("right calls: something is shown before", _share(one.disturbances)),
        ]
        head = f"{name}: {count(one.transcripts, 'transcript')}, {count(one.calls, 'call')}"
        pages += [head, columns(rows, heading=False), *(f"  {title}" for title in one.titles)]
    return drawn(pages)


def _share(share: Share) -> str:
    if not share.n:
        return "none"
    found = share.to_json()
    return f"{share.count} of {share.n} ({100 * found['low']:.1f} to {100 * found['high']:.1f} %)"
