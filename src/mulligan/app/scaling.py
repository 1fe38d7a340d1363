"""Scales a recipe, and chooses the best of the trajectories that it gave."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from mulligan.app.compose import OBJECT, Parts
from mulligan.app.plugins import find, settings_of
from mulligan.app.prompts import FilePrompts
from mulligan.app.recipe import Recipe
from mulligan.app.workspaces import Notice
from mulligan.bank.learn.comparison import COMPARING, Comparison
from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, scope
from mulligan.core.protocols import StepRow
from mulligan.core.questions import think
from mulligan.core.records import Episode, Spec, Usage
from mulligan.core.scaling import DEFAULT_TEMPERATURE, Scale, tied
from mulligan.models.gate import Gate
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Ledger

COMPARE = "compare"
"""The prefix of the keys of steps that compare trajectories, in the record of the first one."""


def scaled(recipe: Recipe, scale: str | None, chosen: Collection[str] = ()) -> Recipe:
    """The recipe with the roles and limits of this scale, before any settings of the user.

    Sequential: every attempt is checked again by `recheck`, and the next one sees it with all notes. Otherwise the
    actor samples at `DEFAULT_TEMPERATURE`, if it has temperatures.

    Args:
        recipe: of one trajectory.
        scale: such as "parallel:5"; None leaves the recipe as it is.
        chosen: which of "trials", "strategy" and "reflector" the user has set.

    Raises:
        InvalidInput: the scale is not valid, or cannot be combined with something else.
    """
    if scale is None:
        return recipe
    parsed = Scale.parse(scale)
    if parsed.kind == "sequential":
        if conflicts := sorted({"trials", "strategy", "reflector"}.intersection(chosen)):
            raise InvalidInput(f"{scale} already sets {conflicts[0]}: omit one of the two.")
        if recipe.evaluator.name == "unjudged":
            raise InvalidInput(
                f"{scale} checks attempts that did not pass, so it needs a judge. Specify an evaluator (or a "
                "method with one), such as model_judge."
            )
        strategy = Spec("last_attempt_and_reflexion", {"window": None})
        limits = replace(recipe.limits, trials=parsed.k)
        return replace(recipe, scale=scale, strategy=strategy, reflector=Spec("recheck"), limits=limits)
    name = recipe.actor.name
    needs_temperature = not name.startswith(OBJECT) and "temperatures" in settings_of(find("actors", name))
    actor = recipe.actor.with_settings(temperatures=[DEFAULT_TEMPERATURE]) if needs_temperature else recipe.actor
    return replace(recipe, scale=scale, actor=actor)


async def best_of(recipe: Recipe, parts: Parts, ledger: Ledger, episodes: Sequence[Episode], notice: Notice) -> Episode:
    """The best of these trajectories by the evaluator's verdicts. Of equally good ones, the first, or, with `judge`,
    the one that a model chooses. Its answer is a step in the record of the first trajectory, so it is asked only
    once."""
    best = [episodes[index] for index in tied(episodes)]
    scale = Scale.parse(recipe.scale) if recipe.scale else None
    name = recipe.judge_model or recipe.model
    if scale is None or not scale.judge or len(best) == 1:
        return best[0]
    if name is None:
        raise InvalidInput(f"{recipe.scale} needs a model to compare attempts: set one with model=.")
    comparison = Comparison(FilePrompts([Path(recipe.prompts)] if recipe.prompts else []))
    async with ledger.hold(episodes[0].id) as entry:
        journal = StoredJournal(entry)
        gate = Gate(parts.model(name), role="comparison", journal=journal, meter=Meter(), limits=Limits())
        try:
            with scope(COMPARE, anew=True):
                return best[await think(comparison, gate, best, COMPARING)]
        except (BadAnswer, ModelError) as error:
            notice(f"the attempts could not be compared, so the first of the best is taken: {error}")
            return best[0]


def comparing_usage(steps: Sequence[StepRow]) -> Usage:
    """The usage of comparing, from the steps of the first trajectory."""
    return usage_under(COMPARE, steps)


def usage_under(path: str, steps: Sequence[StepRow]) -> Usage:
    """The usage of the model calls whose steps are under this path."""
    rows = [row.result for row in steps if row.done and row.key.startswith(f"{path}/")]
    return sum((Usage(**row["usage"]) for row in rows), Usage())
