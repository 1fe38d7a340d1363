"""Whatever scores, results, limits and failures there are: the graph's record is what core's state machine gives."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from reflexion_graphs import QUESTION, a_graph, asking, on_thread, revised

from mulligan.core.codec import to_json
from mulligan.core.episode import Acted, Evaluated, Event, Reflected, Stopped, advance, due
from mulligan.core.errors import GraphError
from mulligan.core.limits import Limits
from mulligan.core.records import Attempt, Episode, Feedback, Head, Reflection, Step, Stop, Task, Usage
from mulligan.langgraph import ScriptedChat, episode_of
from mulligan.recording.ledger import with_quality
from mulligan.store.sqlite import SqliteStore
from mulligan.text.plain import count


@dataclass(frozen=True)
class Story:
    """scores: of the revisions, and what the tool gives for each answer (None: it raises). fails: the calls of model and
    tool, counted together, at which the run breaks off once. wrong: the calls of the model that fit nothing at first."""

    steps: int
    good: float
    scores: tuple[float, ...]
    results: tuple[str | None, ...]
    fails: frozenset[int]
    wrong: frozenset[int]
    asynchronous: bool


SCORES = st.floats(0, 10).map(lambda score: round(score, 1))
STORIES = st.builds(
    Story,
    steps=st.integers(1, 7),
    good=SCORES,
    scores=st.lists(SCORES, min_size=8, max_size=8).map(tuple),
    results=st.lists(st.none() | st.sampled_from(["[]", "rows", "null"]), min_size=8, max_size=8).map(tuple),
    fails=st.frozensets(st.integers(1, 20), max_size=4),
    wrong=st.frozensets(st.integers(1, 9), max_size=2),
    asynchronous=st.booleans(),
)


class Broken(GraphError):
    """What no answer of a model can mend: the run breaks off."""


def told(story: Story, n: int) -> tuple[str, str]:
    """What the tool's message says of answer n, and its status."""
    result = story.results[n - 1]
    return (result, "success") if result is not None else (f"ValueError: no {n}", "error")


def by_hand(story: Story) -> tuple[Episode, int]:
    """The episode, and the calls that it takes, by the rules alone."""
    limits = Limits(trials=max(story.steps - 1, 1), identical=None)
    episode, steps = Episode("", Task(QUESTION)), 1

    def keep(event: Event) -> None:
        nonlocal episode
        episode = advance(episode, with_quality(event, episode))

    for n in itertools.count(1):
        keep(Acted(n, Attempt(f"answer {n}", (Step(action=f"answer {n}", observation=told(story, n)[0]),))))
        if story.steps == 1:
            keep(Evaluated(n, Feedback(None, "no step was left to judge it", source="revise")))
        else:
            steps, score = steps + 1, story.scores[n - 1]
            last = score >= story.good or n == limits.trials  # no reflection will hold the critique
            said = f"scored {score:g} of 10 by the model itself" + (f": lesson {n}" if last else "")
            keep(Evaluated(n, Feedback(score >= story.good, said, score, "revise")))
        move = due(episode, limits)
        if isinstance(move, Stop):
            exhausted = Stop("exhausted", f"{steps} of {count(story.steps, 'step')} used")
            keep(Stopped(exhausted if move.reason == "exhausted" else move))
            return episode, steps
        keep(Reflected(n, Reflection(f"lesson {n}")))
    raise AssertionError


class World:
    """The model and the tool of a story; what breaks off breaks off once."""

    def __init__(self, story: Story) -> None:
        self.story, self.at, self.calls, self.ran = story, 0, 0, list[str]()
        self.fails, self.wrong = set(story.fails), set(story.wrong)

    def answer(self, messages: list[BaseMessage]) -> Any:
        self._passes()
        self.calls += 1
        if self.calls in self.wrong:
            self.wrong.discard(self.calls)
            return "This fits nothing."
        n = sum(isinstance(message, ToolMessage) and "cannot be used" not in message.text for message in messages)
        if not n:
            return {"answer": "answer 1", "reflection": ""}
        return revised(self.story.scores[n - 1], f"answer {n + 1}", f"lesson {n}")

    def tool(self, answer: str) -> str:
        self._passes()
        self.ran.append(answer)
        result = self.story.results[int(answer.split()[1]) - 1]
        if result is None:
            raise ValueError(f"no {answer.split()[1]}")
        return result

    def _passes(self) -> None:
        self.at += 1
        if self.at in self.fails:
            self.fails.discard(self.at)
            raise Broken


def bare(episode: Episode) -> Any:
    """Without what differs from run to run."""
    trials = tuple(
        replace(
            trial,
            attempt=replace(trial.attempt, usage=Usage()),
            feedback=trial.feedback and replace(trial.feedback, usage=Usage()),
        )
        for trial in episode.trials
    )
    same = replace(episode, id="", run="", started=0.0, seconds=0.0, head=Head(), trials=trials, lost=Usage())
    return to_json(same)


async def played(story: Story, world: World, store: SqliteStore) -> tuple[dict[str, Any], Episode]:
    """Runs the graph until it ends, again after each break; the last state, and what the store holds."""
    graph = a_graph(
        ScriptedChat(world.answer),
        world.tool,
        max_steps=story.steps,
        good_score=story.good,
        store=store,
        checkpointer=InMemorySaver(),
    )
    ask: Any = asking()
    for _ in range(len(story.fails) + 1):
        try:
            if story.asynchronous:
                await graph.ainvoke(ask, on_thread(), durability="sync")
            else:
                await asyncio.to_thread(graph.invoke, ask, on_thread(), durability="sync")
            break
        except Broken:
            ask = None
    (episode,) = await store.list()
    return graph.get_state(on_thread()).values, episode


@pytest.mark.slow
@given(story=STORIES)
def test_the_record_is_what_the_state_machine_gives(story: Story) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store, world = SqliteStore(Path(folder) / "mulligan.db"), World(story)
            try:
                state, stored = await played(story, world, store)
            finally:
                await store.close()
        expected, steps = by_hand(story)
        assert bare(stored) == bare(expected)
        assert episode_of(state["record"]) == stored
        result = state["reflexion"]
        assert (result["steps"], result["stop"]) == (steps, stored.stop and stored.stop.reason)
        assert (result["answer"], result["tool_result"]) == (
            f"answer {len(stored.trials)}",
            told(story, len(stored.trials))[0],
        )
        assert world.calls == stored.usage.calls
        assert world.calls - (len(story.wrong) - len(world.wrong)) == steps
        assert world.ran == [f"answer {n}" for n in range(1, len(stored.trials) + 1)]

    asyncio.run(main())
