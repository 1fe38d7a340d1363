"""Chooses the judge, reflector and strategy that the caller of `solve` leaves open.

The embedded model, if nobody named it, only acts: it does not judge or reflect for another actor.
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
    """The recipe with the chosen roles, and a sentence that says what was chosen and why; "" for the plain default.

    Args:
        recipe: its models are None if none was named.
        named: which of evaluator, reflector, strategy and reflect_model the caller named.
        objects: roles that were given as objects.

    Raises:
        InvalidInput: nothing can judge.
    """
    if "evaluator" not in named and recipe.model is None and recipe.judge_model is None:
        raise InvalidInput(
            "Nothing judges the answer: pass a command (check=COMMAND), tests (tests=FILE) or a model "
            "(judge_model=MODEL). If you pass only model=MODEL, the model judges its own answers, which is less "
            "reliable."
        )
    without_model = not asks_model("actor", recipe.actor, objects)
    if recipe.model is None and not without_model:
        recipe = replace(recipe, model=DEFAULT_MODEL)
    if "strategy" in named:
        return recipe, ""
    strategy, why = DEFAULT_STRATEGY, "the default"
    nobody_reflects = recipe.model is None and recipe.reflect_model is None
    if "reflector" not in named and nobody_reflects and asks_model("reflector", recipe.reflector, objects):
        actor = _in_words("actor", recipe.actor, objects)
        who = f"is {actor}" if actor else "asks no model of Mulligan's"
        strategy, why = "evidence", f"the actor {who} and no model is named, so there is no reflection"
    recipe = replace(recipe, strategy=Spec(strategy))
    plain = not without_model and strategy == DEFAULT_STRATEGY
    return recipe, "" if plain else f"strategy {strategy}: {why}; {_description(recipe, objects)}"


def _in_words(kind: str, spec: Spec, objects: Mapping[str, Any]) -> str:
    """The plug-in's name in a sentence, its attribute `in_words`; "" if it has none."""
    return getattr(objects.get(kind) or find(FOLDERS[kind], spec.name), "in_words", "")


def _description(recipe: Recipe, objects: Mapping[str, Any]) -> str:
    verdict = _in_words("evaluator", recipe.evaluator, objects) or "what the judge found"
    if not find("strategies", recipe.strategy.name).reflects:
        return f"{verdict} is shown"
    by = recipe.reflect_model or recipe.model or recipe.reflector.name
    lesson = _in_words("reflector", recipe.reflector, objects) or f"the lesson that {by} draws"
    return f"{verdict} is shown, and {lesson}"
