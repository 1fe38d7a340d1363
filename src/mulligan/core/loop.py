"""The loop: act, evaluate, reflect, try again (Shinn et al. 2023, algorithm 1).

The roles act; `record` keeps each event before it counts.
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
    """A context manager: everything recorded inside is keyed below these names; with `anew`, below no others."""

    def __init__(self, *names: str, anew: bool = False) -> None:
        self._names, self._anew = names, anew

    def __enter__(self) -> None:
        self._token = _path.set(self._names if self._anew else (*_path.get(), *self._names))

    def __exit__(self, *error: object) -> None:
        _path.reset(self._token)


def path(*names: str) -> str:
    """The current path, with `names` below it."""
    return "/".join((*_path.get(), *names))


class Meter:
    """What the gate has counted so far in this drive of the episode, and what the episode had used before it."""

    def __init__(self, before: Usage = Usage()) -> None:
        self.before, self.usage = before, Usage()

    def add(self, usage: Usage) -> None:
        self.usage += usage


@dataclass(frozen=True)
class Roles:
    """Who plays in an episode. `bank` is asked only when the episode's plan recalls."""

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
    again once it is recorded. Raises `StoreError` and `JournalError`: what cannot be kept is not done.
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
    """The event that answers this move; a move that is cut short answers with a stop."""
    began, used = time.monotonic(), meter.usage
    left = None if limits.seconds is None else max(limits.seconds - episode.seconds, 0.001)
    here = (move.kind,) if move.kind == "recall" else (f"trial.{move.trial}", move.kind)
    clock = asyncio.timeout(left) if left is not None and _can_be_cut_off() else None
    try:
        with scope(*here):
            async with clock or nullcontext():
                match move.kind:
                    case "recall":
                        assert roles.bank is not None, "the plan recalls, so a bank must be there"
                        event = Recalled(await roles.bank.recall(episode.task, top_k=roles.top_k))
                    case "act":
                        seen = episode if move.parent is None else descent(episode, move.parent, move.trial)
                        decision = _decide(roles.strategy, seen)
                        past = replace(roles.strategy.past(seen), temperature=decision.temperature)
                        attempt = await roles.actor.act(seen, past)
                        attempt = replace(
                            attempt, usage=attempt.usage + meter.usage - used, choice=decision.choice or attempt.choice
                        )
                        event = Acted(move.trial, attempt, move.parent)
                    case "evaluate":
                        feedback = await roles.evaluator.evaluate(descent(episode, move.trial, move.trial))
                        feedback = replace(feedback, usage=feedback.usage + meter.usage - used)
                        event = Evaluated(move.trial, feedback)
                    case "reflect":
                        assert roles.reflector is not None, "the plan reflects, so a reflector must be there"
                        seen = descent(episode, move.trial, move.trial)
                        reflection = NO_REFLECTION
                        asked = _decide(roles.strategy, seen).reflect
                        if asked and (reflection := await roles.reflector.reflect(seen)) is not None:
                            reflection = replace(reflection, usage=reflection.usage + meter.usage - used)
                        event = Reflected(move.trial, reflection)
        return replace(event, seconds=time.monotonic() - began)
    except (StoreError, JournalError):
        raise
    except (Exception, asyncio.CancelledError) as error:
        stop = _stop_after(error, move, limits, clock is not None and clock.expired())
    return Stopped(stop, meter.usage - used, time.monotonic() - began)


def _stop_after(error: BaseException, move: Move, limits: Limits, expired: bool) -> Stop:
    """How a move that raised ends the episode. expired: the episode's own seconds are used up."""
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
        case _:  # a plug-in of the user's: an episode that erred is an error, never a failure
            return Stop("error", f"{move}: {described(error)}")


def _can_be_cut_off() -> bool:
    """Whether a task runs here; synchronous code that is run to its end is not cut off."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _decide(strategy: Strategy, episode: Episode) -> Decision:
    """What the strategy decides here. Raises `GaveUp` when it stops the episode."""
    decision: object = with_defaults(strategy, AdaptingStrategy).decide(episode)
    if not isinstance(decision, Decision):
        raise InvalidInput(f"{type(strategy).__name__}.decide must return a Decision, not {decision!r}.")
    if decision.stop:
        raise GaveUp(decision.stop)
    return decision
