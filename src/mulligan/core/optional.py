"""Optional members of roles and ports, with their defaults.

A plug-in defines only what differs: `with_defaults(bank, MeasuringBank).outcome_of(…)` calls the bank's method, or else
the one here. Nothing inherits from the classes below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol, TypeVar, cast

from mulligan.core.foresight import Foresight
from mulligan.core.protocols import Bank, Model, Strategy
from mulligan.core.questions import Sampling
from mulligan.core.ranking import Merging
from mulligan.core.records import Decision, Episode

T = TypeVar("T")


class AdaptingStrategy(Strategy, Protocol):
    """See `Adapts`. lessons: a `LessonBudget` for the lessons that later trials are shown, or None."""

    learns: bool = False
    lessons: object = None

    def decide(self, episode: Episode) -> Decision:
        return Decision()


class MeasuringBank(Bank, Protocol):
    """A bank that counts outcomes. agent_id: whose lessons it has. pairs: the query pairs that it keeps."""

    agent_id: str | None = None
    pairs: object = None

    async def outcome_of(self, id: str, success: bool) -> bool:
        """Counts how the task of a recall ended, and returns the outcome that counts."""
        return success

    async def retired_for_harm(self) -> Sequence[str]:
        """Sentences about lessons that were retired because they did harm."""
        return ()


class LimitedForesight(Foresight, Protocol):
    """checks: the most checks of an episode. attended: whether a person may be asked."""

    checks: int = 5
    attended: bool = True


class SeeingModel(Model, Protocol):
    """sees: whether it can be sent images."""

    sees: bool = True


class AskingMerging(Merging, Protocol):
    """sampling: how the model that it asks is sampled."""

    sampling: Sampling = Sampling(0.7)


def with_defaults(thing: object, whole: type[T]) -> T:
    """The object with the protocol's defaults for the members that it lacks."""
    return cast(T, _WithDefaults(thing, _defaults_of(whole)))


def measuring(bank: object) -> MeasuringBank:
    """Returns the bank, with defaults for the additional methods of a bank that counts outcomes."""
    return with_defaults(bank, MeasuringBank)


@cache
def _defaults_of(protocol: type[Any]) -> object:
    return type(protocol.__name__, (protocol,), {})()


class _WithDefaults:
    def __init__(self, plugin: object, defaults: object) -> None:
        self._plugin, self._defaults = plugin, defaults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin if hasattr(self._plugin, name) else self._defaults, name)
