"""Goals of coding agents: which agents can be held, where a goal stands, and an agent that is started under one."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.goals import message
from mulligan.goals.database import Row
from mulligan.goals.place import Place
from mulligan.goals.state import OPEN, PASSED, Goals
from mulligan.goals.turn import RUN, stop
from mulligan.sessions.agents import NAMES, agent
from mulligan.sessions.events import Notice
from mulligan.text.command_lines import split_line

_PATIENCE = 86400.0


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
        lines.append(f"when set: {'passed' if goal.first['passed'] else 'failed'}")
    for work in goals.works(goal.id):
        tries = goals.tries(goal.id, work.agent, work.session)
        state = work.why if work.state != OPEN else "in progress"
        used = f"{len(tries)} of {goal.settings['trials']} tries"
        who = "started by --run" if work.agent == "run" else f"{work.agent} {work.session[:8]}"
        lines.append(f"run {work.episode} ({who}): {used}, {state}")
        lines += [f"  {one.n}. {message.in_short(one)}" for one in tries]
        if tries and tries[-1].feedback:
            lines += [f"     {note}" for note in tries[-1].feedback.get("notes", ())]
    if goal.best:
        lines.append(f"best score: {goal.best['score']:g} (try {goal.best['try']}), kept as {goal.best['ref']}")
    lines += [f"{each.who}: {each.what}" for each in goals.log() if each.what.startswith("refused")][:3]
    return "\n".join(lines) + "\n"


def run_agent(command: str, task: str, folder: str, say: Callable[[str], None]) -> int:
    """Start a coding agent on a task with the goal of a folder, and again with what the check showed, until the goal
    is reached or ends.

    The hooks of an agent that can be held count the same tries.

    Returns:
        0 if the goal was reached, else 1.
    """

    run = secrets.token_hex(6)
    words = split_line((agent(command).command if command in NAMES else "") or command)
    os.environ[RUN] = run
    with Goals() as goals:
        goal = Place(folder).goal(goals.standing())
        if goal is None:
            raise InvalidInput('There is no goal here. Set one: mulligan goal "pytest -q"')
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
            outcome = stop(Notice("run", "stop", run, folder), time.monotonic(), _PATIENCE, always=True)
            work = goals.work(goal.id, "run", run)
            if work is None or work.state != OPEN or not outcome.text:
                break
            text = f"{task}\n\n{outcome.text}"
        work, there = goals.work(goal.id, "run", run), goals.goal(goal.id)
        reached = there is not None and there.state == PASSED
        used = f"{len(goals.tries(goal.id, 'run', run))} of {goal.settings['trials']} tries"
        say(f"Goal reached: {used}." if reached else f"Goal not reached: {used}{f', {work.why}' if work else ''}.")
        return 0 if reached else 1
