"""A match against a fencer. Each round shows his stance, which decides the open side, and takes one strike."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.bench.streams._drawing import generator
from mulligan.bench.streams.reader.game import OPEN, SIDES
from mulligan.plugins import Outcome, Step, parse_action

ROUNDS = 6
STANCES = ("heron", "otter", "badger", "swift", "lynx", "toad", "raven", "hare", "bison", "viper", "crane", "mole")


def openings(seed: int, changed: bool) -> Mapping[str, str]:
    """The open side for each stance. The change gives every stance another side."""
    return {stance: generator("game", seed, stance).sample(SIDES, 2)[changed] for stance in STANCES}


class Game:
    """The environment of one match.

    Args:
        seed: of the stream.
        number: of the task.
        changed: whether the openings after the change apply.
        kinds: the number of stances.
    """

    replayable = True

    def __init__(self, *, seed: int, number: int, changed: bool = False, kinds: int = len(STANCES)) -> None:
        self._openings = openings(seed, changed)
        self._stances = generator("match", seed, number).choices(STANCES[:kinds], k=ROUNDS)
        self._hits, self._round = 0, 0

    async def reset(self) -> str:
        self._hits, self._round = 0, 0
        return self._stance()

    async def step(self, action: str) -> Step:
        observation = self._answer(action)
        return Step(action=action, observation=observation, outcome=Outcome(self._hits / ROUNDS, self._round == ROUNDS))

    async def close(self) -> None:
        pass

    def _stance(self) -> str:
        return f"Round {self._round + 1} of {ROUNDS}. Orlo takes the stance '{self._stances[self._round]}'."

    def _answer(self, line: str) -> str:
        """The observation after an action."""
        action = parse_action(line)
        if self._round == ROUNDS:
            return "The match is over."
        side = action.argument.lower().strip("'\" ") if action and action.name == "strike" else ""
        if side not in SIDES:
            return f"Invalid action. Write strike[side] with one of these sides: {', '.join(SIDES)}."
        stance = self._stances[self._round]
        hit = side == self._openings[stance]
        self._hits, self._round = self._hits + hit, self._round + 1
        result = f"{'Hit' if hit else 'Missed'}: {OPEN.state(stance=stance, side=self._openings[stance])}."
        end = f"The match is over: {self._hits} of {ROUNDS} strikes hit."
        return f"{result}\n{end if self._round == ROUNDS else self._stance()}"
