"""`mulligan learn`: learns lessons from the transcript of a session."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mulligan.app.git_sessions import sessions_in, unreadable
from mulligan.app.sessions import AGENTS, alone, learn_since
from mulligan.app.teaching import memory_command, summary
from mulligan.app.traces import State, TraceRun, are_traces, learn_traces
from mulligan.app.transcripts import Transcript, has_something_to_learn, learn_from, read_transcripts
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.records import file_text
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED, message_of
from mulligan.cli.hooks import journal_in_use
from mulligan.cli.memory_banks import agent_options, project_agent, with_bank, writing
from mulligan.cli.memory_review import with_project_bank
from mulligan.cli.options import given_options
from mulligan.cli.terminal import columns, emit, one_line, say, standard_input
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.lessons import Selection
from mulligan.core.turns import Turn
from mulligan.hooks.journal import Journal
from mulligan.hooks.learning import NEEDED, STATES, keep
from mulligan.hooks.project import project_id
from mulligan.sessions.agents import Old
from mulligan.sessions.records import sample, seconds
from mulligan.text.secrets import mask
from mulligan.text.times import span_of


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--outcome", type=click.Choice(["success", "failure"]), help="How the session ended (default: the model decides)."
)
@click.option("--task", metavar="TEXT", help="The task (default: the user's first message).")
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="The format of FILE, such as openai or ./mine.py (default: detected automatically).",
)
@click.option(
    "--model",
    "-m",
    metavar="MODEL",
    help="The model that learns (default: the model set under [memory], or else MULLIGAN_MODEL).",
)
@click.option(
    "--judge",
    metavar="NAME",
    help="For traces: the judge, such as contains:EUR, for runs whose outcome is not in the traces.",
)
@click.option("--judge-model", metavar="MODEL", help="For traces: the model that the judge uses.")
@click.option(
    "--evaluation",
    "evaluations",
    metavar="NAME[>=N]",
    multiple=True,
    help="For traces: the evaluation that decides the outcome (default: all evaluations labelled pass or fail).",
)
@click.option(
    "--by-agent", is_flag=True, help="For traces: store each agent's lessons in a bank named after the agent."
)
@click.option("--recall", metavar="ID", help="The id of the recall to which the outcome belongs.")
@click.option(
    "--dry-run", is_flag=True, help="Only print the parsed turns, without calling a model or storing anything."
)
@click.option(
    "--since",
    metavar="TIME",
    help="Instead of FILE: this machine's coding-agent sessions from the last TIME, such as 30d, 12h or 4w.",
)
@click.option(
    "--agent",
    "agents",
    type=click.Choice(AGENTS),
    multiple=True,
    help="With --since: only this coding agent's sessions (default: all agents' sessions). Repeatable.",
)
@click.option(
    "--from-git", is_flag=True, help="Instead of FILE: the sessions in this repository's refs entire/checkpoints/*."
)
@click.option("--forgotten", is_flag=True, help="Learn from FILE even if its session was removed with `hooks forget`.")
@click.option("--all-projects", is_flag=True, help="With --since: include all projects, not just this folder's.")
@agent_options
@click.pass_context
def learn(ctx: click.Context, files: tuple[str, ...], since: str | None, from_git: bool, **given: Any) -> None:
    """Learn lessons from a transcript or traces in FILE (- for standard input), and list the lessons.

    A transcript is a coding-agent session, a list of chat messages in OpenAI or Anthropic API format (JSON or JSON
    Lines), or plain text whose turns begin with User:, Assistant: or Tool:. If FILE is a folder, all transcripts in it
    are read, oldest first. Without a model, the command learns from failures that were later fixed and from the user's
    corrections.

    Traces are OpenTelemetry files (OTLP as JSON) that contain agent spans. The same folder may also contain a log file
    with the spans' events. Mulligan learns from each agent run only once.
    """
    if bool(files) + (since is not None) + from_git != 1:
        raise InvalidInput("Specify a FILE, or use --since to say how far back to look for transcripts: --since 30d.")
    files = tuple(path for file in files for path in transcripts_in(file))
    if pipe := next((file for file in files if Path(file).is_fifo()), None):
        raise InvalidInput(f"{pipe} is a pipe, which may never end. To read it: mulligan learn - < {pipe}")
    traced = [are_traces(file) for file in files]
    if wrong := _given(ctx, _NOT_OF_GIT) if from_git else _ignored(ctx, of_file=bool(files)):
        other = "since" if files or not from_git else "from-git"
        goes = f"with --{other}, not with FILE" if files else f"with FILE, not with --{other}"
        raise InvalidInput(f"Omit {', '.join(wrong)}: use these options {goes}.")
    if from_git:
        ctx.exit(_from_git(given["dry_run"]))
    if files and (wrong := _given(ctx, _FOR_TRANSCRIPTS if all(traced) else _FOR_TRACES)):
        goes = "transcripts, and these are traces" if all(traced) else "traces, and this is a transcript"
        raise InvalidInput(f"Omit {', '.join(wrong)}: these options are for {goes}.")
    if since is not None:
        _mine(seconds_of(since) / 86400, given["agents"] or AGENTS, everywhere=given["all_projects"])
    elif all(traced):
        ctx.exit(_traces(files, given))
    elif any(traced):
        raise InvalidInput(f"{files[traced.index(False)]} is not a trace file: learn from transcripts separately.")
    else:
        ctx.exit(_each(files, given))


def transcripts_in(file: str) -> list[str]:
    """Returns the transcripts in a folder, oldest first, or a file itself.

    Raises `InvalidInput` for a folder without transcripts.
    """
    if not Path(file).is_dir():
        return [file]
    paths = [path for path in Path(file).rglob("*") if path.suffix in _SUFFIXES and path.is_file()]
    if not paths:
        raise InvalidInput(f"{file} is a folder without transcripts ({', '.join(_SUFFIXES)}).")
    return [str(path) for path in sorted(paths, key=lambda path: (_start_of(path), path))]


_SUFFIXES = (".jsonl", ".json", ".traj")


def _start_of(file: Path) -> float:
    """Returns the time of a session's first record, or of the last change of its file if no record has a time."""
    with file.open("rb") as opened:
        records = sample(opened.read(65_536).decode("utf-8", "replace"))
    return next((at for record in records if (at := seconds(record.get("timestamp")))), file.stat().st_mtime)


