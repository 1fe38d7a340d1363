"""`mulligan bench learn`: learns from recorded trajectories, or replays them to see what a bank would have shown."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from mulligan.app.config import load
from mulligan.app.leave_one_out import Replay, leave_one_out
from mulligan.app.model_roles import Models
from mulligan.app.session import Session
from mulligan.app.transcripts import Transcript, has_something_to_learn, learn_from, read_transcripts, transcript_of
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.records import file_text
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import open_benchmark
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.learn import transcripts_in
from mulligan.cli.memory_banks import agent_options, named_agent, with_bank, writing
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import columns, drawn, emit, one_line, say
from mulligan.cli.words import count
from mulligan.core.benchmarks import Benchmark, HasRightCalls, HasTrajectories
from mulligan.core.errors import InvalidInput, MulliganError, UnknownName
from mulligan.core.protocols import Store
from mulligan.core.records import Episode
from mulligan.text.secrets import mask

STATE_BENCH, BFCL = "state-bench", "bfcl"


@click.command("learn")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--domain", metavar="NAME", help="For state-bench: learn only from this domain (default: all domains).")
@click.option(
    "--data",
    "--data-root",
    metavar="DIR",
    help="For state-bench: a checkout of its repository. For bfcl: the folder that contains its wheels. Default: "
    "$MULLIGAN_DATA.",
)
@click.option(
    "--replay",
    is_flag=True,
    help="Learn nothing; replay each transcript with a bank that has learned from the others.",
)
@click.option(
    "--model",
    "-m",
    metavar="MODEL",
    help="The model that learns (default: the model set under [memory], or else MULLIGAN_MODEL).",
)
@format_option("table", "json")
@quiet_option
@agent_options
@click.pass_context
def command(
    ctx: click.Context,
    sources: tuple[str, ...],
    domain: str | None,
    data: str | None,
    replay: bool,
    model: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Learn from SOURCE: a benchmark run, a file or folder of transcripts, or state-bench's trajectories.

    The command also learns from failed trajectories, without using their outcomes. Each domain has its own bank. With
    --replay, the command learns nothing. Instead, it counts the refused calls and the correct calls for which it would
    have shown a lesson from another transcript. To include the correct calls from BFCL's tasks, add bfcl as a SOURCE.
    """
    read = _read(sources, domain, data, replay)
    with Counting(quiet) as shown:
        if replay:
            replayed = {
                name: asyncio.run(leave_one_out(of, lambda done, n, name=name: shown.at(f"replaying {name}", done, n)))
                for name, of in read.items()
            }
            found = {name: one.to_json() for name, one in replayed.items()}
            page = _page(replayed)
        else:
            banks = {name: f"{STATE_BENCH}-{name.replace('_', '-')}" if _has_domains(sources) else "" for name in read}
            found = {name: _learned(name, banks[name], of, model, shown) for name, of in read.items()}
            page = columns([("from", "bank", "transcripts", "lessons", "new"), *(_row(*one) for one in found.items())])
    emit(json.dumps(found, ensure_ascii=False, indent=1) if form == "json" else page)
    ctx.exit(UNFINISHED if any(one.get("errors") for one in found.values()) else SOLVED)


def _read(
    sources: Sequence[str], domain: str | None, data: str | None, replay: bool
) -> Mapping[str, Sequence[Transcript]]:
    """The transcripts by what they belong to: a STATE-Bench domain, or all other sources together."""
    if _has_domains(sources):
        folder = data or os.environ.get("MULLIGAN_DATA")
        if not folder:
            raise InvalidInput("Specify a STATE-Bench checkout: --data DIR.")
        benchmark = _opened("state_bench")
        assert isinstance(benchmark, HasTrajectories)
        if domain and domain not in benchmark.domains:
            raise UnknownName("STATE-Bench domain", domain, benchmark.domains)
        at = Path(folder).expanduser()
        files = {one: benchmark.trajectories(at, one) for one in ([domain] if domain else benchmark.domains)}
        return {name: _in_files(paths) for name, paths in files.items()}
    if domain or (data and BFCL not in sources):
        raise click.UsageError("--domain is only for state-bench, and --data is only for state-bench and bfcl.")
    if BFCL in sources and not replay:
        raise InvalidInput("bfcl has no training trajectories, only its correct calls: add --replay.")
    paths = [Path(path) for source in sources if Path(source).exists() for path in transcripts_in(source)]
    attempts: dict[str, list[Episode]] = {}
    for source in sources:
        if not Path(source).exists():
            for case, episode in _right_episodes(data) if source == BFCL else with_store(partial(_recorded, source)):
                attempts.setdefault(case, []).append(episode)
    return {", ".join(sources): [*_in_files(paths), *(transcript_of(*one) for one in attempts.items())]}


def _has_domains(sources: Sequence[str]) -> bool:
    return [one.replace("_", "-") for one in sources] == [STATE_BENCH]


def _opened(name: str) -> Benchmark:
    config = load()
    return open_benchmark(name, {}, Session(config, Models(config)).sandbox("auto"))[1]


def _right_episodes(data: str | None) -> Iterable[tuple[str, Episode]]:
    benchmark = _opened(BFCL)
    assert isinstance(benchmark, HasRightCalls)
    return asyncio.run(benchmark.right_episodes(find_data(benchmark, data))).items()


async def _recorded(source: str, store: Store) -> Iterable[tuple[str, Episode]]:
    """The cases of a run with their episodes."""
    results = await store.benches.results((await store.benches.run(source)).id)
    return [(one.case, await store.load(marked.episode)) for one in results for marked in one.episodes]


def _in_files(paths: Iterable[Path]) -> Sequence[Transcript]:
    return [one for path in paths for one in read_transcripts(file_text(path), str(path))]


def _learned(
    name: str, bank: str, transcripts: Sequence[Transcript], model: str | None, shown: Counting
) -> dict[str, object]:
    """Learns from these transcripts; what came of it. bank: where the user names none; "": the project's."""
    agent = writing() if named_agent() is not None or not bank else bank

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
            ("refused calls after which a lesson is shown", str(one.hits)),
            ("transcripts with such a call", str(one.sessions)),
            ("the lesson names what the transcript then did", str(one.remedies)),
            ("nothing worked, and the lesson says so", str(one.dead_ends)),
            ("calls undone later before which a lesson is shown", str(one.reversals)),
            ("correct calls before which a lesson is shown", str(one.disturbances)),
        ]
        head = f"{name}: {count(one.transcripts, 'transcript')}, {count(one.calls, 'call')}"
        pages += [head, columns(rows, heading=False), *(f"  {title}" for title in one.titles)]
    return drawn(pages)
