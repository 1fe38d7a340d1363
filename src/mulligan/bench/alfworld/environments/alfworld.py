"""A game of ALFWorld (Shridhar et al. 2021) through TextWorld: a household in words, and a thing to be done in it.

Source: the reference's experiment (1.3), its observations and its end of a trial included.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mulligan.bench.alfworld._engine.workers import Worker, workers
from mulligan.core.errors import InvalidInput, WorldError
from mulligan.core.records import Outcome, Step

_PUT = re.compile(r"(?:put|move|place) (.+) (?:in/on|in|on|into|onto|to) (.+)")
_FORMS = ("move {} to {}", "put {} in/on {}", "put {} in {}", "put {} on {}")
"""Newer games say the first, older ones and ReAct's examples the second."""

_ARRIVED = re.compile(r"You arrive at loc \d+\. ")


def is_thought(action: str) -> bool:
    return action.lower().startswith(("think:", "think "))


def command(action: str, admissible: Sequence[str]) -> str:
    """The action as this engine has it: its own verb form, where another was used."""
    if action not in admissible and (found := _PUT.fullmatch(action)):
        forms = (form.format(*found.groups()) for form in _FORMS)
        return next((form for form in forms if form in admissible), action)
    return action


def beginning(text: str) -> str:
    """The first observation: without the welcome, each other paragraph on a line."""
    return "\n".join(text.strip().split("\n\n")[1:]) or text.strip()


def observation(text: str) -> str:
    return _ARRIVED.sub("", text, count=1) if _ARRIVED.match(text) else text


log = logging.getLogger("mulligan")

NEEDS = 'ALFWorld needs an extra: pip install "mulligan[alfworld]" (it compiles for minutes).'
SHOWN = 100
"""Characters of an action in the reason why a trial was halted."""


class AlfWorld:
    """`game`: the path of a game.tw-pddl. The engine runs in a process of its own, which later trials use again.

    A thought ("think: …") is answered "OK." and changes nothing; what the engine does not know, "Nothing happens.".
    repeats: so many equal actions in a row, thoughts included, halt the trial, the last of them still done; 0: never.
    seconds: how long the engine may take for one answer; the first of a game takes longest.
    Raises `InvalidInput` without the extra.
    """

    def __init__(self, game: str, *, repeats: int = 2, seconds: float = 120.0) -> None:
        if repeats == 1 or repeats < 0:
            raise InvalidInput(f"repeats must be 2 or more, or 0 for never, not {repeats}.")
        if seconds <= 0:
            raise InvalidInput(f"seconds must be above 0, not {seconds}.")
        if any(find_spec(package) is None for package in ("alfworld", "textworld", "fast_downward")):
            raise InvalidInput(NEEDS)
        self._game, self._repeats, self._seconds = str(Path(game).expanduser().absolute()), repeats, seconds
        self._worker: Worker | None = None
        self._admissible: list[str] = []
        self._last, self._times = "", 0

    @property
    def pid(self) -> int | None:
        """Of the process that the engine runs in; None where it has none."""
        return self._worker and self._worker.pid

    async def reset(self) -> str:
        """Raises `InvalidInput` for what is no game, `WorldError`."""
        self._last, self._times = "", 0
        if self._worker is None:
            self._worker = await asyncio.to_thread(workers().take, self._game)
        if notice := await self._held(self._worker.open, self._game):
            _warned(notice)
        answer = await self._asked({"do": "reset"})
        return beginning(answer["text"])

    async def step(self, action: str) -> Step:
        """Raises `WorldError`."""
        action = action.strip()
        self._times = self._times + 1 if action == self._last else 1
        self._last = action
        outcome, text = Outcome(0.0), "OK."
        if not is_thought(action):
            answer = await self._asked({"do": "step", "command": command(action, self._admissible)})
            text = observation(answer["text"])
            outcome = Outcome(float(answer["won"]), bool(answer["won"]))
        if not outcome.done and self._repeats and self._times >= self._repeats:
            shown = action if len(action) <= SHOWN else f"{action[:SHOWN]}…"
            outcome = Outcome(outcome.reward, halted=f"the same action {self._times} times in a row: {shown!r}")
        return Step(action=action, observation=text, outcome=outcome)

    async def close(self) -> None:
        if self._worker is not None:
            worker, self._worker = self._worker, None
            await asyncio.to_thread(workers().give, worker)

    async def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._worker is None:
            raise WorldError("A game is reset before it is played.")
        answer = await self._held(self._worker.ask, request)
        self._admissible = answer["commands"]
        return answer

    async def _held(self, ask: Any, what: Any) -> Any:
        """One call of the worker. A worker that was left in the middle of an answer, or failed, is not used again."""
        worker = self._worker
        try:
            return await asyncio.to_thread(ask, what, self._seconds)
        except BaseException:
            self._worker = None
            if worker is not None:
                worker.kill()
            raise


@cache
def _warned(notice: str) -> None:
    """Once, and not for each trial."""
    log.warning(notice)
