"""What happens to a goal as a session goes on: a prompt, a command, a stop. Hooks call this where a goal stands."""

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
_LOOK = 0.1
"""Seconds between two looks at a check that another hook has started."""


class Outcome:
    """What an agent that would stop is given.

    Attributes:
        text: for the agent; "" lets the turn end.
        output: what the check printed where it failed, by which lessons are recalled.
        call: the id of this try.
    """

    def __init__(self, text: str = "", output: str = "", call: str = "") -> None:
        self.text, self.output, self.call = text, output, call


def who(notice: Notice) -> tuple[str, str]:
    """Whose tries count together: those of a session, or of a `goal --run`."""
    run = os.environ.get(RUN, "")
    return ("run", run) if run else (notice.agent, notice.session)


def prompt(notice: Notice, *, hears: bool = True) -> str:
    """A turn begins; what the agent is told with the user's words.

    hears: whether there are words, with which it can be told something; a session that is resumed has none.
    """
    if message.is_ours(notice.text):
        return ""
    with Goals(wait=1.0) as goals:
        place = Place(notice.folder)
        goal = place.goal(goals.standing())
        if goal is None or goal.state != ACTIVE:
            return ""
        agent, session = who(notice)
        known = goals.work(goal.id, agent, session)
        goals.prompted(goal.id, agent, session, fingerprint(place.where(goal)))
        if not hears:
            return ""
        told = [] if known else [message.greeting(goal)]
        if one := goals.untold(goal.id, agent, session):
            goals.tell(one)
            told.append(_text(goals, goal, one, late=True))
        return "\n\n".join(filter(None, told))


def command(notice: Notice) -> None:
    """The agent is about to run a command."""
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
    """The agent would end its turn. Runs the check, if this stop is a try, and waits for it.

    Args:
        started: when this process began, by `time.monotonic`.
        patience: seconds to wait. A check that takes longer goes on, and the next prompt tells what it showed.
        always: whether it is a try where nothing has changed since the turn began, too.
        meanwhile: what there is to do while the check runs.
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

                one = goals.begin(goal, agent, session, fingerprint(folder), owner(), started, always=always)
                if one is None:
                    return Outcome()
                if one.fresh:
                    worker.judge(goal, one, folder, place.top, until - time.monotonic(), meanwhile)
                    one = goals.reread(one)
            finally:
                worker.close()
            if one.state != BEGUN:
                break
            if time.monotonic() >= until:
                return Outcome()
            time.sleep(_LOOK)  # another check of this session runs, whose hook was killed
        goals.tell(one)
        text = _text(goals, goals.goal(goal.id) or goal, one)
        no_output = one.passed or one.unchanged or not goal.settings["check"]  # a model's words are no output
        output = "" if no_output else one.feedback["text"]
        return Outcome(text, output, f"goal {goal.id} {one.n}")


def _text(goals: Goals, goal: Row, one: Row, *, late: bool = False) -> str:
    if one.passed:
        return message.passed(goal, one)
    work, tries = goals.work(goal.id, one.agent, one.session), goals.tries(goal.id, one.agent, one.session)
    if work is not None and work.state == ENDED:
        return message.ended(goal, work, tries)
    return message.failed(goal, one, tries, late=late)


class Worker:
    """A process that judges one try. It is started before it is known whether there is one, as its start takes as long
    as finding that out."""

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
        one: Row | None,
        folder: str,
        top: str,
        patience: float,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bool:
        """Wait for the verdict; False if it is not there in time.

        Args:
            one: None for the check when the goal is set.
            meanwhile: what there is to do until then.
        """
        words = [goal.id, *((one.agent, one.session, str(one.n)) if one else ("", "", "0")), folder, top]
        os.write(self._words, json.dumps(words).encode() + b"\n")
        until = time.monotonic() + patience
        meanwhile()
        ready = select.poll()  # unlike `select`, takes descriptors above 1023
        ready.register(self._verdict, select.POLLIN)
        return bool(ready.poll(max(until - time.monotonic(), 0.0) * 1000))

    def close(self) -> None:
        """Leave the worker alone; one that was given nothing ends."""
        os.close(self._words)
        os.close(self._verdict)
        try:
            os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:
            return
