"""Set a goal, pause it, resume it and end it. Only a person does that: see `goals.person`."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.home import home
from mulligan.goals.checks import Judge, specify
from mulligan.goals.database import Row
from mulligan.goals.person import agent_above
from mulligan.goals.place import Place
from mulligan.goals.record import sync
from mulligan.goals.state import ACTIVE, CLEARED, PAUSED, Goals
from mulligan.goals.surroundings import surroundings
from mulligan.goals.turn import Worker
from mulligan.workspace import states

_STARTING = 30.0
"""Seconds beside the check's own that its first run may take."""
WARNING = (
    "The check runs code that the agent wrote, with your permissions and outside the agent's sandbox, each time the "
    "agent is about to end a turn. The current environment is kept for it in Mulligan's home until the goal ends."
)
MODEL_WARNING = (
    "At each stop, the model is sent the changes in this folder and the files that the rubric names, with secrets "
    "masked. The current environment, including the model's key, is kept in Mulligan's home until the goal ends."
)


@dataclass(frozen=True)
class Wish:
    """A goal as a person words it.

    Attributes:
        check: a command line, which is run without a shell; status 0 passes.
        tests: a file of tests in place of a command. A copy of it judges, out of the agent's reach.
        rubric: what must hold, in words or as a file with them, for a model that judges in place of a command.
        model: the name of that model.
        at_least: the check's last number is a score, and this much of it is wanted.
        trials: how often it is run for a session at most.
        max_seconds: how long a session may work on it.
        seconds: how long the check may take.
        protect: files and folders that are judged as they were when the goal was set.
        first_check: whether it runs now, so that it is known what failed before.
    """

    check: str = ""
    tests: str = ""
    rubric: str = ""
    model: str = ""
    at_least: float | None = None
    trials: int = 5
    max_seconds: float | None = None
    seconds: float = 600.0
    protect: Sequence[str] = ()
    sandbox: str = "auto"
    first_check: bool = True


def person_only(what: str, folder: str) -> None:
    """Raises `InvalidInput`, and records it, where an agent asks."""
    if mark := agent_above():
        with Goals() as goals:
            goals.note("", "agent", f"refused in {folder}: {what} ({mark})")
        raise InvalidInput(
            f"Only a person can {what}, but this is a coding agent's session: {mark}. Run it in your own terminal, "
            "or write /mulligan-goal in a prompt. The attempt was recorded."
        )


def set_goal(
    goals: Goals,
    wish: Wish,
    folder: str,
    store: str,
    who: str,
    *,
    wait: float | None = None,
    begin: Callable[[], None] = lambda: None,
) -> Row:
    """Set the goal of a folder, in place of the one that it has, and run its check once.

    Args:
        store: the address of the store in which its episodes are recorded.
        who: sets it, for the log.
        wait: seconds to wait for the first check; None: as long as it may take.
        begin: called where nothing speaks against the goal so far, before the check runs.

    Raises:
        InvalidInput: it cannot be a goal; what stood there before stays.
    """
    place = Place(folder)
    if wish.trials < 1 or wish.seconds <= 0 or (wish.max_seconds is not None and wish.max_seconds <= 0):
        raise InvalidInput("--tries must be at least 1, and --max-seconds and --check-seconds must be greater than 0.")
    id = secrets.token_hex(6)
    _check_one_judge(wish)
    check, rubric = _check(wish, id, place), _rubric(wish, place)
    _check_protected(wish.protect, place)
    start = states.keep(place.folder, f"{id}.1/start", Path(home(), f"goal-{id}.index"))
    if wish.protect and start is None:
        raise InvalidInput(f"--protect needs git, but git cannot save the state of {place.folder}. See `git status`.")
    if rubric and start is None:
        raise InvalidInput(
            f"The judging model needs the changes, but git cannot save the state of {place.folder}. See `git status`."
        )
    settings: dict[str, Any] = {
        "check": check,
        "trials": wish.trials,
        "max_seconds": wish.max_seconds,
        "seconds": wish.seconds,
        "protect": list(wish.protect),
        "sandbox": wish.sandbox,
        "first_check": wish.first_check,
        "start": start,
        "store": store,
        **({} if wish.at_least is None else {"at_least": wish.at_least}),
        **({"rubric": rubric, "model": wish.model} if rubric else {}),
    }
    environment = {**os.environ, "MULLIGAN_HOME": os.path.abspath(home())}
    goal = {
        "id": id,
        "folder": place.folder,
        "common": place.common,
        "prefix": place.prefix,
        "label": _label(wish),
        "spec": specify(check, place.folder, wish.seconds, wish.sandbox) if check else {"env": environment},
        "settings": settings,
    }
    if check:
        tracked = states.names(place.folder, start) if start else ()
        spec: Any = goal["spec"]
        settings["surroundings"] = surroundings(spec["env"], spec["argv"], place.folder, place.prefix, tracked)
    draft = Row(list(goal), list(goal.values()))
    draft.first = None
    begin()
    settings["contents"] = asyncio.run(Judge(draft, place.folder, place.top).try_out())
    goals.set(goal, who)
    row = goals.goal(id)
    assert row is not None
    if not wish.first_check:
        return row
    worker = Worker()
    try:
        in_time = worker.judge(row, None, place.folder, place.top, wish.seconds + _STARTING if wait is None else wait)
    finally:
        worker.close()
    row = goals.goal(id) or row
    if in_time and row.first and row.first["passed"] is None:
        end(goals, row, CLEARED, "mulligan")
        raise InvalidInput(f"The check cannot judge here, so no goal was set.\n{row.first['text']}")
    return row


