"""Runs the first try of a recorded episode again, to test lessons on it. Nothing is recorded, and nothing has an
effect.

bank/learn/admission.py decides by such replays which lessons are shown: design/164.
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
"""Parts of a recipe with which an episode is never run again, and why."""


@dataclass(frozen=True)
class RecordedRuns:
    """The recorded episodes of the configured store. See `Replays` in bank/ports.py."""

    config: Config
    models: Models

    async def episode(self, id: str) -> Episode:
        async with open_store(self.config.store) as store:
            return await store.load(id)

    def why_not(self, episode: Episode) -> str:
        """Why the episode cannot be run again; "" if it can."""
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
        """Runs the first try again with the lessons of this recall. number: counts the runs from 0, and varies the
        seed."""
        from mulligan.app.compose import Drive, Parts, compose  # heavy, and a bank without replays does not need it
        from mulligan.app.runner import restart_seed
        from mulligan.sandbox.local import LocalSandbox

        recipe = replace(Recipe.from_json(episode.head.settings), edits=False)
        parts = Parts(self.models.open, LocalSandbox(level=recipe.sandbox))
        drive_settings = Drive(meter=Meter(), seed=restart_seed(episode.head.seed, number + 1))
        composition = compose(recipe, parts, drive_settings)
        current = Episode(episode.id, episode.task, plan=Plan(), head=composition.head, recall=recall)

        async def record(event: Event) -> Episode:
            nonlocal current
            current = advance(current, event)
            return current

        replay = await drive(current, composition.roles, replace(recipe.limits, trials=1), record, drive_settings.meter)
        if replay.stop and replay.stop.reason == "error":
            raise ModelError(f"episode {episode.id} could not be run again: {replay.stop.detail}")
        return replay
