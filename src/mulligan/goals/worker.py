"""The process that judges one try: `python -m mulligan.goals.worker`, which reads from its standard input which one.

It outlives the hook that starts it, so a check which takes longer than an agent waits is judged all the same. The hook
waits at the other end of descriptor 3, which is closed when the verdict is recorded.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from mulligan.sandbox import client

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mulligan.goals.checks import Judge
    from mulligan.goals.database import Row
    from mulligan.goals.state import Goals

WAITED_AT = 3
"""The descriptor that is closed when the verdict is recorded."""


def main() -> int:
    """Judge the try of a line of JSON: goal, agent, session, number, folder and tree. Number 0 is the check when a goal
    is set. Without a line there is nothing to judge."""
    with suppress(OSError):
        os.set_inheritable(WAITED_AT, False)
    client.prepare()
    import json  # from here on while the sandbox starts

    from mulligan.goals.state import PASSED, Goals

    if not (line := sys.stdin.readline()):
        return 0
    goal_id, agent, session, n, folder, top = json.loads(line)
    judge: Judge | None = None
    with Goals() as goals:
        if goal := goals.goal(goal_id):
            try:
                judge = _judge(goals, goal, (agent, session, int(n)), folder, top)
            except Exception as error:
                goals.note(goal_id, "mulligan", f"the worker failed: {type(error).__name__}: {error}")
        with suppress(OSError):
            os.close(WAITED_AT)
        if judge:
            judge.forget()
        if goal:
            from mulligan.goals.record import sync

            sync(goals, goal_id)
            if (current := goals.goal(goal_id)) and current.state == PASSED:
                from mulligan.goals.setting import tidy

                tidy(current)
    return 0


def _judge(goals: Goals, goal: Row, try_id: tuple[str, str, int], folder: str, top: str) -> Judge | None:
    """Judge the try and record the verdict. Returns who judged it; None if another process did."""
    from mulligan.goals.checks import Judge, start

    begun = start(goal.spec, folder, top) if goal.settings["check"] else None
    import asyncio  # from here on while the check runs

    from mulligan.core.codec import to_json
    from mulligan.core.records import Feedback
    from mulligan.goals.failures import failures
    from mulligan.goals.place import fingerprint
    from mulligan.recording.holders import owner

    agent, session, n = try_id
    try_row = goals.own(goal.id, agent, session, n, owner()) if n else None
    if n and try_row is None:  # another process has judged it
        if begun:
            begun.control.close()
        return None
    failures("ValueError: a value is wrong")  # its patterns are compiled while the check runs
    earlier = [other.feedback for other in goals.tries(goal.id, agent, session) if other.feedback and other.n != n]
    judge = Judge(goal, folder, top)
    try:
        feedback = asyncio.run(judge.judge(earlier, begun))
    except Exception as error:
        feedback = Feedback(None, f"The check could not be judged: {type(error).__name__}: {error}", source="goal")
    encoded = to_json(feedback)
    if try_row is None:
        goals.keep_first(goal.id, encoded)
        return judge
    keys: Sequence[str] = [] if feedback.passed else failures(feedback.text, unknown=feedback.passed is None)
    best: float = goal.best["score"] if goal.best else float("-inf")
    if feedback.score is not None and feedback.score > best:
        _keep_best(goals, goal, folder, n, feedback.score)
    after = "" if feedback.passed else fingerprint(folder)  # no stop comes after a try that passed
    goals.finish(goal, try_row, feedback.passed, encoded, keys, after, judge.diff)
    return judge


def _keep_best(goals: Goals, goal: Row, folder: str, n: int, score: float) -> None:
    """Keep the state with the best score of a goal that is a score, as a git ref."""
    if "at_least" not in goal.settings:
        return
    from pathlib import Path

    from mulligan.core.home import home
    from mulligan.workspace import states

    name = f"{goal.id}.1/best"
    state = states.keep(folder, name, Path(home(), f"goal-{goal.id}-{os.getpid()}.index"))
    goals.keep_best(
        goal.id, {"score": score, "try": n, "ref": f"refs/mulligan/{name}" if state else "", "commit": state or ""}
    )


if __name__ == "__main__":
    sys.exit(main())
