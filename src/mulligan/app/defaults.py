"""Chooses judge, reflector and strategy where the caller of `solve` leaves them open.

An embedded model that nobody named only acts: it neither judges nor reflects for another actor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mulligan.app.compose import FOLDERS, asks_model
from mulligan.app.plugins import find
from mulligan.app.recipe import DEFAULT_STRATEGY, Recipe
from mulligan.app.session import DEFAULT_MODEL
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Spec


def completed(recipe: Recipe, named: Collection[str], objects: Mapping[str, Any]) -> tuple[Recipe, str]:
    """The recipe with what was left open, and a sentence that says what was chosen and why; "" for the plain default.

    Args:
        recipe: its models are None where none was named.
        named: which of evaluator, reflector, strategy and reflect_model the caller named.
        objects: roles that were given as objects.

    Raises:
        InvalidInput: nothing can judge.
    """
    if "evaluator" not in named and recipe.model is None and recipe.judge_model is None:
        raise InvalidInput(
            "Nothing judges the answer: give a command (check=COMMAND), tests (tests=FILE) or a model "
            "(judge_model=MODEL). With only model=MODEL, the model judges itself, which is weaker."
        )
    apart = not asks_model("actor", recipe.actor, objects)
    if recipe.model is None and not apart:
        recipe = replace(recipe, model=DEFAULT_MODEL)
    if "strategy" in named:
        return recipe, ""
    strategy, why = DEFAULT_STRATEGY, "the default"
    unthinking = recipe.model is None and recipe.reflect_model is None
    if "reflector" not in named and unthinking and asks_model("reflector", recipe.reflector, objects):
        actor = _in_words("actor", recipe.actor, objects)
        who = f"is {actor}" if actor else "asks no model of Mulligan's"
        strategy, why = "evidence", f"the actor {who} and no model is named, so there is no reflection"
    recipe = replace(recipe, strategy=Spec(strategy))
    plain = not apart and strategy == DEFAULT_STRATEGY
    return recipe, "" if plain else f"strategy {strategy}: {why}; {_shown(recipe, objects)}"


def _in_words(kind: str, spec: Spec, objects: Mapping[str, Any]) -> str:
    """The plug-in's `in_words`: how a sentence names it; "" if it has none."""
    return getattr(objects.get(kind) or find(FOLDERS[kind], spec.name), "in_words", "")


def _shown(recipe: Recipe, objects: Mapping[str, Any]) -> str:
    judged = _in_words("evaluator", recipe.evaluator, objects) or "what the judge found"
    if not find("strategies", recipe.strategy.name).reflects:
        return f"{judged} is shown"
    by = recipe.reflect_model or recipe.model or recipe.reflector.name
    drawn = _in_words("reflector", recipe.reflector, objects) or f"the lesson that {by} draws"
    return f"{judged} is shown, and {drawn}"
