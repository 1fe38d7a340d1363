"""`mulligan hooks status`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from mulligan.app.teaching import memory_command
from mulligan.cli.terminal import clean, columns, drawn, emit, one_line
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.hooks import doctor, install
from mulligan.hooks.status import Figures, Status, status_of
from mulligan.sessions.agents import NAMES, agent
from mulligan.text.figures import when


@click.command("status", short_help="Show what the hooks have seen, shown and learned, and what went wrong.")
@click.option(
    "--folder",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A folder in the project (default: the working folder).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(folder: str, as_json: bool) -> None:
    """Show what the hooks have seen, shown and learned in this project, and any errors."""
    status, (installed, gone) = status_of(folder), _installed(Path(folder))
    facts = {**_facts(status), "installed": installed, "gone": gone}
    page = [_page(status, installed), *("" for _ in gone[:1]), *gone]
    emit(json.dumps(facts, indent=2) if as_json else drawn(page))


def _installed(folder: Path) -> tuple[list[str], list[str]]:
    """The agents that have hooks or the plug-in, and what is wrong with hooks that cannot be started."""
    found, gone = [name for name in NAMES if doctor.plug_in(agent(name), folder)], list[str]()
    with suppress(InvalidInput):  # a file that cannot be read: `hooks doctor` says so
        for name, _, path, text in install.installations(folder):
            if path.suffix != ".toml":
                found.append(name)
                gone += doctor.gone(of := agent(name), doctor.commands(of, path, text))
        gone += install.stripped()
    return sorted(set(found)), gone


def _facts(status: Status) -> dict[str, object]:
    facts = asdict(status)
    facts["sessions"] = [one._asdict() | {"cursor": None} for one in status.sessions]
    facts["shown"] = [one._asdict() for one in status.shown]
    facts["errors"] = [one._asdict() for one in status.errors]
    return facts


def _page(status: Status, installed: Sequence[str]) -> str:
    shown = [one for one in status.shown if one.way == "shown"]
    agents = Counter(one.agent for one in status.sessions if not one.subagent)
    moments = Counter(one.moment for one in shown)
    again, known = status.again()
    rows = [
        ("project", status.project),
        ("bank", status.bank if status.bank != status.project else "the project's own"),
        ("store", status.store),
        ("hooks in", ", ".join(agent(name).title for name in installed) or "no agent yet: mulligan hooks install"),
        ("paused", ", ".join(one or "everywhere" for one in status.paused) or "no"),
        ("sessions", ", ".join(f"{number} of {agent}" for agent, number in agents.items()) or "none yet"),
        ("unread sessions", str(sum(one.due for one in status.sessions))),
        ("failed commands", _failed(status.figures)),
        ("rules shown at the start", _rules(status.figures)),
        ("time", _took(status.figures)),
        ("lessons", f"{status.kept} kept, {count(status.candidates, 'candidate')}"),
        ("shown", ", ".join(f"{number} at {moment}" for moment, number in moments.items()) or "none yet"),
        ("same error again", f"{again} of {count(known, 'lesson')} shown" if known else "not known yet"),
    ]
    withheld_again, withheld = status.again("withheld")
    if withheld:
        rows.append(("when withheld", f"{withheld_again} of {withheld}"))
    if denied := sum(one.way == "denied" for one in status.shown):
        rows.append(("calls denied", str(denied)))
    for kind, kept, candidates in status.subagents:
        rows.append((f"of {kind}", f"{kept} kept, {count(candidates, 'candidate')}"))
    page = [columns(rows, heading=False)]
    if learned := status.figures.learned:
        page += ["", f"Learned this week: {count(len(learned), 'lesson')}."]
        page += [f"  {one_line(title, 90)} (judged by {one_line(by, 40)})" for _, title, by in learned[:5]]
    if prune := status.figures.prune:
        page += ["", f"Candidates for retirement: {memory_command(status.bank, 'retire', 'ID')}"]
        page += [f"  {id}  {one_line(title, 60)}: {why}" for id, title, why in prune[:5]]
    if status.frequent:
        page += ["", "Most frequent errors:"]
        page += [
            f"  {count(often, 'time')}, {count(sessions, 'session')}: {one_line(words, 100) or 'not read yet'}"
            for words, often, sessions in status.frequent
        ]
    if status.errors:
        page += ["", "Hook errors, newest first (not shown to the agent):"]
        page += [f"  {when(one.at)} {one.agent} {one.event}: {one_line(one.what, 200)}" for one in status.errors]
    page += [line for text in (status.notice, status.trouble) if text for line in ("", clean(text))]
    return drawn(page)


def _failed(figures: Figures) -> str:
    if not figures.failures:
        return "none yet"
    fixed = f"{figures.failures}; {figures.fixed} had an earlier fix"
    return (
        f"{fixed}, which was shown for {figures.shown} and then applied for {figures.done}" if figures.fixed else fixed
    )


def _rules(figures: Figures) -> str:
    if not figures.rules:
        return "none yet"
    sessions = count(figures.starts, "session")
    return f"{figures.rules} in {sessions}, {figures.needed} of them for an error that then occurred"


def _took(figures: Figures) -> str:
    """The CPU time of a hook that has nothing to do, here and now."""
    late = f"{count(figures.late, 'hook') if figures.late else 'no hook'} reached the time limit this week"
    milliseconds = doctor.milliseconds()
    return f"{milliseconds:.0f} ms of CPU per hook; {late}" if milliseconds else late
