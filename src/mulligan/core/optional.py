"""What roles and ports may have besides their protocols, with what holds where they have not.

A plug-in says only what differs: `with_defaults(bank, MeasuringBank).outcome_of(…)` calls the bank's method, or the one
here. A class below is never inherited from.
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
    """See `Adapts`. lessons: a budget for the lessons that later trials are shown, as `strategies.lessons` has it."""

    learns: bool = False
    lessons: object = None

    def decide(self, episode: Episode) -> Decision:
        return Decision()


class MeasuringBank(Bank, Protocol):
    """agent_id: whose lessons. pairs: the query pairs that it keeps."""

    agent_id: str | None = None
    pairs: object = None

    async def outcome_of(self, id: str, success: bool) -> bool:
        """Counts how the task of a recall ended; the outcome that counts."""
        return success

    async def retired_for_harm(self) -> Sequence[str]:
        """Sentences about lessons that were retired for the harm that they did."""
        return ()


class LimitedForesight(Foresight, Protocol):
    """checks: the most checks of an episode. attended: whether a person may be asked."""

    checks: int = 5
    attended: bool = True


class SeeingModel(Model, Protocol):
    """sees: whether it can be sent images."""

    sees: bool = True


class AskingMerging(Merging, Protocol):
    """sampling: how the model is sampled that it asks."""

    sampling: Sampling = Sampling(0.7)


def with_defaults(thing: object, whole: type[T]) -> T:
    """The thing as one of this protocol: what it lacks is that of the protocol."""
    return cast(T, _Completed(thing, _plain(whole)))


@cache
def _plain(whole: type[Any]) -> object:
    return type(whole.__name__, (whole,), {})()


class _Completed:
    def __init__(self, thing: object, plain: object) -> None:
        self._thing, self._plain = thing, plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing if hasattr(self._thing, name) else self._plain, name)
