"""What is said to ALFWorld's engine and by it, without the engine."""

from __future__ import annotations

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bench.alfworld._engine.engine import harmless
from mulligan.bench.alfworld.environments import alfworld
from mulligan.bench.alfworld.environments.alfworld import AlfWorld
from mulligan.core.errors import InvalidInput

NEWER = ["go to shelf 1", "move mug 1 to shelf 1"]
OLDER = ["go to shelf 1", "put mug 1 in/on shelf 1"]


@pytest.mark.parametrize("said", ["in/on", "in", "on", "into", "onto", "to"])
@pytest.mark.parametrize("verb", ["put", "move", "place"])
def test_both_verb_forms_work_both_ways(verb: str, said: str) -> None:
    action = f"{verb} mug 1 {said} shelf 1"
    assert alfworld.command(action, NEWER) == "move mug 1 to shelf 1"
    assert alfworld.command(action, OLDER) == "put mug 1 in/on shelf 1"


def test_what_is_possible_as_it_stands_is_not_reworded() -> None:
    both = ["put cup 1 in sink 1", "move cup 1 to sink 1"]
    assert alfworld.command(both[0], both) == both[0]
    assert alfworld.command("put mug 2 in shelf 1", NEWER) == "put mug 2 in shelf 1"


@given(st.text(max_size=60), st.lists(st.text(max_size=30)))
def test_a_command_is_the_action_or_one_that_is_possible(action: str, possible: list[str]) -> None:
    assert alfworld.command(action, possible) in (action, *possible)


def test_the_welcome_is_dropped() -> None:
    text = "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in a room.\n\nYour task is to: sit."
    assert alfworld.beginning(text) == "You are in a room.\nYour task is to: sit."
    assert alfworld.beginning("alone") == "alone"


def test_only_the_arrival_at_a_numbered_location_is_cut() -> None:
    assert (
        alfworld.observation("You arrive at loc 12. On the desk 1, you see a pen 1.")
        == "On the desk 1, you see a pen 1."
    )
    assert alfworld.observation("You arrive at desk 1. It is bare.") == "You arrive at desk 1. It is bare."


@pytest.mark.parametrize(
    ("action", "thought"),
    [("think: a", True), ("Think: a", True), ("think a", True), ("thinker", False), ("go", False)],
)
def test_thoughts(action: str, thought: bool) -> None:
    assert alfworld.is_thought(action) is thought


@each_row(
    ("expression", "fine"),
    [
        ("r.name", True),
        (" o.indefinite + ' ' + o.name ", True),
        ("r.name or r.id", True),
        ("__import__('os').system('true')", False),
        ("o.__class__", False),
        ("open('x')", False),
        ("[x for x in o]", False),
        ("o.name if o else r", False),
        ("(" * 500, False),
    ],
)
def test_a_grammar_may_only_name_things(expression: str, fine: bool) -> None:
    assert harmless(expression) is fine


@pytest.mark.parametrize("settings", [{"repeats": 1}, {"repeats": -2}, {"seconds": 0}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        AlfWorld("game.tw-pddl", **settings)
