"""Runs the first try of a recorded episode again, to try lessons on it: nothing is recorded, and nothing has an effect.

See bank/learn/admission.py and design/164.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mulligan.app.config import Config
from mulligan.app.model_roles import Models
from mulligan.app.plugins import attribute_of
from mulligan.app.recipe import Recipe
from mulligan.core.episode import Event, advance
from mulligan.core.errors import ModelError
from mulligan.core.loop import Meter, drive
from mulligan.core.records import Episode, Plan, Recall
from mulligan.store import open_store

UNREPEATABLE: Mapping[str, str] = {
    "agent": "it was the run of an agent file",
    "workspace": "it changed a workspace",
    "foresight": "a foresight watched over it",
}
"""Why an episode is never run again, by the part of its recipe."""


@dataclass(frozen=True)
class RecordedRuns:
    """The recorded episodes of the configured store. See `Replays` in bank/ports.py."""

    config: Config
    models: Models

    async def episode(self, id: str) -> Episode:
        async with open_store(self.config.store) as store:
            return await store.load(id)

    def why_not(self, episode: Episode) -> str:
        settings: Mapping[str, Any] = episode.head.settings
        if "actor" not in settings:
            return "no run of solve, run or bench taught it"
        for part, why in UNREPEATABLE.items():
            if settings.get(part) is not None:
                return why
        recipe = Recipe.from_json(settings)
        roles = {
            "actor": ("actors", recipe.actor),
            "judge": ("evaluators", recipe.evaluator),
            "environment": ("environments", recipe.environment),
        }
        for role, (folder, spec) in roles.items():
            if spec is not None and not attribute_of(folder, spec.name, "replayable", False):
                return f"its {role} {spec.name!r} does not say that it can be run again"
        return ""

    async def draw(self, episode: Episode, recall: Recall, number: int) -> Episode:
        from mulligan.app.compose import Drive, Parts, compose  # a bank that tries nothing does without all of this
        from mulligan.app.runner import restart_seed
        from mulligan.sandbox.local import LocalSandbox

        recipe = replace(Recipe.from_json(episode.head.settings), edits=False)
        parts = Parts(self.models.open, LocalSandbox(level=recipe.sandbox))
        going = Drive(meter=Meter(), seed=restart_seed(episode.head.seed, number + 1))
        composition = compose(recipe, parts, going)
        now = Episode(episode.id, episode.task, plan=Plan(), head=composition.head, recall=recall)

        async def record(event: Event) -> Episode:
            nonlocal now
            now = advance(now, event)
            return now

        ended = await drive(now, composition.roles, replace(recipe.limits, trials=1), record, going.meter)
        if ended.stop and ended.stop.reason == "error":
            raise ModelError(f"episode {episode.id} could not be run again: {ended.stop.detail}")
        return ended
