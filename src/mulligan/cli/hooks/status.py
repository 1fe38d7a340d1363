"""`mulligan hooks status`."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import click

from mulligan.cli.terminal import clean, columns, emit, one_line
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.hooks import doctor, install
from mulligan.hooks.status import Status, status_of
from mulligan.sessions.agents import NAMES, agent


@click.command("status", short_help="Say what hooks have seen, shown and learned, and what went wrong.")
@click.option(
    "--folder",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A folder of the project (default: the working folder).",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON object, for programs.")
def command(folder: str, as_json: bool) -> None:
    """Say what hooks have seen, shown and learned in this project, and which errors they kept from their agent."""
    status, (installed, gone) = status_of(folder), _installed(Path(folder))
    facts = {**_facts(status), "installed": installed, "gone": gone}
    page = [_page(status, installed), *("" for _ in gone[:1]), *gone]
    emit(json.dumps(facts, indent=2) if as_json else "\n".join(page))


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
        ("paused", ", ".join(one or "everywhere" for one in status.paused) or "nowhere"),
        ("sessions", ", ".join(f"{number} of {agent}" for agent, number in agents.items()) or "none yet"),
        ("not read yet", count(due, "session") if (due := sum(one.due for one in status.sessions)) else "none"),
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
    page = [columns(rows)]
    if status.frequent:
        page += ["", "The errors that came most often:"]
        page += [
            f"  {count(often, 'time')}, {count(sessions, 'session')}: {one_line(words, 100) or 'not read yet'}"
            for words, often, sessions in status.frequent
        ]
    if status.errors:
        page += ["", "Errors that hooks kept from their agent, the newest first:"]
        page += [f"  {_when(one.at)} {one.agent} {one.event}: {one_line(one.what, 200)}" for one in status.errors]
    page += [line for text in (status.notice, status.trouble) if text for line in ("", clean(text))]
    return "\n".join(page)


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
