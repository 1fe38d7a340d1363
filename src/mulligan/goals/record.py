"""Writes what the goals' own record has of a session into the store of runs, as an episode.

The goals' record is written first and decides. What a killed process did not write here, the next one does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mulligan.core.codec import from_json
from mulligan.core.episode import Acted, Evaluated, Stopped
from mulligan.core.errors import MulliganError, NotFound
from mulligan.core.home import home_path
from mulligan.core.records import Attempt, Episode, Feedback, Head, Json, Plan, Stop, StopReason, Task
from mulligan.core.turns import Turn
from mulligan.goals.database import FILE, Row
from mulligan.goals.state import ACTIVE, DONE, NEW_TRIES, NO_PROGRESS, OPEN, PASSED, PAUSED, Goals
from mulligan.recording.ledger import Ledger
from mulligan.store import open_store

_WAIT = 10.0
"""Seconds that a process waits for another one that writes the same episode."""
UNCHANGED = "(nothing had changed since the last check, so it was not run again)"


def sync(goals: Goals, goal_id: str) -> None:
    """Record what is missing of this goal. What goes wrong is noted with the goal, and costs the record alone."""
    try:
        asyncio.run(_sync(goals, goal_id))
    except (MulliganError, OSError) as error:
        goals.note(goal_id, "mulligan", f"the episode could not be recorded: {error}")


async def _sync(goals: Goals, goal_id: str) -> None:
    goal = goals.goal(goal_id)
    if goal is None:
        return
    async with open_store(goal.settings["store"]) as store:
        ledger = Ledger(store)
        for work in goals.works(goal_id):
            tries = [try_row for try_row in goals.tries(goal_id, work.agent, work.session) if try_row.state == DONE]
            if not tries:
                continue
            id = f"{work.episode}.1"
            try:
                await store.load(id)
            except NotFound:
                with suppress(MulliganError):  # another process was first
                    await ledger.begin(_begun(goal, work, tries[0].at))
            async with ledger.hold(id, wait=_WAIT) as entry:
                for try_row in tries:
                    n: int = try_row.n
                    recorded = entry.episode.trials[n - 1] if n <= len(entry.episode.trials) else None
                    if recorded is None:
                        note = f"{UNCHANGED}\n" if try_row.unchanged else ""
                        await entry.append(Acted(try_row.n, Attempt(note + try_row.attempt)))
                    if recorded is None or recorded.feedback is None:
                        await entry.append(Evaluated(try_row.n, from_json(Feedback, try_row.feedback)))
                if entry.episode.stop is None and (stop := _stop(goal, work)):
                    await entry.append(Stopped(stop))


def _begun(goal: Row, work: Row, at: float) -> Episode:
    settings = {
        "led_by": "goal",
        "goal": goal.id,
        "coding_agent": work.agent,
        "session": work.session,
        "folder": goal.folder,
        "evaluator": _evaluator(goal.settings),
        "trials": goal.settings["trials"],
        "protect": goal.settings["protect"],
    }
    task = Task(f"{goal.label} passes in {goal.folder}")
    models = {"evaluator": goal.settings["model"]} if "rubric" in goal.settings else {}
    head = Head(Head.versions_of(), models, settings)
    return Episode(f"{work.episode}.1", task, work.episode, "", Plan(reflects=False), head, started=round(at, 3))


def _evaluator(settings: Mapping[str, Any]) -> Json:
    if "rubric" in settings:
        return {"name": "model_judge", "rubric": settings["rubric"]}
    return {"name": "command", "check": settings["check"]}


def _stop(goal: Row, work: Row) -> Stop | None:
    """Why the episode is over, if it is."""
    if work.state == OPEN:
        return None if goal.state in (ACTIVE, PAUSED) else Stop("gave_up", f"the goal is {goal.state}")
    if work.why == NEW_TRIES:
        return Stop("gave_up", work.why)
    if work.why == PASSED:
        return Stop("solved", "the check passed")
    reason: StopReason = "stuck" if work.why == NO_PROGRESS else "exhausted"
    return Stop(reason, work.why)


def checks_of(agent: str, session: str) -> list[Turn]:
    """The checks that were run for the goals of a session, as calls of the session."""
    if not os.path.exists(os.path.join(home_path(), FILE)):
        return []
    with Goals(wait=1.0) as goals:
        return [
            Turn(
                "tool",
                verdict.feedback["text"],
                "Bash",
                f"goal {verdict.goal} {verdict.n}",
                not verdict.passed,
                verdict.at,
                command=verdict.check,
                output=verdict.feedback["text"],
            )
            for verdict in goals.verdicts(agent, session)
        ]
