"""Goals of coding agents: which agents can be held, where a goal stands, and an agent that is started under one."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.goals import message
from mulligan.goals.place import Place
from mulligan.goals.state import OPEN, PASSED, Goals, Row
from mulligan.goals.turn import RUN, stop
from mulligan.hooks import doctor, install
from mulligan.sessions.agents import CodingAgent, agent
from mulligan.sessions.events import Notice
from mulligan.text.command_lines import split_line

_PATIENCE = 86400.0


def agents_that_hold(folder: str, trials: int, only: str = "") -> list[str]:
    """What a person should know of the agents whose hooks are installed here, in lines.

    only: the name of an agent in whose session the goal is set; "": any.

    Raises:
        InvalidInput: No agent would be held at work, or one only seemingly: its hooks are older or not trusted.
    """
    lines: list[str] = []
    here = Path(folder)
    holding: list[CodingAgent] = []
    for name, _, path, text in install.installations(here):
        of = agent(name)
        if not of.holds or path.suffix == ".toml" or (only and name != only):
            continue
        given = doctor.commands(of, path, text)
        if why := doctor.does_not_hold(of, given, here):
            raise InvalidInput(f"{of.title} would not be held at work, by {path}: {why}")
        if of not in holding:
            holding.append(of)
    if not holding:
        plugged = [name for name in ("claude", "codex", "gemini") if doctor.plug_in(agent(name), here)]
        if not plugged:
            raise InvalidInput(
                "No coding agent has Mulligan's hooks here, so nothing would run the check: `mulligan hooks install`. "
                "opencode cannot be held by a hook: use `mulligan goal --run opencode TASK`."
            )
        lines.append(f"Held at work, if their plug-in is of this version: {', '.join(plugged)}.")
    for of in holding:
        tried = "" if of.tried else " (by its documentation; not tried)"
        lines.append(f"Held at work: {of.title}{tried}.")
        if 0 < of.holds_in_row < trials:
            lines.append(f"{of.title} ends a turn itself after {of.holds_in_row} times in a row, whatever --trials says.")
    return lines


def in_json(goals: Goals, goal: Row) -> str:
    """Where a goal stands, for programs."""
    rows: Json = {
        "id": goal.id,
        "check": goal.label,
        "folder": goal.folder,
        "state": goal.state,
        "trials": goal.settings["trials"],
        "passes_at_the_start": goal.first["passed"] if goal.first else None,
        "best": goal.best,
        "sessions": [
            {
                "agent": work.agent,
                "session": work.session,
                "run": work.episode,
                "state": work.state,
                "why": work.why,
                "tries": [
                    {"passed": None if one.passed is None else bool(one.passed), "unchanged": bool(one.unchanged)}
                    for one in goals.tries(goal.id, work.agent, work.session)
                ],
            }
            for work in goals.works(goal.id)
        ],
    }
    return json.dumps(rows, indent=2) + "\n"


def in_words(goals: Goals, goal: Row) -> str:
    """Where a goal stands: tries, what still fails, what somebody wanted to do with it."""
    lines = [f"{goal.label}  in {goal.folder}: {goal.state}"]
    if goal.first:
        lines.append(f"when it was set: {'passes' if goal.first['passed'] else 'fails'}")
    for work in goals.works(goal.id):
        tries = goals.tries(goal.id, work.agent, work.session)
        state = work.why if work.state != OPEN else "goes on"
        lines.append(f"{work.agent} {work.session[:8]}, run {work.episode}: {len(tries)} of {goal.settings['trials']} tries, {state}")
        lines += [f"  {one.n}. {message.in_short(one)}" for one in tries]
        if tries and tries[-1].feedback:
            lines += [f"     {note}" for note in tries[-1].feedback.get("notes", ())]
    if goal.best:
        lines.append(f"best score: {goal.best['score']:g} (try {goal.best['try']}), kept as {goal.best['ref']}")
    lines += [f"{each.who}: {each.what}" for each in goals.log() if each.what.startswith("refused")][:3]
    return "\n".join(lines) + "\n"


def run_agent(command: str, task: str, folder: str, say: Callable[[str], None]) -> int:
    """Start a coding agent on a task under the goal of a folder, and again with what the check showed, until the goal
    is reached or ends.

    The hooks of an agent that can be held count the same tries.

    Returns:
        0 if the goal was reached, else 1.
    """
    from mulligan.actors.command import AGENTS
    from mulligan.recording.holders import owner

    run = secrets.token_hex(6)
    words = split_line(AGENTS.get(command, command))
    os.environ[RUN] = run
    with Goals() as goals:
        goal = Place(folder).goal(goals.standing())
        if goal is None:
            raise InvalidInput('There is no goal here. Set one: mulligan goal "pytest -q"')
        owner()
        say(f"{goal.label}: at most {goal.settings['trials']} tries.")
        text = task
        while True:
            environ = {**os.environ, RUN: run}
            given = [word.replace("{prompt}", text) for word in words]
            placed = any("{prompt}" in word for word in words)
            last = [text] if not placed and words[0] == "opencode" else []
            subprocess.run(
                [*given, *last], input="" if placed or last else text, text=True, cwd=folder, env=environ, check=False
            )
            there = goals.goal(goal.id)
            if there is None or there.state != goal.state:
                break
            work = goals.work(goal.id, "run", run)
            if work is not None and work.state != OPEN:
                break
            outcome = stop(Notice("run", "stop", run, folder), _now(), _PATIENCE, always=True)
            work = goals.work(goal.id, "run", run)
            if work is None or work.state != OPEN or not outcome.text:
                break
            text = f"{task}\n\n{outcome.text}"
        work, there = goals.work(goal.id, "run", run), goals.goal(goal.id)
        reached = there is not None and there.state == PASSED
        tries = goals.tries(goal.id, "run", run)
        say(f"{'reached' if reached else 'not reached'}: {len(tries)} of {goal.settings['trials']} tries{'' if reached or not work else f', {work.why}'}")
        return 0 if reached else 1


def _now() -> float:
    import time

    return time.monotonic()