def _each(files: Sequence[str], given: Mapping[str, Any]) -> int:
    """Learns from transcripts, and returns the exit status. One of several that cannot be read is skipped."""
    status = SOLVED
    for file in files:
        try:
            status = max(status, _one(file, given))
        except InvalidInput as error:
            if len(files) == 1:
                raise
            say(one_line(message_of(error), 300))
            status = UNFINISHED
    return status


def _from_git(dry_run: bool) -> int:
    """Learns from the sessions in this folder's repository, and returns the exit status."""
    sessions = sessions_in(os.getcwd())
    found = {one.session: one.read.found() for one in sessions if isinstance(one.read, Transcript)}
    failed = unreadable(sessions)
    for session, why in failed.items():
        say(one_line(f"{session}: {why}", 300))
    for one in sessions if dry_run else ():
        emit(one_line(f"{one.at} {one.agent or '-'} {one.session} by {one.author}", 200))
        for each in found.get(one.session, ()):
            emit(f"  found: {one_line(each.title, 200)}")
    say(f"{count(len(sessions), 'session')} of {count(len({one.author for one in sessions}), 'author')}")
    if dry_run:
        return SOLVED

    async def work(bank: Bank) -> int:
        new: list[str] = []
        for one in sessions:
            if taught := found.get(one.session):
                new += (await keep(bank, taught, author=one.author or "an unknown author")).new
        for id in new:
            emit(f"{id}  {one_line((await bank.get(id)).title, 100)}")
        say(
            f"{count(len(new), 'candidate')} learned. They come from other people's sessions and are shown only after "
            f"you keep them: mulligan memory review"
        )
        return UNFINISHED if failed else SOLVED

    with journal_in_use():
        agent = project_agent()
    return with_project_bank(agent, work, "none")


