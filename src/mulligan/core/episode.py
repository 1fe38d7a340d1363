"""The state machine of an episode, without I/O: the next move, and how an event changes the episode.

Everything that drives an episode (the loop, an MCP client, LangGraph's nodes, a search) drives this one.
No clock is read: an event brings the seconds that it took.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from mulligan.core.errors import OutOfOrder
from mulligan.core.limits import Limits
from mulligan.core.records import Attempt, Episode, Feedback, Plan, Rating, Recall, Reflection, Stop, Trial, Usage
from mulligan.core.search import next_parent

R = TypeVar("R", Episode, Trial)


@dataclass(frozen=True)
class Move:
    """What is due: `kind`, and the number of the trial that it belongs to (0 for recall).

    parent: of an act in a search, the trial that the new one grows from; None: the one before it.
    """

    kind: Literal["recall", "act", "evaluate", "reflect"]
    trial: int
    parent: int | None = None

    def __str__(self) -> str:
        return self.kind if self.kind == "recall" else f"{self.kind} of trial {self.trial}"


@dataclass(frozen=True)
class Recalled:
    """The bank recalled lessons.

    Attributes:
        seconds: the time that this took.
    """

    recall: Recall
    seconds: float = 0.0


@dataclass(frozen=True)
class Acted:
    """The actor made an attempt.

    Attributes:
        parent: the trial from which a search continued.
    """

    trial: int
    attempt: Attempt
    parent: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Evaluated:
    """The evaluator judged a trial."""

    trial: int
    feedback: Feedback
    seconds: float = 0.0


@dataclass(frozen=True)
class Reflected:
    """The reflector wrote a reflection. None: the reflector gave up, which ends the episode."""

    trial: int
    reflection: Reflection | None
    seconds: float = 0.0


@dataclass(frozen=True)
class Stopped:
    """The episode ended or was paused. `usage` is the usage of the interrupted move."""

    stop: Stop
    usage: Usage = Usage()
    seconds: float = 0.0


@dataclass(frozen=True)
class Resumed:
    """An episode that was stopped by an interruption, an error or a budget goes on.

    What the move that was cut short had used is taken off again: its finished calls are counted as they are replayed.
    """

    seconds: float = 0.0


@dataclass(frozen=True)
class Forked:
    """An episode that is a copy of another goes on from here by itself, by this plan, whatever stopped the other."""

    plan: Plan
    seconds: float = 0.0


@dataclass(frozen=True)
class Revised:
    """A person changed the reflection of a trial after it was drawn. It can come at any time, and is not a move."""

    trial: int
    reflection: Reflection
    seconds: float = 0.0


@dataclass(frozen=True)
class Rated:
    """A person rated the episode or a lesson of it. It can come at any time, and is not a move."""

    rating: Rating
    seconds: float = 0.0


Remark: TypeAlias = Revised | Rated
Event: TypeAlias = Recalled | Acted | Evaluated | Reflected | Stopped | Resumed | Forked | Remark
"""The events of an episode. An `Observer` receives each one."""


def due(episode: Episode, limits: Limits) -> Move | Stop:
    """Returns the next move under these limits, or why the episode is over.

    A finished attempt is always judged, so that a budget never loses the best attempt. If judging needs a model, the
    gate still enforces the budget.
    """
    move = _next(episode)
    if isinstance(move, Stop) or move.kind == "evaluate":
        return move
    return _limit_reached(episode, limits) or move


def advance(episode: Episode, event: Event) -> Episode:
    """Returns the episode after this event.

    Raises:
        OutOfOrder: a different event was due.
    """
    expected = _next(episode)
    seconds = episode.seconds + event.seconds
    if isinstance(event, Revised | Rated):
        return _remarked(episode, event)
    if isinstance(event, Forked):
        return _changed(episode, seconds=seconds, stop=None, lost=Usage(), plan=event.plan, ratings=())
    if isinstance(event, Resumed):
        if not isinstance(episode.stop, Stop) or not episode.stop.resumable:
            raise OutOfOrder(_described(expected), "resumed")
        return _changed(episode, seconds=seconds, stop=None, lost=Usage())
    if episode.stop:
        raise OutOfOrder(_described(expected), _described(event))
    if isinstance(event, Stopped):
        if event.stop.reason == "solved" and not isinstance(expected, Stop):
            raise OutOfOrder(_described(expected), _described(event))
        return _grown(episode, event.usage, seconds=seconds, stop=event.stop, lost=episode.lost + event.usage)
    if isinstance(expected, Stop) or not _answers(event, expected, episode.plan.expansion is not None):
        raise OutOfOrder(_described(expected), _described(event))
    match event:
        case Recalled(recall):
            return _changed(episode, seconds=seconds, recall=recall)
        case Acted(number, attempt, parent):
            before = expected.parent or (episode.trials[-1].number if episode.trials else None)
            trial = Trial(number, attempt, parent=before if parent is None else parent)
            return _grown(episode, attempt.usage, seconds=seconds, trials=(*episode.trials, trial))
        case Evaluated(_, feedback):
            used, trial = feedback.usage, _changed(episode.trials[-1], feedback=feedback)
        case Reflected(number, reflection):
            if reflection is None:
                return _changed(episode, seconds=seconds, stop=Stop("gave_up", "the reflector saw no way to continue"))
            used, trial = reflection.usage, _changed(episode.trials[number - 1], reflection=reflection)
    return _grown(episode, used, seconds=seconds, trials=_with_trial(episode, trial))


def _with_trial(episode: Episode, trial: Trial) -> tuple[Trial, ...]:
    return (*episode.trials[: trial.number - 1], trial, *episode.trials[trial.number :])


def _remarked(episode: Episode, event: Remark) -> Episode:
    """The episode with a person's rating or revision. Raises `OutOfOrder` for a trial that it does not have."""
    number = event.trial if isinstance(event, Revised) else event.rating.trial
    if number is not None and not 1 <= number <= len(episode.trials):
        raise OutOfOrder(f"a trial from 1 to {len(episode.trials)}", _described(event))
    if isinstance(event, Rated):
        return _changed(episode, ratings=(*episode.ratings, event.rating))
    trial = _changed(episode.trials[event.trial - 1], reflection=event.reflection)
    return _changed(episode, trials=_with_trial(episode, trial))


