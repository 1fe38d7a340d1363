"""The protocol of a foresight, which is asked before a critical action, and the description of the action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mulligan.core.questions import Tool
from mulligan.core.records import Check, Episode, Past, Step


@dataclass(frozen=True)
class Ahead:
    """An action that an actor is about to perform, for a foresight.

    Attributes:
        past: what this try sees of the past.
        action: the action, as a trajectory shows it.
        steps: the steps of this try so far.
        declared: whether the environment or the tool declares the action critical.
        tools: the tools that can be called. Empty in an environment, in which an action is a line of text.
    """

    episode: Episode
    past: Past
    action: str
    steps: tuple[Step, ...] = ()
    declared: bool = False
    tools: tuple[Tool, ...] = ()


@runtime_checkable
class Foresight(Protocol):
    """Checks what could go wrong, before a critical action.

    A class can also have the attributes `checks` (the maximum number of checks in an episode, default: 5) and
    `attended` (False: no person is asked).
    """

    def critical(self, ahead: Ahead) -> str:
        """Returns why the action must be checked, such as "declared"; "" to perform it unchecked.

        This asks neither a model nor a person, and the result depends only on the argument."""
        ...

    async def check(self, ahead: Ahead, because: str) -> Check:
        """Returns what could go wrong, and what to do.

        The caller asks the person and sets `action`, `because` and `usage`.
        """
        ...
