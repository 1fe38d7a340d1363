"""`mulligan hooks exam`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import asdict

import click

from mulligan.app.sessions import transcripts
from mulligan.app.sessions_exam import Exam, examine
from mulligan.cli.learn import seconds_of
from mulligan.cli.terminal import columns, drawn, emit, say
from mulligan.cli.words import count
from mulligan.hooks.project import project_id


@click.command("exam", short_help="Replay your own sessions and report what the hooks would have learned and shown.")
@click.option(
    "--since",
    default="90d",
    metavar="TIME",
    show_default=True,
    help="How far back to look, for example 12h, 30d or 4w.",
)
@click.option("--all-projects", is_flag=True, help="Include all projects, not just this folder's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(since: str, all_projects: bool, as_json: bool) -> None:
    """Replay this machine's coding-agent sessions, oldest first, starting with an empty bank.

    The report shows how often an earlier session had already fixed a failure, how often Mulligan would have shown that
    fix, and how often the fix was then applied. Your own bank is not changed.
    """
    after = time.time() - seconds_of(since)
    own = "" if all_projects else project_id(os.getcwd())
    sessions = [
        old for old in transcripts(since=after) if all_projects or (old.folder and project_id(old.folder) == own)
    ]
    exam = asyncio.run(examine(sessions))
    if as_json:
        emit(json.dumps(asdict(exam), indent=2))
    elif exam.sessions or exam.unreadable:
        emit(_page(exam))
    if not exam.sessions:
        say("No sessions to replay. --all-projects includes all folders; --since 52w looks further back.")


def _page(exam: Exam) -> str:
    def of(part: int, whole: int) -> str:
        return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")

    rows = [
        ("sessions", f"{exam.sessions} in {count(exam.projects, 'project')}, {exam.calls} calls"),
        ("failed commands", str(exam.failures)),
        ("fixed in an earlier session", of(exam.known, exam.failures)),
        ("the fix was shown", of(exam.shown, exam.known)),
        ("the fix was then applied", of(exam.done, exam.shown)),
        ("rules shown at the start", f"{exam.rules}, {exam.needed} of them for an error that then occurred"),
        ("lessons taught", f"{len(exam.titles)}, {exam.confirmed} confirmed"),
    ]
    page = [columns(rows, heading=False), *(f"  {title}" for title in exam.titles[-20:])]
    return drawn([*page, *(f"could not be read: {one}" for one in exam.unreadable)])
