"""Goals of coding agents: their state for programs and people, and agents that are started with a goal."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Sequence

from mulligan.actors.command import split_command
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.goals import message
from mulligan.goals.database import Row
from mulligan.goals.place import Place
from mulligan.goals.state import ACTIVE, OPEN, PASSED, Goals
from mulligan.goals.turn import RUN, stop
from mulligan.sessions.agents import NAMES, agent
from mulligan.sessions.events import Notice
from mulligan.text.plain import count

_PATIENCE = 86400.0


def in_json(goals: Goals, goal: Row) -> str:
    """The state of a goal as JSON."""
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
    """The state of a goal in words: the tries, what still fails, and what was refused."""
    lines = [f"{goal.label}  in {goal.folder}: {goal.state}"]
    if goal.first:
        lines.append(f"when set: {message.VERDICTS[goal.first['passed']]}")
    for work in goals.works(goal.id):
        tries = goals.tries(goal.id, work.agent, work.session)
        state = work.why if work.state != OPEN else "in progress" if goal.state == ACTIVE else "ended"
        used = f"{len(tries)} of {count(goal.settings['trials'], 'try')}"
        who = "started by --run" if work.agent == "run" else f"{work.agent} {work.session[:8]}"
        lines.append(f"run {work.episode} ({who}): {used}, {state}")
        lines += [f"  {attempt.n}. {message.in_short(attempt)}" for attempt in tries]
        if tries and tries[-1].feedback:
            lines += [f"     {note}" for note in tries[-1].feedback.get("notes", ())]
    if goal.best:
        lines.append(f"best score: {goal.best['score']:g} (try {goal.best['try']}), kept as {goal.best['ref']}")
    lines += [f"{entry.who}: {entry.what}" for entry in goals.log() if entry.what.startswith("refused")][:3]
    return "\n".join(lines) + "\n"


def agent_words(command: str) -> Sequence[str]:
    """The words of a coding agent's command, or of the agent of this name. Raises `InvalidInput` if it cannot start."""
    return split_command((agent(command).command if command in NAMES else "") or command)


def run_agent(words: Sequence[str], task: str, folder: str, say: Callable[[str], None]) -> int:
    """Starts a coding agent on a task with the goal of a folder, and again with the output of the check, until the goal
    is reached or ends.

    If the agent has hooks, they count the same tries.

    Returns:
        0 if the goal was reached, else 1.
    """
    run = secrets.token_hex(6)
    os.environ[RUN] = run
    with Goals() as goals:
        goal = Place(folder).goal(goals.standing())
        if goal is None:
            raise InvalidInput('There is no goal here. Set one: mulligan goal "pytest -q"')
        say(f"{goal.label}: at most {count(goal.settings['trials'], 'try')}.")
        text = task
        while True:
            environ = {**os.environ, RUN: run}
            in_argv = any("{prompt}" in word for word in words)
            argv = [word.replace("{prompt}", text) for word in words]
            if words[0] == "opencode" and not in_argv:
                argv, in_argv = [*argv, text], True
            stdin = "" if in_argv else text
            subprocess.run(argv, input=stdin, text=True, cwd=folder, env=environ, check=False)
            current = goals.goal(goal.id)
            if current is None or current.state != goal.state:
                break
            work = goals.work(goal.id, "run", run)
            if work is not None and work.state != OPEN:
                break
            outcome = stop(Notice("run", "stop", run, folder), time.monotonic(), _PATIENCE, always=True)
            work = goals.work(goal.id, "run", run)
            if work is None or work.state != OPEN or not outcome.text:
                break
            text = f"{task}\n\n{outcome.text}"
        work, current = goals.work(goal.id, "run", run), goals.goal(goal.id)
        reached = current is not None and current.state == PASSED
        used = f"{len(goals.tries(goal.id, 'run', run))} of {count(goal.settings['trials'], 'try')}"
        say(f"Goal reached: {used}." if reached else f"Goal not reached: {used}{f', {work.why}' if work else ''}.")
        return 0 if reached else 1
