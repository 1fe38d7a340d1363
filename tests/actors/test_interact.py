"""The actor that acts in an environment line by line, in a small world of this file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mulligan.actors.interact import Interact, part_of, plans_text
from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Environment
from mulligan.core.records import Attempt, Episode, Feedback, Outcome, Past, Reflection, Step, Task, Trial
from mulligan.models.scripted import ScriptedModel

PROMPT = "[[user]]\n{{examples}}\n\n{{past}}\n\n{{trajectory}}"


class Door:
    """Opens when it is pushed; a bell halts."""

    name = "door"

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Environment]:
        yield self

    async def reset(self) -> str:
        return "A door."

    async def step(self, action: str) -> Step:
        outcome = {"push": Outcome(1.0, done=True), "ring": Outcome(0.0, halted="the bell rang")}.get(action)
        return Step(action=action, observation=f"You {action}.", outcome=outcome)

    async def close(self) -> None: ...


async def acted(
    folder: Path, answers: list[str], past: Past = Past(), *, world: Door | None = None, **settings: Any
) -> tuple[Attempt, ScriptedModel]:
    (folder / "interact.door.md").write_text(PROMPT)
    model = ScriptedModel(answers)
    actor = Interact(model=model, prompts=FilePrompts([folder]), environment=world or Door(), **settings)
    return await actor.act(Episode("e", Task("open it")), past), model


async def test_the_model_is_shown_all_that_was_done_and_seen(tmp_path: Path) -> None:
    attempt, model = await acted(tmp_path, ["knock", "> push\n> and more"])
    assert model.questions[1].messages[-1].text == "A door.\n> knock\nYou knock.\n>"
    assert [step.action for step in attempt.steps] == ["", "knock", "push"]
    assert attempt.steps[0].observation == "A door."
    assert (attempt.output, attempt.outcome) == ("push", Outcome(1.0, done=True))


async def test_a_line_that_says_nothing_is_asked_for_warmer(tmp_path: Path) -> None:
    _, model = await acted(tmp_path, ["", ">", "push"], temperatures=(0.0, 0.5, 1.0))
    assert [sampling.temperature for sampling in model.samplings] == [0.0, 0.5, 1.0]
    assert all(sampling.stop == ("\n",) for sampling in model.samplings)
    assert len({sampling.seed for sampling in model.samplings}) == 3


class Lock(Door):
    """A door that refuses what is not pushing, with a word that it varies."""

    async def step(self, action: str) -> Step:
        step = await super().step(action)
        return step if action == "push" else Step(action=action, observation=f"Error: {action} does not open it.")


async def test_an_action_that_was_refused_is_not_sent_again_while_the_model_has_another(tmp_path: Path) -> None:
    answers = ["pull", "pull", "> pull ", "kick", "pull", "kick", "push"]
    attempt, model = await acted(tmp_path, answers, world=Lock(), temperatures=(0.0, 0.5, 1.0))
    assert [step.action for step in attempt.steps] == ["", "pull", "kick", "push"]
    assert [one.temperature for one in model.samplings] == [0.0, 0.0, 0.5, 1.0, 0.0, 0.5, 1.0]


async def test_a_refused_action_is_sent_again_if_nothing_else_comes_or_if_repeats_are_wanted(tmp_path: Path) -> None:
    attempt, _ = await acted(tmp_path, ["pull"] * 3 + ["push"], world=Lock(), temperatures=(0.0, 1.0))
    assert [step.action for step in attempt.steps] == ["", "pull", "pull", "push"]
    attempt, _ = await acted(tmp_path, ["pull", "pull", "push"], world=Lock(), anew=False)
    assert [step.action for step in attempt.steps] == ["", "pull", "pull", "push"]


async def test_an_action_that_was_not_refused_may_be_sent_again(tmp_path: Path) -> None:
    attempt, _ = await acted(tmp_path, ["knock", "knock", "push"])
    assert [step.action for step in attempt.steps] == ["", "knock", "knock", "push"]


async def test_the_trial_ends_when_the_world_halts_it_or_the_steps_are_used_up(tmp_path: Path) -> None:
    halted, _ = await acted(tmp_path, ["ring"])
    assert halted.outcome == Outcome(0.0, halted="the bell rang")
    tired, _ = await acted(tmp_path, ["knock", "wait"], steps=2)
    assert tired.outcome is not None
    assert tired.outcome.halted == "2 steps were used up"
    won, _ = await acted(tmp_path, ["knock", "push"], steps=2)
    assert won.outcome == Outcome(1.0, done=True)


async def test_plans_stand_before_the_task_oldest_first_and_numbered_anew(tmp_path: Path) -> None:
    past = Past(reflections=(Reflection("Knock.\nThen wait."), Reflection("Push.")))
    _, model = await acted(tmp_path, ["push"], past)
    plans = "Your plans from earlier trials at this task, oldest first:\nTrial 1: Knock. Then wait.\nTrial 2: Push."
    assert model.questions[0].messages[-1].text == f"{plans}\n\nA door.\n>"
    assert plans_text(Past()) == ""


def test_the_previous_trial_is_shown_with_what_was_done() -> None:
    steps = (Step(observation="A door."), Step(action="ring", observation="You ring."))
    trial = Trial(1, Attempt("ring", steps, Outcome(0.0)), Feedback(False, "It stayed shut."))
    text = plans_text(Past(last=trial))
    assert "Observation 1: A door.\nAction 2: ring\nObservation 2: You ring." in text
    assert "It stayed shut." in text
    assert "Attempt:" not in text  # its output is its last action


async def test_worked_examples_of_the_kind_at_hand(tmp_path: Path) -> None:
    file = tmp_path / "shown.md"
    file.write_text("=== one\n\nFirst.\n\n===  two \nSecond.\n")
    _, model = await acted(tmp_path, ["push"], examples=str(file), kind="two")
    assert model.questions[0].messages[-1].text == "Second.\n\nA door.\n>"
    assert part_of(" all of it\n", "") == "all of it"
    with pytest.raises(UnknownName, match="one, two"):
        part_of(file.read_text(), "three")


@pytest.mark.parametrize("settings", [{"steps": 0}, {"temperatures": ()}, {"temperatures": (3.0,)}])
async def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        await acted(tmp_path, [], **settings)
