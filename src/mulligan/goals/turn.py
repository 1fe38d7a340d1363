"""Follows a goal through a session: its prompts, commands and stops. Hooks call this if there is a goal."""

from __future__ import annotations

import json
import os
import select
import sys
import time

from mulligan.core.home import home_path
from mulligan.goals import message
from mulligan.goals.place import Place, fingerprint
from mulligan.goals.state import ACTIVE, BEGUN, ENDED, Goals

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from mulligan.goals.database import Row
    from mulligan.sessions.events import Notice

RUN = "MULLIGAN_GOAL_RUN"
"""The variable by which `goal --run` and the hooks of the agent that it starts count tries together."""
_POLL_SECONDS = 0.1
"""How often a check is looked at that another hook has started."""


class Outcome:
    """The answer to an agent that would stop.

    Attributes:
        text: for the agent; "" lets the turn end.
        output: the output of a check that failed, for the recall of lessons.
        call: the id of this try.
    """

    def __init__(self, text: str = "", output: str = "", call: str = "") -> None:
        self.text, self.output, self.call = text, output, call


def who(notice: Notice) -> tuple[str, str]:
    """Whose tries are counted together: those of a session, or of a `goal --run`."""
    run = os.environ.get(RUN, "")
    return ("run", run) if run else (notice.agent, notice.session)


def prompt(notice: Notice, *, hears: bool = True) -> str:
    """Note that a turn begins. Returns what the agent is told with the user's prompt.

    hears: whether there is a prompt. A session that is resumed has none, so that the agent cannot be told anything.
    """
    if message.is_ours(notice.text):
        return ""
    with Goals(wait=1.0) as goals:
        place = Place(notice.folder)
        goal = place.goal(goals.standing())
        if goal is None or goal.state != ACTIVE:
            return ""
        agent, session = who(notice)
        work = goals.work(goal.id, agent, session)
        goals.prompted(goal.id, agent, session, fingerprint(place.where(goal)))
        if not hears:
            return ""
        texts = [] if work else [message.greeting(goal)]
        if verdict := goals.untold(goal.id, agent, session):
            goals.tell(verdict)
            texts.append(_text(goals, goal, verdict, late=True))
        return "\n\n".join(filter(None, texts))


def command(notice: Notice) -> None:
    """Note that the agent is about to run a command."""
    from mulligan.sessions.commands import only_looks

    if only_looks(notice.command):
        return
    with Goals(wait=0.3) as goals:
        goal = Place(notice.folder).goal(goals.standing())
        if goal is not None and goal.state == ACTIVE:
            goals.command(goal.id, *who(notice))


def stop(
    notice: Notice,
    started: float,
    patience: float,
    *,
    always: bool = False,
    meanwhile: Callable[[], None] = lambda: None,
) -> Outcome:
    """Answer an agent that would end its turn. If this stop is a try, the check is run and waited for.

    Args:
        started: when this process began, by `time.monotonic`.
        patience: seconds to wait. A check that takes longer goes on, and its result comes with the next prompt.
        always: this is a try even if nothing has changed since the turn began.
        meanwhile: is called while the check runs.
    """
    until = time.monotonic() + patience
    with Goals(wait=2.0) as goals:
        place = Place(notice.folder)
        goal = place.goal(goals.standing())
        if goal is None or goal.state != ACTIVE:
            return Outcome()
        (agent, session), folder = who(notice), place.where(goal)
        while True:
            worker = Worker()
            try:
                from mulligan.recording.holders import owner  # while the worker starts

                try_row = goals.begin(goal, agent, session, fingerprint(folder), owner(), started, always=always)
                if try_row is None:
                    return Outcome()
                if try_row.fresh:
                    worker.judge(goal, try_row, folder, place.top, until - time.monotonic(), meanwhile)
                    try_row = goals.reread(try_row)
            finally:
                worker.close()
            if try_row.state != BEGUN:
                break
            if time.monotonic() >= until:
                return Outcome()
            time.sleep(_POLL_SECONDS)  # another check of this session runs, whose hook was killed
        goals.tell(try_row)
        text = _text(goals, goals.goal(goal.id) or goal, try_row)
        no_output = try_row.passed or try_row.unchanged or not goal.settings["check"]  # a model's words are no output
        output = "" if no_output else try_row.feedback["text"]
        return Outcome(text, output, f"goal {goal.id} {try_row.n}")


def _text(goals: Goals, goal: Row, try_row: Row, *, late: bool = False) -> str:
    if try_row.passed:
        return message.passed(goal, try_row)
    whose = (goal.id, try_row.agent, try_row.session)
    work, tries = goals.work(*whose), goals.tries(*whose)
    if work is not None and work.state == ENDED:
        return message.ended(goal, work, tries)
    return message.failed(goal, try_row, tries, late=late)


class Worker:
    """A process that judges one try. It is started before it is known whether there is a try, to save time."""

    def __init__(self) -> None:
        self._verdict, write = os.pipe()
        given, self._words = os.pipe()
        command = [sys.executable, "-I", "-m", "mulligan.goals.worker"]
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_DUP2, given, 0),
            *((os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in (1, 2)),
            (os.POSIX_SPAWN_DUP2, write, 3),
        ]
        environ = {**os.environ, "MULLIGAN_HOOKS": "off", "MULLIGAN_HOME": os.path.abspath(home_path())}
        self._child = os.posix_spawn(command[0], command, environ, file_actions=actions, setsid=True)
        os.close(write)
        os.close(given)

    def judge(
        self,
        goal: Row,
        try_row: Row | None,
        folder: str,
        top: str,
        patience: float,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bool:
        """Let the process judge, and wait for the verdict.

        Args:
            try_row: None for the check when the goal is set.
            patience: seconds to wait.
            meanwhile: is called while the process judges.

        Returns:
            Whether the verdict came in time.
        """
        try_id = (try_row.agent, try_row.session, str(try_row.n)) if try_row else ("", "", "0")
        os.write(self._words, json.dumps([goal.id, *try_id, folder, top]).encode() + b"\n")
        until = time.monotonic() + patience
        meanwhile()
        ready = select.poll()  # unlike `select`, takes descriptors above 1023
        ready.register(self._verdict, select.POLLIN)
        return bool(ready.poll(max(until - time.monotonic(), 0.0) * 1000))

    def close(self) -> None:
        """Leave the process alone. If it was not told to judge anything, it ends."""
        os.close(self._words)
        os.close(self._verdict)
        try:
            os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:
            return
