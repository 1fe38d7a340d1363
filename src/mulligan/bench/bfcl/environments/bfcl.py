"""The environment of BFCL's multi-turn tasks: a user who speaks in turns, and functions of simulated services.

An action is one or more calls, or words to the user, which end the turn. The services run in the sandbox. No process
keeps their state: each step repeats the earlier calls, which takes less time than a model's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mulligan.bench.bfcl._wheel import Dialogue, dialogues, run_services, wheel_of
from mulligan.plugins import InvalidInput, Json, Outcome, Sandbox, Step, Tool

STEPS = 20
"""The maximum number of steps in a turn, as in BFCL."""
PREFIX = "multi_turn_"


class BfclWorld:
    """The environment.

    Args:
        files: the wheels of BFCL and of the packages that it imports.
        task: the id of the task, such as "multi_turn_base_0".
    """

    replayable = True

    def __init__(self, *, files: Sequence[str], task: str, sandbox: Sandbox) -> None:
        self._wheels, self._task, self._sandbox = [Path(file) for file in files], task, sandbox
        self._actions = list[str]()

    async def reset(self) -> str:
        """Begin the first turn. Raises `InvalidInput` for an unknown task, or files without BFCL's wheel."""
        self._actions = []
        return self._dialogue.opening(0)

    async def step(self, action: str) -> Step:
        """Raises `WorldError` where the services fail."""
        self._actions.append(action)
        turns = self._dialogue.in_turns(self._actions)
        turn, steps = len(turns) - 1, turns[-1]
        if turn >= len(self._dialogue.turns):
            return Step(action=action, observation="The user is done.", outcome=Outcome(done=True))
        if not steps:
            return Step(action=action, observation=self._dialogue.opening(turn), outcome=Outcome())
        calls: list[Json] = [list(each) for of_turn in turns for each in of_turn]
        (results,) = await run_services(
            self._sandbox, self._wheels, [{"entry": dict(self._dialogue.entry), "calls": calls}]
        )
        halted = f"more than {STEPS} steps in turn {turn + 1}" if len(steps) > STEPS else None
        return Step(action=action, observation="\n".join(results), outcome=Outcome(halted=halted))

    async def offer(self, actions: Sequence[str]) -> Sequence[Tool]:
        """The available functions after these actions, because some tasks add functions in a later turn."""
        return self._dialogue.functions_in(len(self._dialogue.in_turns(actions)) - 1)

    async def close(self) -> None:
        pass

    @property
    def _dialogue(self) -> Dialogue:
        category = self._task.removeprefix(PREFIX).rpartition("_")[0]
        dialogue = dialogues(wheel_of(self._wheels), category).get(self._task)
        if dialogue is None:
            raise InvalidInput(f"BFCL has no multi-turn task {self._task!r}.")
        return dialogue
