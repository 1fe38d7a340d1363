"""The search over candidates, inside the one state machine: which trial grows next, when it ends, what the roles see.

The rules are written down a second time here, as a search with a list of open nodes, and compared with `due`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.episode import Acted, Evaluated, Event, Move, Reflected, Stopped, advance, due
from mulligan.core.errors import OutOfOrder
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.records import Attempt, Episode, Feedback, Head, Past, Plan, Reflection, Task
from mulligan.core.search import descent

verdicts = st.lists(st.booleans(), min_size=3, max_size=3)
evidence = verdicts.map(lambda passed: Feedback(all(passed), score=sum(passed) / 3, evidence={"passed": passed}))
scored = st.sampled_from([0.0, 0.25, 0.5, 0.75]).map(lambda score: Feedback(False, score=score))
feedbacks = st.one_of(evidence, scored, st.sampled_from([Feedback(False), Feedback(None, "who knows")]))


def new(expansion: int, *, reflects: bool = False) -> Episode:
    return Episode("e.1", Task("t"), plan=Plan(reflects=reflects, expansion=expansion), head=Head(seed=7))


@dataclass
class Textbook:
    """Uniform-cost search as a textbook has it: take the cheapest node that is open, give it all its children."""

    expansion: int
    costs: dict[int, float] = field(default_factory=dict[int, float])
    states: dict[int, object] = field(default_factory=dict[int, object])
    open: list[int] = field(default_factory=list[int])
    closed: set[object] = field(default_factory=set[object])
    wanted: list[int] = field(default_factory=list[int])

    def add(self, number: int, feedback: Feedback) -> None:
        if feedback.passed is False:
            self.costs[number] = 9.0 if feedback.score is None else 1 - feedback.score
            self.states[number] = tuple(feedback.evidence["passed"]) if feedback.evidence else number
            self.open.append(number)

    def parent(self) -> int | None:
        while not self.wanted and self.open:
            node = min(self.open, key=lambda number: (self.costs[number], number))
            self.open.remove(node)
            if self.states[node] not in self.closed:
                self.closed.add(self.states[node])
                self.wanted = [node] * self.expansion
        return self.wanted.pop() if self.wanted else None


@given(st.lists(feedbacks, min_size=1, max_size=30), st.integers(1, 4), st.booleans())
def test_it_is_the_search_of_the_textbook(said: list[Feedback], expansion: int, reflects: bool) -> None:
    episode, textbook = new(expansion, reflects=reflects), Textbook(expansion)
    for number, feedback in enumerate(said, 1):
        parent = None if number == 1 else textbook.parent()
        move = due(episode, Limits(trials=99))
        if number > 1 and parent is None:
            assert not isinstance(move, Move)
            assert move.reason == "exhausted"
            assert advance(episode, Stopped(move)).stop == move
            return
        if number > 1 and reflects and episode.trials[(parent or 0) - 1].reflection is None:
            assert move == Move("reflect", parent or 0)
            episode = advance(episode, Reflected(parent or 0, Reflection(f"of {parent}")))
            move = due(episode, Limits(trials=99))
        assert move == Move("act", number, parent)
        episode = advance(episode, Acted(number, Attempt(f"code {number}")))
        assert episode.trials[-1].parent == parent
        assert due(episode, Limits(trials=1)) == Move("evaluate", number)
        episode = advance(episode, Evaluated(number, feedback))
        textbook.add(number, feedback)
        if feedback.passed:
            stop = due(episode, Limits(trials=99))
            assert not isinstance(stop, Move)
            assert stop.reason == "solved"
            return


@given(st.lists(feedbacks.filter(lambda f: not f.passed), min_size=1, max_size=20), st.integers(1, 3))
def test_trials_count_all_candidates(said: list[Feedback], expansion: int) -> None:
    episode, limits, left = new(expansion), Limits(trials=5), list(said)
    while left and isinstance(move := due(episode, limits), Move):
        event: Event = Acted(move.trial, Attempt("same"))
        episode = advance(episode, event if move.kind == "act" else Evaluated(move.trial, left.pop(0)))
    assert len(episode.trials) <= 5
    if len(episode.trials) == 5 and episode.trials[-1].feedback:
        stop = due(episode, limits)
        assert not isinstance(stop, Move)
        assert stop.reason == "exhausted"  # never "stuck", though all attempts are alike


def test_what_is_not_due_is_refused() -> None:
    episode = new(2, reflects=True)
    with pytest.raises(OutOfOrder, match="act of trial 1"):
        advance(episode, Acted(1, Attempt("x"), parent=4))
    for number, score in ((1, 0.5), (2, 0.25)):
        episode = advance(episode, Acted(number, Attempt("x")))
        episode = advance(episode, Evaluated(number, Feedback(False, score=score)))
        if number == 1:
            with pytest.raises(OutOfOrder, match="reflect of trial 1"):
                advance(episode, Acted(2, Attempt("x")))
            episode = advance(episode, Reflected(1, Reflection("be careful")))
    with pytest.raises(OutOfOrder, match="act of trial 3"):
        advance(episode, Acted(3, Attempt("x"), parent=2))
    with pytest.raises(OutOfOrder, match="act of trial 3"):
        advance(episode, Reflected(2, Reflection("too early")))
    assert advance(episode, Acted(3, Attempt("x"), parent=1)).trials[-1].parent == 1


SCORES = {1: 0.2, 2: 0.2, 3: 0.6, 4: 0.4, 5: 1.0}
"""With two children each: 2 and 3 grow from 1, then 4 and 5 from 3."""


@dataclass
class Player:
    """Plays every role and keeps what it was shown."""

    expects: str = "text"
    reflects: bool = True
    seen: list[tuple[str, list[int], int]] = field(default_factory=list[tuple[str, list[int], int]])
    made: int = 0

    def _look(self, what: str, episode: Episode) -> None:
        self.seen.append((what, [trial.number for trial in episode.trials], episode.head.seed))

    def past(self, episode: Episode) -> Past:
        return Past(episode.trials[-1] if episode.trials else None, episode.reflections)

    async def act(self, episode: Episode, past: Past) -> Attempt:
        self._look(f"act after {', '.join(r.text for r in past.reflections) or 'nothing'}", episode)
        self.made += 1
        return Attempt(str(self.made))

    async def evaluate(self, episode: Episode) -> Feedback:
        self._look("evaluate", episode)
        assert episode.trials[0].number == 1
        score = SCORES[int(episode.trials[-1].attempt.output)]
        return Feedback(score == 1, score=score)

    async def reflect(self, episode: Episode) -> Reflection:
        self._look("reflect", episode)
        return Reflection(f"lesson {episode.trials[-1].number}")


async def test_roles_see_the_line_that_their_trial_descends_from() -> None:
    player = Player()
    roles = Roles(player, player, player, player)  # pyright: ignore[reportArgumentType]

    episode = new(2, reflects=True)

    async def record(event: Event) -> Episode:
        nonlocal episode
        episode = advance(episode, event)
        return episode

    done = await drive(episode, roles, Limits(trials=9), record, Meter())
    assert done.solved
    assert [(trial.number, trial.parent) for trial in done.trials] == [(1, None), (2, 1), (3, 1), (4, 3), (5, 3)]
    assert [r.text for r in done.reflections] == ["lesson 1", "lesson 3"]
    assert player.seen == [
        ("act after nothing", [], 7),
        ("evaluate", [1], 7),
        ("reflect", [1], 7),
        ("act after lesson 1", [1], 7),
        ("evaluate", [1, 2], 7),
        ("act after lesson 1", [1], 8),
        ("evaluate", [1, 3], 8),
        ("reflect", [1, 3], 8),
        ("act after lesson 1, lesson 3", [1, 3], 8),
        ("evaluate", [1, 3, 4], 8),
        ("act after lesson 1, lesson 3", [1, 3], 9),
        ("evaluate", [1, 3, 5], 9),
    ]


def test_a_line_is_seen_as_it_is() -> None:
    episode = replace(new(1), plan=Plan())
    assert descent(episode, 1, 2) is episode
