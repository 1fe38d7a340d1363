"""The protocol of a foresight, which is asked before a critical action, and the description of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mulligan.core.questions import Tool
from mulligan.core.records import Check, Episode, Past, Step


@dataclass(frozen=True)
class Ahead:
    """An action that an actor is about to perform.

    Attributes:
        past: what the strategy shows of the past in this try.
        action: the action, as a trajectory shows it.
        steps: the steps of this try so far.
        declared: whether the environment or the tool declares the action critical.
        tools: what can be called here. Empty in an environment, where an action is a line.
    """

    episode: Episode
    past: Past
    action: str
    steps: tuple[Step, ...] = ()
    declared: bool = False
    tools: tuple[Tool, ...] = ()


@runtime_checkable
class Foresight(Protocol):
    """Checks what could go wrong before a critical action.

    A class may also have the attributes `checks` (the most checks of an episode, 5 without it) and `attended` (False:
    no person is asked).
    """

    def critical(self, ahead: Ahead) -> str:
        """Why the action is to be checked, such as "declared"; "" to perform it unchecked. It asks nobody, and its
        answer depends on the argument alone."""
        ...

    async def check(self, ahead: Ahead, because: str) -> Check:
        """What could go wrong, and what to do. The caller asks the person and sets `action`, `because` and `usage`."""
        ...
