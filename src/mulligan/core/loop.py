"""The loop: act, evaluate, reflect, try again (Shinn et al. 2023, algorithm 1).

The roles make each move, and `record` stores its event before it counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace

from mulligan.core.episode import Acted, Evaluated, Event, Move, Recalled, Reflected, Stopped, due
from mulligan.core.errors import GaveUp, InvalidInput, JournalError, MulliganError, OverBudget, StoreError, described
from mulligan.core.limits import Limits
from mulligan.core.operations import operation
from mulligan.core.optional import AdaptingStrategy, with_defaults
from mulligan.core.protocols import Actor, Bank, Evaluator, Reflector, Strategy
from mulligan.core.records import NO_REFLECTION, Decision, Episode, Stop, Usage
from mulligan.core.search import descent

_path: ContextVar[tuple[str, ...]] = ContextVar("mulligan_path", default=())


class scope:
    """A context manager that adds names to the path of keys recorded in it or, with `anew`, replaces the path."""

    def __init__(self, *names: str, anew: bool = False) -> None:
        self._names, self._anew = names, anew

    def __enter__(self) -> None:
        self._token = _path.set(self._names if self._anew else (*_path.get(), *self._names))

    def __exit__(self, *error: object) -> None:
        _path.reset(self._token)


def path(*names: str) -> str:
    """The current path of keys, followed by `names`."""
    return "/".join((*_path.get(), *names))


class Meter:
    """Counts the usage of one drive of an episode. `before` is the episode's usage before the drive."""

    def __init__(self, before: Usage = Usage()) -> None:
        self.before, self.usage = before, Usage()

    def add(self, usage: Usage) -> None:
        self.usage += usage


@dataclass(frozen=True)
class Roles:
    """The roles of an episode. `bank` is asked only if the episode's plan recalls."""

    actor: Actor
    evaluator: Evaluator
    reflector: Reflector | None
    strategy: Strategy
    bank: Bank | None = None
    top_k: int | None = None


# Records an event of the episode, and returns the episode after it.
Record = Callable[[Event], Awaitable[Episode]]


async def drive(episode: Episode, roles: Roles, limits: Limits, record: Record, meter: Meter) -> Episode:
    """Take the episode to its stop. Every event is recorded before it counts.

    A limit, an error of a role and a cancellation end it with their own stop reason; a cancellation is raised
    again once it is recorded. Raises `StoreError` and `JournalError`: nothing is done that cannot be recorded.
    """
    while isinstance(move := due(episode, limits), Move):
        number = move.trial
        with operation("trial", facts={"trial": number}) if number else nullcontext() as trial:
            while isinstance(move, Move) and move.trial == number:
                event = await _make(move, episode, roles, limits, meter)
                episode = await record(event)
                if isinstance(event, Stopped) and event.stop.reason == "interrupted":
                    raise asyncio.CancelledError
                move = due(episode, limits)
            if trial and number <= len(episode.trials) and (feedback := episode.trials[number - 1].feedback):
                trial.facts |= {"passed": feedback.passed, "score": feedback.score, "evaluator": feedback.source}
                trial.content["verdict"] = feedback.text
    if not episode.stop:
        episode = await record(Stopped(move))
    return episode


async def _make(move: Move, episode: Episode, roles: Roles, limits: Limits, meter: Meter) -> Event:
    """Makes the move, and returns its event: a `Stopped` if it was cut short."""
    start, used = time.monotonic(), meter.usage
    seconds_left = None if limits.seconds is None else max(limits.seconds - episode.seconds, 0.001)
    names = (move.kind,) if move.kind == "recall" else (f"trial.{move.trial}", move.kind)
    timeout = asyncio.timeout(seconds_left) if seconds_left is not None and _can_be_cut_off() else None
    try:
        with scope(*names):
            async with timeout or nullcontext():
                match move.kind:
                    case "recall":
                        assert roles.bank is not None, "the plan recalls, so it needs a bank"
                        event = Recalled(await roles.bank.recall(episode.task, top_k=roles.top_k))
                    case "act":
                        visible = episode if move.parent is None else descent(episode, move.parent, move.trial)
                        decision = _decide(roles.strategy, visible)
                        past = replace(roles.strategy.past(visible), temperature=decision.temperature)
                        attempt = await roles.actor.act(visible, past)
                        attempt = replace(
                            attempt, usage=attempt.usage + meter.usage - used, choice=decision.choice or attempt.choice
                        )
                        event = Acted(move.trial, attempt, move.parent)
                    case "evaluate":
                        feedback = await roles.evaluator.evaluate(descent(episode, move.trial, move.trial))
                        feedback = replace(feedback, usage=feedback.usage + meter.usage - used)
                        event = Evaluated(move.trial, feedback)
                    case "reflect":
                        assert roles.reflector is not None, "the plan reflects, so it needs a reflector"
                        visible = descent(episode, move.trial, move.trial)
                        reflection = NO_REFLECTION
                        wants_reflection = _decide(roles.strategy, visible).reflect
                        if wants_reflection and (reflection := await roles.reflector.reflect(visible)) is not None:
                            reflection = replace(reflection, usage=reflection.usage + meter.usage - used)
                        event = Reflected(move.trial, reflection)
        return replace(event, seconds=time.monotonic() - start)
    except (StoreError, JournalError):
        raise
    except (Exception, asyncio.CancelledError) as error:
        stop = _stop_after(error, move, limits, timeout is not None and timeout.expired())
    return Stopped(stop, meter.usage - used, time.monotonic() - start)


def _stop_after(error: BaseException, move: Move, limits: Limits, expired: bool) -> Stop:
    """The stop for a move that raised. expired: whether the episode's own seconds are used up."""
    match error:
        case OverBudget():
            return Stop("over_budget", str(error))
        case GaveUp():
            return Stop("gave_up", str(error))
        case TimeoutError() if expired:
            return Stop("over_budget", f"{limits.seconds:g} seconds are used up")
        case TimeoutError():
            return Stop("error", f"{move}: {str(error) or 'timed out'}")
        case MulliganError():
            return Stop("error", f"{move}: {error}")
        case asyncio.CancelledError():
            return Stop("interrupted", f"during {move}")
        case _:  # from a user's plug-in: such an episode is an error, never a failure
            return Stop("error", f"{move}: {described(error)}")


def _can_be_cut_off() -> bool:
    """Whether this runs in an asyncio task: only a task can be cancelled by a timeout."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _decide(strategy: Strategy, episode: Episode) -> Decision:
    """The strategy's decision. Raises `GaveUp` if it stops the episode."""
    decision: object = with_defaults(strategy, AdaptingStrategy).decide(episode)
    if not isinstance(decision, Decision):
        raise InvalidInput(f"{type(strategy).__name__}.decide must return a Decision, not {decision!r}.")
    if decision.stop:
        raise GaveUp(decision.stop)
    return decision
