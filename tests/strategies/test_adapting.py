"""Strategies that decide from the episode whether to reflect, how warm to sample and when to stop."""

from pathlib import Path
from typing import Any

import pytest
from each_row import each_row

import mulligan
from mulligan import ScriptedModel
from mulligan.app.plugins import build, find, names
from mulligan.plugins import (
    Adapts,
    Attempt,
    Decision,
    Episode,
    Feedback,
    InvalidInput,
    ModelError,
    Past,
    Recall,
    Reflection,
    Spec,
    Strategy,
    Task,
    Trial,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "adaptive_strategy.py"


class Decides:
    """Shows nothing, and decides as it is told to."""

    reflects = True

    def __init__(self, *decisions: Decision) -> None:
        self._decisions = decisions

    def past(self, episode: Episode) -> Past:
        return Past(reflections=episode.reflections)

    def decide(self, episode: Episode) -> Decision:
        return self._decisions[min(len(episode.trials), len(self._decisions) - 1)]


def asked(model: ScriptedModel) -> list[float | None]:
    return [sampling.temperature for sampling in model.samplings]


async def solved(strategy: Any, *answers: str | Exception, **given: Any) -> tuple[Episode, ScriptedModel]:
    model = ScriptedModel(list(answers))
    episode = await mulligan.solve("Name a drink.", evaluator="contains:water", strategy=strategy, model=model, **given)
    return episode, model


async def test_a_lesson_is_drawn_only_where_the_strategy_asks_for_one() -> None:
    decided = Decides(Decision(), Decision(reflect=False), Decision())
    episode, _ = await solved(decided, "tea", "coffee", "Name water, not coffee.", "water")
    assert [r.text for r in episode.reflections] == ["Name water, not coffee."]
    skipped = episode.trials[0].reflection
    assert skipped is not None
    assert skipped.withheld == "The strategy asked for no lesson."
    assert episode.solved


async def test_the_strategy_ends_the_episode_before_anything_more_is_paid_for() -> None:
    episode, model = await solved(Decides(Decision(), Decision(stop="Once is enough.")), "tea", "a lesson", "water")
    assert episode.stop is not None
    assert (episode.stop.reason, episode.stop.detail) == ("gave_up", "Once is enough.")
    assert len(episode.trials) == 1
    assert len(model.questions) == 1, "no lesson was drawn"


async def test_the_strategy_says_how_warm_an_attempt_is_sampled() -> None:
    decided = Decides(Decision(temperature=0.3), Decision(reflect=False, temperature=1.5), Decision(reflect=False))
    _, model = await solved(decided, "tea", "coffee", "juice", "water")
    assert asked(model) == [0.3, 1.5, 0.8, 0.8]


async def test_a_resumed_episode_decides_the_same() -> None:
    class Once(Decides):
        def __init__(self) -> None:
            super().__init__(Decision(), Decision(reflect=False, temperature=1.1))

    cut, first = await solved(Once, "tea", ModelError("the server is down"))
    assert cut.stop is not None
    assert cut.stop.reason == "error"
    assert asked(first) == [0.0, 1.1]
    again = ScriptedModel(["water"])
    episode = await mulligan.resume(cut.run, model=again, strategy=Once)
    assert episode.solved
    assert asked(again) == [1.1]
    assert episode.reflections == ()


async def test_what_decides_wrongly_is_an_error_that_names_it() -> None:
    class Wrong(Decides):
        def decide(self, episode: Episode) -> Decision:
            return {"reflect": False}  # pyright: ignore[reportReturnType]

    episode, _ = await solved(Wrong(), "tea")
    assert episode.stop is not None
    assert episode.stop.reason == "error"
    assert "Wrong.decide must return a Decision" in episode.stop.detail


async def test_a_decide_that_is_awaited_is_refused() -> None:
    class Awaited(Decides):
        async def decide(self, episode: Episode) -> Decision:  # pyright: ignore[reportIncompatibleMethodOverride]
            return Decision()

    with pytest.raises(InvalidInput, match="define it with def"):
        await solved(Awaited(), "tea")


def test_a_temperature_that_no_model_takes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        Decision(temperature=3.0)


def failed(number: int, output: str) -> Trial:
    return Trial(number, Attempt(output), Feedback(False, f"{output} is wrong"), Reflection(f"lesson {number}"))


EPISODES = [
    Episode("e.1", Task("t"), recall=Recall("r"), trials=tuple(failed(n, text) for n, text in enumerate(outputs, 1)))
    for outputs in ((), ("a",), ("a", "b"), ("a", "a", "a"), ("a", "b", "a", "b", "c"))
]


@each_row("name", [*names("strategies"), str(EXAMPLE)])
def test_every_strategy_keeps_the_contract(name: str) -> None:
    strategy = build("strategies", Spec(name), {})
    assert isinstance(strategy, Strategy)
    assert strategy.reflects is find("strategies", name).reflects
    for episode in EPISODES:
        past = strategy.past(episode)
        assert past == strategy.past(episode), "it depends on the episode alone"
        assert past.recall == episode.recall, "lessons of the bank are handed on"
        assert set(past.reflections) <= set(episode.reflections)
        if not strategy.reflects:
            assert past.reflections == ()
        if isinstance(strategy, Adapts):
            assert strategy.decide(episode) == strategy.decide(episode)


async def test_the_example_warms_up_when_it_repeats_itself_and_then_stops() -> None:
    episode, model = await solved(str(EXAMPLE), "tea", "Do not name tea.", "tea", "coffee", trials=9)
    assert episode.stop is not None
    assert (episode.stop.reason, episode.stop.detail) == ("gave_up", "3 trials failed in the same way.")
    assert len(episode.reflections) == 1
    assert asked(model) == pytest.approx([0.0, 0.2, 0.8, 1.2])  # the second is the reflector