def _traces(files: Sequence[str], given: Mapping[str, Any]) -> int:
    """Learns from the runs in traces, and returns the exit status."""
    agent, dry_run = writing(), given["dry_run"]
    if given["by_agent"] and agent:
        raise InvalidInput("Use either --bank or --by-agent, not both.")
    number = 0

    def show(run: TraceRun) -> None:
        nonlocal number
        number += 1
        if dry_run:
            emit(_run_text(number, run))
        elif run.state == "new":
            say(f"{_verdict_text(run)}: {one_line(mask(run.task), 100)}")
            for id, title in run.titles.items():
                emit(f"{id}  {one_line(title, 100)}")

    options = {name: given[name] for name in ("model", "judge", "judge_model", "evaluations", "dry_run")}
    bank = None if given["by_agent"] else agent
    done = asyncio.run(learn_traces(files, bank=bank, progress=show, **options))
    for note in (*done.errors, *done.notes):
        say(one_line(note, 400))
    runs = ", ".join(f"{done.runs[state]:,} {words}" for state, words in _STATES.items() if done.runs.get(state))
    say(f"{count(sum(done.runs.values()), 'run')} of agents in {count(done.spans.spans, 'span')}: {runs or 'none'}")
    if not dry_run:
        say(f"{count(len(done.lessons), 'lesson')} in {count(done.runs.get('new', 0), 'run')}")
    return UNFINISHED if done.errors else SOLVED


_STATES: Mapping[State, str] = {
    "new": "to learn from",
    "nothing": "with nothing to learn yet (no model was named)",
    "known": "already learned from",
    "silent": "without content",
    "unfinished": "not finished",
    "error": "with an error",
}


def _run_text(number: int, run: TraceRun) -> str:
    """Returns a description of a run, with secrets masked."""
    words = "new" if run.state == "new" else _STATES[run.state]
    where = " ".join(filter(None, (run.agent or "(no agent named)", run.conversation or run.trace)))
    turns = f"{count(run.turns, 'turn')}, {_verdict_text(run)}"
    lines = [f"{number}. {one_line(where, 100)}: {turns}; {words}"]
    lines += [f"   task: {one_line(mask(run.task), 200)}"] if run.task else []
    lines += [f"   why: {one_line(mask(run.why), 200)}"] if run.why else []
    lines += [f"   found: {one_line(mask(title), 200)}" for title in run.drawn]
    lines += [f"   {one_line(mask(run.why_not), 300)}"] if run.why_not else []
    return "\n".join(lines)


def _verdict_text(run: TraceRun) -> str:
    verdict = {True: "success", False: "failure", None: "no verdict"}[run.success]
    return f"{verdict} ({one_line(run.source, 100)})" if run.source else verdict


def _ignored(ctx: click.Context, *, of_file: bool) -> list[str]:
    """Returns the options on the command line that have no meaning here."""
    return _given(ctx, _FOR_SINCE) if of_file else given_options(ctx, besides=_FOR_SINCE)


def _given(ctx: click.Context, names: Sequence[str]) -> list[str]:
    """Returns the options among these that are on the command line."""
    others = given_options(ctx, besides=names)
    return [option for option in given_options(ctx, besides=()) if option not in others]


_FOR_SINCE = ("since", "agents", "all_projects", "from_git")
_NOT_OF_GIT = ("since", "agents", "all_projects", "outcome", "task", "form", "model", "recall", "forgotten")
_FOR_TRACES = ("judge", "judge_model", "evaluations", "by_agent")
_FOR_TRANSCRIPTS = ("outcome", "task", "form", "recall", "forgotten")


def _one(file: str, given: Mapping[str, Any]) -> int:
    """Learns from one file of transcripts, and returns the exit status."""
    agent = writing()
    name = "standard input" if file == "-" else file
    text = standard_input("transcript") if file == "-" else file_text(Path(file))
    return max(_learned(one, agent, given) for one in read_transcripts(text, name, given["form"]))