def newest_state(episode: Episode) -> str | None:
    """The state in which the newest trial left the workspace; None without a trial or a workspace."""
    artifacts = episode.trials[-1].attempt.artifacts if episode.trials else ()
    return next((artifact.ref for artifact in artifacts if artifact.kind == "git"), None)


def _next(episode: Episode) -> Move | Stop:
    """The next move, ignoring limits."""
    if episode.stop:
        return episode.stop
    if not episode.trials:
        recalls = episode.plan.recalls and episode.recall is None
        return Move("recall", 0) if recalls else Move("act", 1)
    newest = episode.trials[-1]
    if newest.feedback is None:
        return Move("evaluate", newest.number)
    if newest.feedback.passed:
        return Stop("solved", f"trial {newest.number} passed")
    if episode.plan.expansion is not None:
        return _next_in_search(episode, episode.plan.expansion)
    failed = newest.feedback.passed is False  # what could not be judged teaches nothing: design/002
    if failed and episode.plan.reflects and newest.reflection is None:
        return Move("reflect", newest.number)
    return Move("act", newest.number + 1)


def _next_in_search(episode: Episode, expansion: int) -> Move | Stop:
    """The next move of a search whose newest trial has not passed."""
    parent = next_parent(episode.trials, expansion)
    if parent is None:
        return Stop("exhausted", "no attempt is left to build on")
    if episode.plan.reflects and parent.reflection is None:
        return Move("reflect", parent.number)
    return Move("act", episode.trials[-1].number + 1, parent.number)


def _limit_reached(episode: Episode, limits: Limits) -> Stop | None:
    """The stop for a limit that is reached, if any."""
    if len(episode.trials) >= limits.trials:
        return Stop("exhausted", f"{limits.trials} of {limits.trials} {'try' if limits.trials == 1 else 'tries'} used")
    same = limits.identical if episode.plan.expansion is None else None  # siblings may be alike
    if same is not None and len(episode.trials) >= same:
        newest = (trial.attempt for trial in episode.trials[-same:])
        distinct = {(a.output.strip(), tuple(step.action for step in a.steps)) for a in newest}
        if len(distinct) == 1:
            return Stop("stuck", f"the last {same} attempts are identical")
    if limits.tokens is not None and (used := episode.usage.tokens) >= limits.tokens:
        return Stop("over_budget", f"{used} of {limits.tokens} tokens used")
    if limits.cost is not None and (spent := episode.usage.cost or 0.0) >= limits.cost:
        return Stop("over_budget", f"${spent:.4f} of ${limits.cost:.4f} spent")
    if limits.seconds is not None and episode.seconds >= limits.seconds:
        return Stop("over_budget", f"{episode.seconds:.1f} of {limits.seconds:g} seconds used")
    return None


def _changed(record: R, **changes: Any) -> R:
    """As `dataclasses.replace`, but three times as fast: an episode has many fields."""
    fields = {**vars(record), **changes}
    fields.pop("usage", None)  # cached by Episode.usage
    return type(record)(**fields)


def _grown(episode: Episode, used: Usage, **changes: Any) -> Episode:
    """The episode with these changes and with `used` added to its usage, so that no event sums up all trials again."""
    grown = _changed(episode, **changes)
    vars(grown)["usage"] = episode.usage + used
    return grown


def _answers(event: Recalled | Acted | Evaluated | Reflected, expected: Move, search: bool) -> bool:
    """Whether the event answers this move. In a search, the new trial must grow from the trial that is due."""
    if search and isinstance(event, Acted) and event.parent not in (None, expected.parent):
        return False
    settled = _settles(event)
    return (settled.kind, settled.trial) == (expected.kind, expected.trial)


def _settles(event: Recalled | Acted | Evaluated | Reflected) -> Move:
    """The move that this event answers."""
    match event:
        case Recalled():
            return Move("recall", 0)
        case Acted(trial):
            return Move("act", trial)
        case Evaluated(trial):
            return Move("evaluate", trial)
        case Reflected(trial):
            return Move("reflect", trial)


def _described(what: Move | Stop | Event) -> str:
    match what:
        case Move():
            return str(what)
        case Stop(reason):
            return f"nothing (the episode is over: {reason})"
        case Stopped(stop):
            return f"stop: {stop.reason}"
        case Resumed():
            return "resumed"
        case Forked():
            return "forked"
        case Revised(trial):
            return f"another reflection of trial {trial}"
        case Rated():
            return "a rating"
        case _:
            return str(_settles(what))
