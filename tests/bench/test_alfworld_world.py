"""The environment over one game: won by walkthroughs, and what ends a trial, as the reference has it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from households import HOUSES, answers, examples, needs_alfworld, played

from mulligan.app.prompts import FilePrompts
from mulligan.bench.alfworld.environments.alfworld import AlfWorld
from mulligan.core.errors import WorldError
from mulligan.core.records import Outcome

DATA = Path(__file__).parents[3] / "shared/data/alfworld"
EXAMPLES = Path(__file__).parents[2] / "src/mulligan/bench/alfworld/interact.alfworld.games.md"
pytestmark = [pytest.mark.slow, needs_alfworld]


async def test_the_worked_examples_are_what_the_engine_says(tmp_path: Path) -> None:
    told = [played(house, await answers(house, tmp_path / str(n))) for n, house in enumerate(HOUSES)]
    assert EXAMPLES.read_text() == examples(iter(told))
    assert FilePrompts().text("interact.alfworld.games").count("Your task is to:") == 12


async def test_a_first_observation_names_the_task(tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    try:
        first, *rest = (await world.reset()).splitlines()
    finally:
        await world.close()
    assert first.startswith("You are in the middle of a room.")
    assert rest == ["Your task is to: put a pencil in chest."]


async def test_what_an_action_does(tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    try:
        await world.reset()
        thought, unknown = await world.step("think: a pencil"), await world.step("fly to shelf 1")
        assert (thought.observation, unknown.observation) == ("OK.", "Nothing happens.")
        assert thought.outcome == unknown.outcome == Outcome(0.0)
        for action in ("go to shelf 1", "take pencil 1 from shelf 1", "go to chest 1", "open chest 1"):
            assert (await world.step(action)).observation.startswith("You ")
        last = await world.step("put pencil 1 in/on chest 1")
        assert last.observation == "You move the pencil 1 to the chest 1."
        assert last.outcome == Outcome(1.0, done=True)
        assert last.action == "put pencil 1 in/on chest 1"
        await world.reset()
        assert (await world.step("inventory")).observation == "You are not carrying anything."
    finally:
        await world.close()


@pytest.mark.parametrize("action", ["go to shelf 1", "think: again", "fly"])
async def test_the_same_action_twice_ends_the_trial_and_is_still_done(action: str, tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    try:
        await world.reset()
        first = await world.step(action)
        assert first.outcome == Outcome(0.0)
        second = await world.step(f" {action} ")
    finally:
        await world.close()
    assert second.outcome is not None
    assert second.outcome.halted == f"the same action 2 times in a row: '{action}'"
    assert second.observation


async def test_an_action_between_two_equal_ones_goes_on(tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    try:
        await world.reset()
        for action in ("look", "inventory", "look", "think: a", "look"):
            assert (await world.step(action)).outcome == Outcome(0.0)
    finally:
        await world.close()


async def test_several_games_at_once(tmp_path: Path) -> None:
    said = await asyncio.gather(*(answers(house, tmp_path / str(n)) for n, house in enumerate(HOUSES[:4])))
    alone = [await answers(house, tmp_path / f"again{n}") for n, house in enumerate(HOUSES[:4])]
    assert said == alone


async def test_an_engine_that_dies_is_an_error_and_the_next_game_works(tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    await world.reset()
    assert world.pid is not None
    os.kill(world.pid, signal.SIGKILL)
    with pytest.raises(WorldError, match="died"):
        await world.step("look")
    await world.close()
    assert await answers(HOUSES[1], tmp_path / "next")


async def test_a_cancelled_step_leaves_no_process(tmp_path: Path) -> None:
    world = AlfWorld(str(HOUSES[0].write(tmp_path)))
    await world.reset()
    pid = world.pid
    assert pid is not None
    step = asyncio.ensure_future(world.step("look"))
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    await world.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
async def test_stored_walkthroughs_win_twelve_of_twelve() -> None:
    won = 0
    for game in sorted(DATA.rglob("*.tw-pddl")):
        world, outcome = AlfWorld(str(game)), Outcome()
        try:
            await world.reset()
            for command in json.loads(game.read_text())["walkthrough"]:
                outcome = (await world.step(command)).outcome or Outcome()
        finally:
            await world.close()
        won += outcome == Outcome(1.0, done=True)
    assert won == 12
