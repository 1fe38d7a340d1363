"""`mulligan hooks doctor`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from mulligan.app.memory import open_bank
from mulligan.cli.terminal import columns, emit, one_line, say
from mulligan.hooks import doctor, install
from mulligan.hooks.project import project_id
from mulligan.sessions.agents import NAMES, agent
from mulligan.store import open_store


@click.command("doctor", short_help="Test the installed hooks, and report what is wrong.")
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(NAMES))
def command(agents: tuple[str, ...]) -> None:
    """Test the installed hooks (by default, for all agents) and report any problems.

    Each hook receives a payload recorded from its agent and uses a temporary bank with one lesson. The command prints
    what the model would read and how many milliseconds the hook took. Your own bank is not touched. The exit status is
    1 if there is a problem.
    """
    folder, wrong = Path.cwd(), 0
    found = [
        (name, path, text)
        for name, _, path, text in install.installations(folder)
        if path.suffix != ".toml" and (not agents or name in agents)
    ]
    plug_ins = {name: doctor.plug_in(agent(name), folder) for name in agents or NAMES}
    for line in install.stripped():
        say(line)
        wrong += 1
    if not found:
        for name, place in plug_ins.items():
            if place:
                emit(f"{agent(name).title} has Mulligan's plug-in: {place}. Its hooks are not tested.")
        if not any(plug_ins.values()) and not wrong:
            say("No Mulligan hooks are installed here. To install them: mulligan hooks install")
        raise click.exceptions.Exit(1)
    for name, path, text in found:
        of = agent(name)
        emit(
            f"{of.title}: {path}, tested with an invented error and an invented lesson, neither of which is stored in "
            f"your bank"
        )
        given, rows = doctor.commands(of, path, text), list[tuple[str, str, str]]()
        with tempfile.TemporaryDirectory(prefix="mulligan-doctor-", ignore_cleanup_errors=True) as home:
            asyncio.run(_seeded(Path(home)))
            for fired in doctor.fire(of, given, Path(home)):
                said = f"the model would read: {one_line(fired.text, 200)}" if fired.text else "nothing for the model"
                text = fired.wrong or said if fired.tried else "not tested: no payload was recorded for this event"
                rows.append((fired.event, f"{fired.milliseconds:.0f} ms" if fired.tried else "", text))
                wrong += bool(fired.wrong)
        if rows:
            emit(columns(rows, heading=False, inset=2))
        if name not in doctor.recorded():
            emit("  There are no recorded payloads for this agent, so its hooks were not tested.")
        others = [str(other) for also, other, _ in found if also == name and other != path]
        twice = [
            f"The same hooks are also in {one}, so each of them runs twice, although each lesson is shown only once. "
            f"Keep "
            f"only one: `mulligan hooks uninstall {name}` with --user or --project."
            for one in others
        ]
        if plug_ins[name]:
            twice.append(
                "The plug-in has the same hooks, so each of them runs twice, although a lesson is shown once: "
                f"{plug_ins[name]}. Keep only one: `mulligan hooks uninstall {name}` removes these hooks."
            )
        for trouble in (*doctor.troubles(of, given, folder), *twice):
            emit(f"  ! {trouble}")
            wrong += 1
    if wrong:
        raise click.exceptions.Exit(1)


async def _seeded(home: Path) -> None:
    """A bank with a lesson about the error in the payloads."""
    store = open_store(f"sqlite:///{home / 'mulligan.db'}")
    bank = open_bank(project_id(str(home)), store=store.memory, embedder="none", project="")
    try:
        await bank.add(
            "sample: No module named 'orders_schema'",
            "`python3 tasks.py generate` makes it.",
            nature="fact",
            confirmed=True,
            context={"errors": [doctor.ERROR]},
        )
    finally:
        await bank.close()