def _learned(transcript: Transcript, agent: str, given: Mapping[str, Any]) -> int:
    """Learns from one transcript, and returns the exit status."""
    outcome, model = given["outcome"], given["model"]
    say(f"{count(len(transcript.turns), 'turn')} read from {transcript.name} ({transcript.format})")
    found = transcript.found()
    if given["dry_run"]:
        emit(_turn_rows(transcript.turns))
    episode = transcript.episode(task=given["task"], success=None if outcome is None else outcome == "success")
    if given["dry_run"]:
        emit(f"task: {one_line(mask(episode.task.prompt), 400)}")
        for one in found:
            emit(f"found: {one_line(one.title, 400)}")
        return SOLVED

    if not given["forgotten"] and transcript.format in AGENTS:
        _check_not_forgotten(transcript)
    needed = _needed() if found else NEEDED

    async def work(bank: Bank) -> int:
        if transcript.format in AGENTS and not found and not has_something_to_learn(bank, episode):
            say(
                "nothing to learn by rules: no failure was fixed, and you made no corrections. A model may find more: "
                "--model"
            )
            return SOLVED
        known = {one.id for one in await bank.list(Selection(STATES, limit=None))}
        try:
            learned = await learn_from(bank, episode, given["recall"], found, needed)
        except MulliganError as error:
            if error.facts:
                say(f"{count(len(error.facts), 'fact')} learned by rules: {', '.join(error.facts)}")
            raise
        if outcome is None and learned.success is not None:
            verdict = "success" if learned.success else "failure"
            say(f"judged to be a {verdict}: {one_line(learned.reason, 200)}")
        say(one_line(summary(learned, bank.agent_id, known), 2000))
        for id in dict.fromkeys((*learned.facts, *learned.lessons, *learned.folded)):
            emit(f"{id}  {one_line((await bank.get(id)).title, 100)}")
        return UNFINISHED if learned.failed or learned.pending else SOLVED

    if transcript.format not in AGENTS:
        return with_bank(agent, work, model=model)
    with journal_in_use():
        agent = project_agent(next((turn.folder for turn in transcript.turns if turn.folder), ""))
    say(f"the bank is that of {agent or 'the unnamed agent'}")
    return with_project_bank(agent, work, model)


def _check_not_forgotten(transcript: Transcript) -> None:
    try:
        with Journal() as journal:
            session = journal.session(transcript.format, transcript.session)
    except (sqlite3.Error, OSError):
        return
    if session is not None and session.forgotten:
        raise InvalidInput(
            f"The session {transcript.session} was forgotten (mulligan hooks forget), so Mulligan learns nothing "
            "from it. To learn from it anyway, use --forgotten."
        )


def _needed() -> int:
    """Returns the setting of `mulligan hooks set needed`."""
    try:
        with Journal() as journal:
            return int(journal.setting("needed"))
    except (sqlite3.Error, OSError):
        return NEEDED


def _mine(days: float, agents: Sequence[str], *, everywhere: bool) -> None:
    """Learns from the transcripts of coding agents on this machine that it has not read before."""
    folder = "" if everywhere else os.getcwd()

    with journal_in_use(), alone(), Journal() as journal, Counting() as counting:

        def progress(done: int, total: int, old: Old) -> None:
            counting.at(f"reading {old.path}", done, total)

        result = asyncio.run(learn_since(journal, days, folder=folder, agents=agents, progress=progress))
        frequent = journal.frequent(None if everywhere else journal.bank_of(project_id(folder)))
    for path, error in result.errors.items():
        say(f"{path}: {one_line(error, 200)}")
    confirmed = f"; {count(len(result.confirmed), 'lesson')} confirmed" if result.confirmed else ""
    read = f"{count(result.sessions, 'session')} read with {count(result.calls, 'new call')}"
    say(f"{read}; {count(len(result.new), 'lesson')} learned{confirmed}")
    if frequent:
        rows = [(str(often), str(sessions), one_line(words, 100)) for _, words, often, sessions in frequent]
        emit(columns([("times", "sessions", "error"), *rows]))
    if result.new and not everywhere:
        candidates = {*result.new} - {*result.confirmed}
        listing = memory_command(project_agent(folder), "list")
        say(f"To see what was learned: {'mulligan memory review' if candidates else listing}")


def seconds_of(text: str) -> float:
    """Returns the seconds of a length of time such as 30d. Raises `InvalidInput` for any other text."""
    if (span := span_of(text)) is None:
        raise InvalidInput(f"{text!r} is not a time span such as 30d, 12h or 4w.")
    return span.total_seconds()


def _turn_rows(turns: Sequence[Turn]) -> str:
    """Returns a table of the turns, with secrets masked."""
    rows = [
        (str(n), f"{turn.role} ({one_line(turn.tool, 40)})" if turn.tool else turn.role, one_line(mask(turn.text), 100))
        for n, turn in enumerate(turns, 1)
    ]
    return columns([("turn", "who", "what"), *rows])