def _check_one_judge(wish: Wish) -> None:
    judges = [judge for judge in (wish.check, wish.tests, wish.rubric) if judge]
    if len(judges) > 1:
        raise InvalidInput(f"Use only one judge: a command, --tests or --judge, not {' and '.join(judges)!r}.")
    if not judges:
        raise InvalidInput('Specify a check: a command, such as `mulligan goal "pytest -q"`, or --tests FILE.')
    if wish.rubric and (wish.protect or wish.at_least is not None):
        raise InvalidInput("--protect and --at-least work only with a command or --tests, not with --judge.")


def _check(wish: Wish, id: str, place: Place) -> str:
    """The command line of the check; "" where a model judges."""
    if not wish.tests:
        return wish.check
    file = Path(place.folder, wish.tests)
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.")
    copy = Path(home(), "goal-tests", id, file.name)
    copy.parent.mkdir(parents=True)
    copy.write_bytes(file.read_bytes())
    return shlex.join(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", place.folder, str(copy)]
    )


def _rubric(wish: Wish, place: Place) -> str:
    """The words of the rubric; "" where a command judges. A file is read now, out of the agent's reach."""
    if not wish.rubric:
        return ""
    if not wish.model:
        raise InvalidInput("The rubric needs a model as its judge: specify one with --judge-model MODEL.")
    from mulligan.models.catalog import open_model  # a prompt's hook has no time for it

    open_model(wish.model)  # says what is wrong with it
    file = Path(place.folder, wish.rubric)
    text = wish.rubric
    with suppress(OSError):  # a long text is no name of a file
        text = file.read_text(encoding="utf-8") if file.is_file() else text
    if not text.strip():
        raise InvalidInput(f"The rubric {wish.rubric!r} is empty: write what must be true.")
    return text


def _label(wish: Wish) -> str:
    """The judge as people see it."""
    if wish.rubric:
        return f"rubric {' '.join(wish.rubric.split())[:120]!r}, by the model {wish.model} (the weakest judge)"
    return f"the tests of {wish.tests}" if wish.tests else wish.check


def _check_protected(names: Sequence[str], place: Place) -> None:
    for name in names:
        path = os.path.normpath(os.path.join(place.folder, name))
        if not path.startswith(os.path.join(place.folder, "")):
            raise InvalidInput(
                f"--protect must be files and folders inside {place.folder}, such as tests/, not {name!r}."
            )
        if not os.path.lexists(path):
            raise InvalidInput(f"--protect lists {name!r}, but {place.folder} has no such file.")


def pause(goals: Goals, goal: Row, who: str) -> None:
    """Let turns end without the check until `resume`."""
    goals.change(goal.id, PAUSED, who)


def resume(goals: Goals, goal: Row, who: str) -> None:
    """Go on with a goal that is paused, or that has ended for a session: tries count anew."""
    goals.leave(goal.id)
    sync(goals, goal.id)
    goals.change(goal.id, ACTIVE, who)


def end(goals: Goals, goal: Row, state: str, who: str) -> None:
    """End a goal. What was kept for it is removed; the record stays."""
    goals.change(goal.id, state, who)
    sync(goals, goal.id)
    tidy(goal)


def tidy(goal: Row) -> None:
    """Remove the state in which a goal was set, and the copy of its tests. The state with the best score stays."""
    shutil.rmtree(Path(home(), "goal-tests", goal.id), ignore_errors=True)
    if goal.settings.get("start"):
        states.drop(goal.folder, f"{goal.id}.1/start")
