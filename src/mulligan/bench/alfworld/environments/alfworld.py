"""The environment of ALFWorld (Shridhar et al. 2021): a household task in a text game of TextWorld.

Observations and the end of a trial are as in the reference's experiment.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mulligan.bench.alfworld._engine.workers import Worker, workers
from mulligan.plugins import InvalidInput, Outcome, Step, WorldError, require

_PUT = re.compile(r"(?:put|move|place) (.+) (?:in/on|in|on|into|onto|to) (.+)")
_FORMS = ("move {} to {}", "put {} in/on {}", "put {} in {}", "put {} on {}")
"""The same command in different games. Newer games use the first form, older ones and ReAct's examples the second."""

_ARRIVED = re.compile(r"You arrive at loc \d+\. ")


def is_thought(action: str) -> bool:
    return action.lower().startswith(("think:", "think "))


def command(action: str, admissible: Sequence[str]) -> str:
    """The action, with a form of "put" that this game admits."""
    if action not in admissible and (match := _PUT.fullmatch(action)):
        forms = (form.format(*match.groups()) for form in _FORMS)
        return next((form for form in forms if form in admissible), action)
    return action


def beginning(text: str) -> str:
    """The first observation without the welcome, one paragraph a line."""
    return "\n".join(text.strip().split("\n\n")[1:]) or text.strip()


def observation(text: str) -> str:
    return _ARRIVED.sub("", text, count=1) if _ARRIVED.match(text) else text


log = logging.getLogger("mulligan")

ACTION_LIMIT = 100
"""The maximum number of characters of an action in the reason why a trial was halted."""


class AlfWorld:
    """The environment. Its engine runs in a separate process, which later trials use again.

    The answer to a thought ("think: …") is "OK.", and to a command that the engine does not know, "Nothing happens.".

    Args:
        game: the path of a game.tw-pddl file.
        repeats: the number of equal actions in a row, including thoughts, that halts the trial. 0: never halt it.
        seconds: time limit for one answer of the engine. The first answer of a game takes longest.

    Raises:
        InvalidInput: a number is out of range, or the extra is not installed.
    """

    replayable = True

    def __init__(self, game: str, *, repeats: int = 2, seconds: float = 120.0) -> None:
        if repeats == 1 or repeats < 0:
            raise InvalidInput(f"repeats must be 2 or more, or 0 for never, not {repeats}.")
        if seconds <= 0:
            raise InvalidInput(f"seconds must be greater than 0, not {seconds}.")
        for package in ("alfworld", "textworld", "fast_downward"):
            require("ALFWorld needs an extra, which compiles for minutes", package, "alfworld")
        self._game, self._repeats, self._seconds = str(Path(game).expanduser().absolute()), repeats, seconds
        self._worker: Worker | None = None
        self._admissible: list[str] = []
        self._last, self._times = "", 0

    @property
    def pid(self) -> int | None:
        """The id of the engine's process, or None if there is none."""
        return self._worker and self._worker.pid

    async def reset(self) -> str:
        """Start the game. Raises `InvalidInput` for a file that is not a game, `WorldError`."""
        self._last, self._times = "", 0
        if self._worker is None:
            self._worker = await asyncio.to_thread(workers().take, self._game)
        if notice := await self._call(self._worker.open, self._game):
            _warn_once(notice)
        answer = await self._ask({"do": "reset"})
        return beginning(answer["text"])

    async def step(self, action: str) -> Step:
        """Raises `WorldError`."""
        action = action.strip()
        self._times = self._times + 1 if action == self._last else 1
        self._last = action
        outcome, text = Outcome(0.0), "OK."
        if not is_thought(action):
            answer = await self._ask({"do": "step", "command": command(action, self._admissible)})
            text = observation(answer["text"])
            outcome = Outcome(float(answer["won"]), bool(answer["won"]))
        if not outcome.done and self._repeats and self._times >= self._repeats:
            short = action if len(action) <= ACTION_LIMIT else f"{action[:ACTION_LIMIT]}…"
            outcome = Outcome(outcome.reward, halted=f"the same action {self._times} times in a row: {short!r}")
        return Step(action=action, observation=text, outcome=outcome)

    async def close(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await asyncio.to_thread(workers().give, worker)

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise WorldError("The game was not started: call reset before step.")
        answer = await self._call(self._worker.ask, request)
        self._admissible = answer["commands"]
        return answer

    async def _call(self, method: Any, argument: Any) -> Any:
        """Call the worker in a thread. A worker that failed or was interrupted is killed."""
        worker = self._worker
        try:
            return await asyncio.to_thread(method, argument, self._seconds)
        except BaseException:
            self._worker = None
            if worker is not None:
                worker.kill()
            raise


@cache
def _warn_once(notice: str) -> None:
    """Log the notice once instead of for each trial."""
    log.warning(notice)
