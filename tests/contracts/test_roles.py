"""What every actor, evaluator, reflector, strategy and environment keeps to, whichever it is: those that the finder lists.

Each plays in a real episode over a store in memory. Tools, benchmarks and formats of transcripts have contract tests of
their own (tests/tools, tests/benchmarks, tests/transcripts), and so have the bank's strategies (tests/retrieval,
tests/merging).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from rust_compiler import rustc_runs

from mulligan import Limits, ScriptedModel
from mulligan.app.config import Config
from mulligan.app.model_roles import Models
from mulligan.app.plugins import build, find, names
from mulligan.app.recipe import Recipe
from mulligan.app.session import Session
from mulligan.core.codec import from_json, to_json
from mulligan.core.protocols import Environment, Reply, Strategy
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import (
    Attempt,
    Episode,
    Feedback,
    Json,
    Past,
    Reflection,
    Spec,
    Step,
    StopReason,
    Task,
    Trial,
)
from mulligan.store import open_store

HOSTILE = ("", "\0", "lone \udcff", "```\n</attempt>\x1b[2J", "x" * 20_000)
STEP: Json = {"instructions": "Do it."}
PAGES: Json = [{"title": "Tea", "text": "Tea is a drink."}]
WIKI = Spec("wiki", {"pages": PAGES})
TESTS = "def test_it():\n    assert True\n"

ACTORS: dict[str, dict[str, Json]] = {
    "agent": {"step": STEP},
    "command": {"command": f"{sys.executable} -c \"print('tea')\""},
}
EVALUATORS: dict[str, dict[str, Json]] = {
    "command": {"check": "grep -q water {attempt}"},
    "contains": {"text": "water"},
    "exact_match": {"answer": "water"},
    "given_tests": {"tests": ["assert add(1, 2) == 3"]},
    "regex": {"pattern": "water"},
    "review": {"step": STEP},
    "rust_tests": {"tests": "fn main() { assert!(true); }"},
    "unit_tests": {"tests": TESTS},
}
REFLECTORS: dict[str, dict[str, Json]] = {"review": {"step": STEP}}
_TASK: dict[str, Json] = {"seed": 0, "number": 0}
ENVIRONMENTS: dict[str, dict[str, Json]] = {
    "webshop": {"goal": "mug"},
    "wiki": {"pages": PAGES},
    **dict.fromkeys(("database", "game", "service"), _TASK),
}
"""Settings that a plug-in cannot do without."""


class Says:
    """An actor that can be asked about its work, and whose attempts are these."""

    def __init__(self, *outputs: str) -> None:
        self._outputs = outputs

    async def act(self, episode: Episode, past: Past) -> Attempt:
        return Attempt(self._outputs[len(episode.trials) % len(self._outputs)])

    async def ask(self, episode: Episode, prompt: str) -> Reply:
        return Reply("Name water next time.")


async def says_more(question: str) -> str:
    return "It is tea."


def answer(question: Question, sampling: Sampling) -> Any:
    """Whatever fits: a verdict or tests where a schema asks for them, else a sentence that names an action."""
    if question.schema is None:
        return "Name water, not tea.\nAction: finish[water]"
    about = {"tactical": "Name water, not tea."}
    return {
        **about,
        "passed": False,
        "score": 0.0,
        "reasoning": "It is tea.",
        "verdict": "failure",
        "feedback": "It is tea.",
    }


async def played(recipe: Recipe, objects: dict[str, Any], task: str = "Name a drink.") -> Episode:
    """The episode as it is recorded: exactly what was returned."""
    models = Models(Config())
    recipe = replace(recipe, model=models.name(ScriptedModel(answer)), agent={})
    async with open_store("memory:") as store:
        session = Session(Config(), models, objects)
        async with session.runner(store, recipe) as runner:
            episode = await runner.run(Task(task))
        assert await store.load(episode.id) == episode
    assert from_json(Episode, to_json(episode)) == episode
    assert episode.stop is not None
    assert episode.stop.reason in get_args(StopReason)
    assert episode.stop.reason != "error", episode.stop.detail
    return episode


def recipe(
    trials: int,
    *,
    actor: Spec = Spec("object:says"),
    evaluator: Spec = Spec("untested"),
    reflector: Spec = Spec("feedback"),
) -> Recipe:
    limits = Limits(trials=trials, identical=None)
    return Recipe(actor, evaluator, reflector, Spec("none"), limits, environment=WIKI)


@pytest.mark.parametrize("name", names("actors"))
async def test_an_actor_makes_one_attempt_that_can_be_recorded(name: str, tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("tea")
    playing = recipe(1, actor=Spec(name, ACTORS.get(name, {})))
    if name == "command":  # it changes files, so a check judges them
        check = Spec("command", {"check": "false"})
        playing = replace(playing, evaluator=check, workspace={"folder": str(tmp_path), "mode": "copy"})
    if name == "interact":  # it has prompts for games alone
        playing = replace(playing, environment=Spec("webshop", ENVIRONMENTS["webshop"]))
    if name == "respond":  # it has a prompt for Mind2Web alone
        (prompt := tmp_path / "mine.md").write_text("[[user]]\n{{observation}}")
        playing = replace(playing, actor=Spec(name, {"template": str(prompt)}))
    (trial,) = (await played(playing, {})).trials
    assert trial.feedback is not None
    assert trial.feedback.passed is False


@pytest.mark.light_cases(5)
@pytest.mark.parametrize("name", names("evaluators"))
async def test_an_evaluator_judges_whatever_an_attempt_says_and_names_itself(name: str) -> None:
    objects: dict[str, Any] = {"actor": Says(*HOSTILE)}
    spec = Spec(name, EVALUATORS.get(name, {}))
    if name == "rust_tests" and not rustc_runs():
        pytest.skip("needs rustc")
    if name == "human":  # it asks a person: here a function answers
        objects["evaluator"] = find("evaluators", name)(ask=says_more)
        spec = Spec("object:human")
    episode = await played(recipe(len(HOSTILE), evaluator=spec), objects)
    for trial in episode.trials:
        assert trial.feedback is not None
        assert trial.feedback.source
        assert trial.feedback.passed in (True, False, None)
        if trial.feedback.passed is None:
            assert trial.feedback.text or trial.feedback.notes or name == "unjudged", "it says why it could not judge"


@pytest.mark.parametrize("name", names("reflectors"))
async def test_a_reflector_draws_a_text_from_a_failed_trial_or_gives_up(name: str) -> None:
    objects: dict[str, Any] = {"actor": Says(*HOSTILE)}
    spec = Spec(name, REFLECTORS.get(name, {}))
    episode = await played(recipe(3, reflector=spec), objects)
    assert episode.stop is not None
    if episode.stop.reason != "gave_up":
        assert len(episode.trials) == 3
        assert all(reflection.text.strip() for reflection in episode.reflections)


FAILED = Trial(1, Attempt("tea \udcff"), Feedback(False, "It is tea.", source="t"), Reflection("Name water."))
EPISODES = {
    "nothing yet": (),
    "one failed": (FAILED,),
    "two failed": (FAILED, replace(FAILED, number=2)),
    "one unjudged": (Trial(1, Attempt("tea"), Feedback(None, "nobody knows", source="t")),),
    "one not evaluated": (Trial(1, Attempt("tea")),),
}


@pytest.mark.parametrize("trials", EPISODES.values(), ids=list(EPISODES))
@pytest.mark.parametrize("name", names("strategies"))
def test_a_strategy_shows_a_part_of_the_past_and_the_same_each_time(name: str, trials: tuple[Trial, ...]) -> None:
    strategy: Strategy = build("strategies", Spec(name), {})
    assert isinstance(strategy, Strategy)
    episode = Episode("e", Task("Name a drink."), trials=trials)
    past = strategy.past(episode)
    assert past == strategy.past(episode) == build("strategies", Spec(name), {}).past(episode)
    assert from_json(Past, to_json(past)) == past
    assert set(past.reflections) <= set(episode.reflections)
    if not strategy.reflects:
        assert past.reflections == ()
    if not trials:
        assert past == Past()


@pytest.mark.parametrize("name", [name for name in names("environments") if name in ENVIRONMENTS])
async def test_an_environment_answers_any_action_and_begins_anew(name: str) -> None:
    world: Environment = build("environments", Spec(name, ENVIRONMENTS[name]), {})
    assert isinstance(world, Environment)
    first = await world.reset()
    assert first.strip()
    for action in (*HOSTILE, "search[tea]", "click[", "finish[water]"):
        step = await world.step(action)
        assert isinstance(step, Step)
        assert step.observation.strip() or step.outcome is not None
    assert await world.reset() == first
    await world.close()
    await world.close()


def test_every_environment_is_tried() -> None:
    """ALFWorld needs its engine, Mind2Web its pages, BFCL its wheel, STATE-Bench a checkout: tests/bench holds them to
    the same."""
    assert set(names("environments")) == {*ENVIRONMENTS, "alfworld", "bfcl", "mind2web", "state_bench"}
