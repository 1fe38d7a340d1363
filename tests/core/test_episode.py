"""The state machine under any sequence of events: order, limits, stop reasons, and that nothing is ever lost.

The rules are written down a second time here, from DESIGN.md, and compared with what `due` and `advance` do.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.episode import (
    Acted,
    Evaluated,
    Event,
    Forked,
    Move,
    Rated,
    Recalled,
    Reflected,
    Resumed,
    Revised,
    Stopped,
    advance,
    due,
)
from mulligan.core.errors import InvalidInput, OutOfOrder
from mulligan.core.limits import Limits
from mulligan.core.records import (
    RESUMABLE,
    Attempt,
    Episode,
    Feedback,
    Plan,
    Rating,
    Recall,
    Reflection,
    Stop,
    StopReason,
    Task,
    Trial,
    Usage,
)

REASONS: list[StopReason] = [
    "solved", "unconfirmed", "exhausted", "gave_up", "stuck", "over_budget", "error", "interrupted",
]  # fmt: skip

usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 50),
    output_tokens=st.integers(0, 50),
    calls=st.integers(0, 3),
    cost=st.none() | st.sampled_from([0.0, 0.1, 0.5]),
)
seconds = st.sampled_from([0.0, 0.5, 3.0])
attempts = st.builds(Attempt, output=st.sampled_from(["a", "a ", "b"]), usage=usages)
feedbacks = st.builds(
    Feedback,
    passed=st.sampled_from([True, False, False, False, None]),
    score=st.none() | st.floats(0, 1),
    usage=usages,
)
reflections = st.builds(Reflection, text=st.just("lesson"), usage=usages)
plans = st.builds(Plan, recalls=st.booleans(), reflects=st.booleans())
limits = st.builds(
    Limits,
    trials=st.integers(1, 5),
    tokens=st.none() | st.integers(1, 400),
    cost=st.none() | st.sampled_from([0.1, 1.0]),
    seconds=st.none() | st.sampled_from([1.0, 10.0]),
    identical=st.none() | st.integers(2, 4),
)
numbers = st.integers(0, 6)
events = st.one_of(
    st.builds(Recalled, st.just(Recall("r")), seconds),
    st.builds(Acted, numbers, attempts, st.none() | st.integers(1, 5), seconds),
    st.builds(Evaluated, numbers, feedbacks, seconds),
    st.builds(Reflected, numbers, st.none() | reflections, seconds),
    st.builds(Stopped, st.builds(Stop, st.sampled_from(REASONS)), usages, seconds),
    st.builds(Resumed, seconds),
)


def new(plan: Plan = Plan()) -> Episode:
    return Episode("e.1", Task("t"), plan=plan)


def answer(data: st.DataObject, move: Move) -> Event:
    """Some event that answers this move."""
    took = data.draw(seconds)
    match move.kind:
        case "recall":
            return Recalled(Recall("r"), took)
        case "act":
            return Acted(move.trial, data.draw(attempts), seconds=took)
        case "evaluate":
            return Evaluated(move.trial, data.draw(feedbacks), took)
        case "reflect":
            return Reflected(move.trial, data.draw(st.none() | reflections), took)


def expected(episode: Episode) -> str:
    """What may come next, by the order of things alone."""
    trials = episode.trials
    if episode.stop:
        return "resume" if episode.stop.reason in ("interrupted", "error", "over_budget") else "nothing"
    if not trials:
        return "recall" if episode.plan.recalls and episode.recall is None else "act 1"
    newest = trials[-1]
    if newest.feedback is None:
        return f"evaluate {newest.number}"
    if newest.feedback.passed is True:
        return "stop"
    if newest.feedback.passed is False and episode.plan.reflects and newest.reflection is None:
        return f"reflect {newest.number}"
    return f"act {newest.number + 1}"


def kind(event: Event) -> str:
    match event:
        case Recalled():
            return "recall"
        case Acted(trial):
            return f"act {trial}"
        case Evaluated(trial):
            return f"evaluate {trial}"
        case Reflected(trial):
            return f"reflect {trial}"
        case Stopped():
            return "stop"
        case Resumed():
            return "resume"
        case Forked():
            return "fork"
        case Revised() | Rated():
            return "remark"


def allowed(episode: Episode, event: Event) -> bool:
    if isinstance(event, Stopped):
        return episode.stop is None and (event.stop.reason != "solved" or expected(episode) == "stop")
    return kind(event) == expected(episode)


@given(plans, st.lists(events, max_size=40))
def test_any_sequence_obeys_the_order(plan: Plan, sequence: list[Event]) -> None:
    episode = new(plan)
    for event in sequence:
        before = replace(episode)
        if allowed(episode, event):
            after = advance(episode, event)
            assert after.seconds == episode.seconds + event.seconds
            assert advance(episode, event) == after, "the same event gives the same episode"
        else:
            with pytest.raises(OutOfOrder):
                advance(episode, event)
            after = episode
        assert episode == before, "the episode that was handed in is as it was"
        assert [t.number for t in after.trials] == list(range(1, len(after.trials) + 1))
        assert len(after.trials) - len(episode.trials) in (0, 1)
        episode = after


@given(plans, limits, st.data())
def test_an_episode_obeys_its_limits_and_stops_for_the_right_reason(
    plan: Plan, limits: Limits, data: st.DataObject
) -> None:
    episode = new(plan)
    gave_up = False
    while isinstance(move := due(episode, limits), Move):
        over = reached(episode, limits)
        assert over is None or move.kind == "evaluate", "beyond a limit only an attempt that was made is judged"
        event = answer(data, move)
        gave_up = isinstance(event, Reflected) and event.reflection is None
        episode = advance(episode, event)
    assert len(episode.trials) <= limits.trials
    assert all(trial.feedback for trial in episode.trials), "every attempt was judged"
    if gave_up:
        reason = "gave_up"
    elif episode.trials and episode.trials[-1].feedback and episode.trials[-1].feedback.passed:
        reason = "solved"
    else:
        reason = reached(episode, limits)
    assert move.reason == reason
    assert move.detail
    if plan.reflects:
        drawn = [t.reflection for t in episode.trials[:-1] if t.feedback and t.feedback.passed is False]
        assert all(drawn), "each failed trial but the last got its lesson"
    else:
        assert not episode.reflections


def reached(episode: Episode, limits: Limits) -> str | None:
    """The limit that this episode has reached; the order is which of several is named."""
    trials, used = episode.trials, episode.usage
    outputs = [trial.attempt.output.strip() for trial in trials]
    if len(trials) == limits.trials:
        return "exhausted"
    if (
        limits.identical
        and len(outputs) >= limits.identical
        and outputs[-limits.identical :] == outputs[-1:] * limits.identical
    ):
        return "stuck"
    if limits.tokens is not None and used.input_tokens + used.output_tokens >= limits.tokens:
        return "over_budget"
    if limits.cost is not None and used.cost is not None and used.cost >= limits.cost:
        return "over_budget"
    if limits.seconds is not None and episode.seconds >= limits.seconds:
        return "over_budget"
    return None


@given(plans, limits, st.data())
def test_the_best_attempt_is_never_lost(plan: Plan, limits: Limits, data: st.DataObject) -> None:
    """Whenever it is cut short, `best` is the best of all attempts that were made, and usage is that of all."""
    episode, made, spent = new(plan), list[Attempt](), Usage()
    while isinstance(move := due(episode, limits), Move):
        if data.draw(st.integers(0, 9)) == 0:
            lost = data.draw(usages)
            episode = advance(episode, Stopped(Stop("interrupted"), lost))
            spent += lost
            break
        event = answer(data, move)
        episode = advance(episode, event)
        for part in (getattr(event, name, None) for name in ("attempt", "feedback", "reflection")):
            spent += part.usage if part else Usage()
        made += [event.attempt] if isinstance(event, Acted) else []
    assert [trial.attempt for trial in episode.trials] == made
    assert episode.usage.tokens == spent.tokens
    assert episode.usage.cost == (None if spent.cost is None else pytest.approx(spent.cost))
    best = episode.best
    assert (best is None) == (not made)
    if best:
        judged = [(t.feedback.passed, t.feedback.score) for t in episode.trials if t.feedback]
        mine = (best.feedback.passed, best.feedback.score) if best.feedback else (None, None)
        if any(passed for passed, _ in judged):
            assert mine[0] is True
        else:
            scores = [score for _, score in judged if score is not None]
            assert mine[1] == max(scores, default=None)


@given(plans, st.lists(events, max_size=12), st.sampled_from(REASONS))
def test_only_a_pause_is_resumed_and_it_goes_on_where_it_was(
    plan: Plan, sequence: list[Event], reason: StopReason
) -> None:
    episode = new(plan)
    for event in sequence:
        if allowed(episode, event) and not isinstance(event, Stopped):
            episode = advance(episode, event)
    if episode.stop or (reason == "solved" and expected(episode) != "stop"):
        return
    stopped = advance(episode, Stopped(Stop(reason), Usage(1, 1, 1), 2.0))
    assert due(stopped, Limits()) == Stop(reason)
    if reason in ("interrupted", "error", "over_budget"):
        resumed = advance(stopped, Resumed())
        assert stopped.usage.tokens == episode.usage.tokens + 2
        assert replace(resumed, seconds=episode.seconds) == episode, "its finished calls are counted as they replay"
    else:
        with pytest.raises(OutOfOrder, match="the episode is over"):
            advance(stopped, Resumed())
    assert {"interrupted", "error", "over_budget"} == RESUMABLE


@given(plans, plans, st.lists(events, max_size=12), st.sampled_from(REASONS), limits)
def test_a_fork_goes_on_from_any_end_by_its_own_plan(
    plan: Plan, other: Plan, sequence: list[Event], reason: StopReason, allowed_now: Limits
) -> None:
    episode = new(plan)
    for event in sequence:
        if allowed(episode, event) and not isinstance(event, Stopped):
            episode = advance(episode, event)
    open_ended = replace(episode, stop=None, plan=other)
    if not episode.stop and (reason != "solved" or expected(episode) == "stop"):
        episode = advance(episode, Stopped(Stop(reason), Usage(1, 1, 1)))
    forked = advance(episode, Forked(other))
    assert forked == open_ended, "what was done stays, the end and the cut-off move's usage do not"
    assert due(forked, allowed_now) == due(open_ended, allowed_now)


def test_an_episode_that_runs_is_not_resumed() -> None:
    with pytest.raises(OutOfOrder, match=r"expected act of trial 1, got resumed"):
        advance(new(), Resumed())


def test_nobody_can_claim_that_it_is_solved() -> None:
    failed = replace(new(), trials=(Trial(1, Attempt("a"), Feedback(False)),))
    with pytest.raises(OutOfOrder, match=r"expected reflect of trial 1, got stop: solved"):
        advance(failed, Stopped(Stop("solved")))


def test_what_was_expected_is_reported() -> None:
    with pytest.raises(OutOfOrder) as caught:
        advance(new(Plan(recalls=True)), Acted(1, Attempt("a")))
    assert (caught.value.expected, caught.value.got) == ("recall", "act of trial 1")
    with pytest.raises(OutOfOrder, match="expected act of trial 1, got evaluate of trial 1"):
        advance(new(), Evaluated(1, Feedback(True)))


def test_a_trial_grows_from_the_one_before_unless_told() -> None:
    first = advance(advance(new(Plan(reflects=False)), Acted(1, Attempt("a"))), Evaluated(1, Feedback(False)))
    second = advance(advance(first, Acted(2, Attempt("b"))), Evaluated(2, Feedback(False)))
    assert [t.parent for t in second.trials] == [None, 1]
    assert advance(second, Acted(3, Attempt("c"), parent=1)).trials[-1].parent == 1


def test_the_stop_says_which_limit() -> None:
    trial = Trial(1, Attempt("a", usage=Usage(6, 4, 1, 0.25)), Feedback(None))
    two = replace(new(), trials=(trial, replace(trial, number=2)), seconds=1.5)
    stops: list[tuple[Limits, StopReason, str]] = [
        (Limits(trials=2), "exhausted", "2 of 2 tries used"),
        (Limits(identical=2), "stuck", "the last 2 attempts are identical"),
        (Limits(tokens=20), "over_budget", "20 of 20 tokens used"),
        (Limits(cost=0.5), "over_budget", "$0.5000 of $0.5000 spent"),
        (Limits(seconds=1.5), "over_budget", "1.5 of 1.5 seconds used"),
    ]
    for limits, reason, detail in stops:
        assert due(two, limits) == Stop(reason, detail)
    assert due(two, Limits(tokens=21, cost=0.51, seconds=1.6)) == Move("act", 3)


@each_row(
    "wrong",
    [
        {"trials": 0},
        {"trials": None},
        {"trials": 1.5},
        {"trials": True},
        {"tokens": 0},
        {"tokens": "9"},
        {"cost": 0},
        {"cost": -1.0},
        {"cost": math.nan},
        {"seconds": math.inf},
        {"seconds": 0.0},
        {"identical": 1},
    ],
)
def test_limits_that_can_never_work_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=f"The limit '{next(iter(wrong))}' must be"):
        Limits(**wrong)


def test_a_limit_may_be_as_large_as_it_likes() -> None:
    assert Limits(trials=10**400, tokens=10**400).tokens == 10**400


@given(plans, st.lists(events, max_size=20), st.integers(-1, 6), st.floats(0, 1))
def test_what_a_person_says_changes_no_move(plan: Plan, sequence: list[Event], number: int, score: float) -> None:
    episode = new(plan)
    for event in sequence:
        episode = advance(episode, event) if allowed(episode, event) else episode
    rated, revised = Rated(Rating(score, trial=number)), Revised(number, Reflection("Mine."))
    if not 1 <= number <= len(episode.trials):
        for remark in (rated, revised):
            with pytest.raises(OutOfOrder):
                advance(episode, remark)
        return
    after = advance(episode, rated)
    assert replace(after, ratings=()) == episode
    assert expected(after) == expected(episode)
    trial = advance(episode, revised).trials[number - 1]
    assert trial == replace(episode.trials[number - 1], reflection=Reflection("Mine."))
