"""Opens what a run needs besides its recipe: store, models, sandbox, workspace, tools and limits.

Shared by `solve`, `run` and `resume`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from mulligan.app.compose import Parts, asks_model
from mulligan.app.config import Config, located_model, project_here
from mulligan.app.foresight import Person, person_at_terminal
from mulligan.app.model_roles import OWN_KINDS, ROLE_MODELS, Models, is_role, role_of
from mulligan.app.options import ResumeOptions, RunOptions, SolveOptions, Watched
from mulligan.app.recipe import Recipe
from mulligan.app.runner import Runner, log
from mulligan.app.toolbox import ConfiguredTools
from mulligan.app.workspaces import open_workspace
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Model, Sandbox, Store
from mulligan.core.records import Json
from mulligan.models.steps import skill_folders_of
from mulligan.reflectors._editing import Decide
from mulligan.sandbox.local import LocalSandbox
from mulligan.store import open_store

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank as LessonBank

DEFAULT_MODEL = "local"
"""Implicit for `solve` and `run` only."""


@dataclass(frozen=True)
class Session:
    """What a run needs besides its recipe.

    Attributes:
        objects: roles that were given as objects, by kind.
        watched: where the run is recorded, and who follows it.
        wrap: see `open_bank`.
        decide: asks a person about reflections.
        person: asks a person for a foresight; None: at the terminal.
    """

    config: Config
    models: Models
    objects: dict[str, Any] = field(default_factory=dict[str, Any])
    bank: Bank | None = None
    watched: Watched = Watched()
    wrap: Callable[[Model], Model] | None = None
    decide: Decide | None = None
    person: Person | None = None

    @classmethod
    def of(cls, options: SolveOptions | RunOptions | ResumeOptions, config: Config, asks: bool | Decide | None) -> Self:
        """The session of a run with these options. asks: whether, or how, a person is asked about reflections."""
        bank = None if isinstance(options.bank, str) else options.bank
        decide = None if isinstance(asks, bool) else asks
        return cls(config, Models(config), bank=bank, watched=options, decide=decide)

    def notice(self, remark: str) -> None:
        (self.watched.notice or log.info)(remark)

    @asynccontextmanager
    async def runner(self, store: Store | None, recipe: Recipe, agent: str = "") -> AsyncGenerator[Runner]:
        """The runner of this recipe, on the given store or on the configured one, which is closed afterwards.

        agent: the agent that the record belongs to. Raises `InvalidInput` for an invalid sandbox, workspace or bank.
        """
        by = self.watched
        async with self.parts(recipe) as parts, opened_store(store, self.config) as opened:
            yield Runner(opened, recipe, parts, by.observers, by.on_start, by.on_step, self.notice, agent)

    @asynccontextmanager
    async def parts(self, recipe: Recipe) -> AsyncGenerator[Parts]:
        """What the episodes of this recipe share. A bank that is opened for it is closed afterwards.

        Raises `InvalidInput` for an invalid sandbox, workspace or bank.
        """
        own = self._opened_bank(recipe)
        try:
            yield self._parts(recipe, self.bank or own)
        finally:
            if own is not None:
                await own.close()

    def sandbox(self, level: str) -> Sandbox:
        sandbox = LocalSandbox(level=level)
        if sandbox.fallback:
            self.notice(sandbox.fallback)
        return sandbox

    def _opened_bank(self, recipe: Recipe) -> LessonBank | None:
        """The bank of the agent that the recipe names, unless a bank was given.

        The embedded model, if nobody named it, does not think for a bank: it would judge without the user's knowledge.
        """
        if self.bank is not None or recipe.bank is None:
            return None
        from mulligan.app.memory import open_bank
        from mulligan.app.memory_config import for_reader

        model = recipe.reflect_model or recipe.model
        named = None if model == DEFAULT_MODEL else model
        folder = (recipe.workspace or {}).get("folder")
        project = project_here(self.config, Path(str(folder)) if folder else None)
        if project.notice:
            self.notice(project.notice)
        return open_bank(
            recipe.bank,
            model=named,
            models=self.models,
            config=self.config,
            project=project.id,
            settings=for_reader(self.config, recipe.memory or {}, small=self._reader_is_small(recipe)),
            wrap=self.wrap,
        )

    def _reader_is_small(self, recipe: Recipe) -> bool:
        """Whether the recalled lessons are read by a model that runs inside Mulligan, or by an object of unknown size.
        The scripted reader counts as a large model, because no fact misleads it."""
        if not asks_model("actor", recipe.actor, self.objects):
            return "actor" in self.objects
        name = recipe.model or DEFAULT_MODEL
        name = role_of(self.config, name).model if is_role(self.config, name) else name
        provider = name.partition(":")[0]
        return name in self.models.given or (provider in OWN_KINDS and provider != "reader")

    def _parts(self, recipe: Recipe, bank: Bank | None) -> Parts:
        sandbox, workspace = self.sandbox(recipe.sandbox), open_workspace(recipe.workspace)
        tools = None
        if recipe.agent is not None:  # only an agent's steps call tools
            root = str(self.config.root or Path.cwd())
            tables = (self.config.table("tools"), self.config.table("mcp"))
            tools = ConfiguredTools(sandbox, workspace, *tables, root, skill_folders_of(recipe.actor))
        person = None
        if recipe.foresight is not None and recipe.bench is None:
            person = self.person or person_at_terminal()
        return Parts(self.models.open, sandbox, self.objects, bank, workspace, tools, self.decide, person)


def configured_limits(config: Config, base: Limits = Limits()) -> Limits:
    """The limits of `base`, with those of mulligan.toml in their place. Raises `InvalidInput` that names the file."""
    with config.errors_at("limits"):
        return with_limits(base, cast(Mapping[str, float | None], config.table("limits")))


def with_limits(limits: Limits, given: Limits | Mapping[str, float | None] | None, tries: int | None = None) -> Limits:
    """The limits, with the given ones in their place. Raises `UnknownName` for an unknown limit.

    tries: the limit `trials`; a mapping may also call it `tries`.
    """
    if isinstance(given, Limits):
        return given if tries is None else replace(given, trials=tries)
    if not isinstance(given, Mapping | None):
        raise InvalidInput(f"limits must be a Limits object or a mapping such as {{'seconds': 60}}, not {given!r}.")
    values: dict[str, float | None] = dict(given or {})
    for name in values:
        if name not in (*Limits.__dataclass_fields__, "tries"):
            raise UnknownName("limit", name, ("tries", *Limits.__dataclass_fields__))
    if "tries" in values:
        if "trials" in values:
            raise InvalidInput("The limits tries and trials mean the same: pass only tries.")
        values["trials"] = values.pop("tries")
    if tries is not None:
        values["trials"] = tries
    return replace(limits, **values) if values else limits  # pyright: ignore[reportArgumentType]


def located(recipe: Recipe) -> Recipe:
    """The recipe with absolute paths of model files, so that a resume finds them from any folder."""
    names: dict[str, str | None] = {role: getattr(recipe, role) for role in ("model", *ROLE_MODELS)}
    return replace(recipe, **{role: name and located_model(name, Path.cwd()) for role, name in names.items()})  # pyright: ignore[reportArgumentType]


def absolute(folder: str | os.PathLike[str] | None) -> str | None:
    return None if folder is None else str(Path(folder).expanduser().resolve())


def opened_store(store: Store | None, config: Config) -> AbstractAsyncContextManager[Store]:
    """The given store, or the configured one, which is closed afterwards."""
    return open_store(config.store) if store is None else nullcontext(store)


def of_bank(bank: Bank | str | None) -> dict[str, Any]:
    """The fields of a recipe for this bank. One that is opened by its agent_id also learns."""
    opened = bank if isinstance(bank, str) else None
    return {"recalls": bank is not None, "learns": opened is not None, "bank": opened}


def with_memory_settings(recipe: Recipe, values: Mapping[str, Json]) -> Recipe:
    """The recipe with these settings for its bank. Raises `InvalidInput` if no bank is opened for it."""
    if values and recipe.bank is None:
        raise InvalidInput("Bank settings need a bank: pass one with bank=.")
    return replace(recipe, memory={**(recipe.memory or {}), **values} or None)
