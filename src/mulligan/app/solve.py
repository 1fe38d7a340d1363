"""`solve` and `resume`: what the command line can do, in one call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mulligan.app.compose import FOLDERS, OBJECT, object_name
from mulligan.app.config import Config, choose_model, load, prompts_folder
from mulligan.app.defaults import completed
from mulligan.app.foresight import foresight_of
from mulligan.app.kinds import with_kind
from mulligan.app.model_roles import ROLE_MODELS, Models, role_models
from mulligan.app.options import ResumeOptions, SolveOptions, taken_by
from mulligan.app.plugins import ROLES, find, names, parse_spec
from mulligan.app.recipe import DEFAULT_STRATEGY, Recipe
from mulligan.app.scaling import scaled
from mulligan.app.session import (
    Session,
    absolute,
    configured_limits,
    located,
    of_bank,
    opened_store,
    with_limits,
    with_memory_settings,
)
from mulligan.app.tasks import judge_spec, read_task, tests_spec
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Spec
from mulligan.evaluators._judging import FunctionJudge, judge_name
from mulligan.recording.drivers import check_resumable

CAST = ("actor", "evaluator", "reflector", "strategy")
"""The roles of a loop, as a recipe has them."""


@taken_by(SolveOptions)
async def solve(*args: Any, **named: Any) -> Episode:
    """Try a task, judge the attempt, reflect on it, and try again.

    The episode is recorded, and `mulligan.resume` can continue it. The task is a string, a `Task`, or a folder with
    task.md and tests.py (or evaluate.toml). Without a judge, tests or check, judge_model judges, or else the model.
    Options that you omit are taken from mulligan.toml, if there is one.

    Returns:
        The solved episode, or else the best one. Its `best.attempt.output` is the result.

    Raises:
        InvalidInput: before any model is called.
        StoreError: the record cannot be read or written.
        asyncio.CancelledError: the episode can be resumed.
    """
    options: SolveOptions = SolveOptions.from_call("solve", args, named)
    config, folder = load(), read_task(options.task)
    task = with_kind(folder.task, options.kind, config)
    session = Session.of(options, config, options.edit_reflections)
    recipe, why = recipe_of(options, session, folder.evaluator)
    if why:
        session.notice(why)
    async with session.runner(options.store, recipe) as runner:
        return await runner.run(task)


def solve_sync(*args: Any, **kwargs: Any) -> Episode:
    """Like `solve`, for code that is not asynchronous. Raises `InvalidInput` inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(solve(*args, **kwargs))
    raise InvalidInput("An event loop is running here: use `await mulligan.solve(…)` instead of solve_sync.")


@taken_by(ResumeOptions)
async def resume(*args: Any, **named: Any) -> Episode:
    """Resume a run at its first unfinished step. The run is given by its id, or the beginning of its id.

    If roles, models or the bank were objects, pass them again. `limits` replaces the recorded limits; a mapping
    replaces only those that it contains. With fork, the run continues as a new run that keeps the results so far, even
    if something has changed. A fork can also continue a finished episode if the limits now allow more.

    Returns:
        The episode, as `solve` does.

    Raises:
        InvalidInput: there is nothing left to do.
        NotFound, JournalDiverged, LeaseLost
    """
    options: ResumeOptions = ResumeOptions.from_call("resume", args, named)
    here, bank = load(), options.bank
    async with opened_store(options.store, here) as at:
        episodes = [await at.load(episode) for episode in await at.resolve(options.run)]
        check_resumable(episodes[0])
        recorded = Recipe.from_json(episodes[0].head.settings)
        asks = recorded.edits if options.edit_reflections is None else options.edit_reflections
        session = Session.of(options, here if recorded.agent is None else _config_of(recorded.agent, here), asks)
        recipe = _resumed_recipe(recorded, options, session)
        if recipe.recalls and bank is None and recipe.bank is None:
            raise InvalidInput(
                f"Run {episodes[0].run} recalls from a bank: resume it with mulligan.resume(id, bank=…)."
            )
        async with session.runner(at, replace(recipe, edits=asks is not False), episodes[0].agent) as runner:
            return await runner.resume(episodes, fork=options.fork)


def recipe_of(options: SolveOptions, session: Session, of_task: Spec | None) -> tuple[Recipe, str]:
    """The recipe of these options, and why its roles were chosen. of_task: the judge of the task's folder."""
    config, models, objects = session.config, session.models, session.objects
    environment = options.environment
    judge = _judge(options, of_task, objects) or (Spec("outcome") if environment else None)
    recipe = Recipe(
        actor=_spec("actor", options.actor or ("interact" if environment else "complete"), objects),
        evaluator=judge or Spec("model_judge"),
        reflector=_spec("reflector", options.reflector or "verbal", objects),
        strategy=_spec("strategy", options.strategy or DEFAULT_STRATEGY, objects),
        limits=with_limits(configured_limits(config), options.limits, options.tries),
        model=choose_model(models.name(options.model), config),
        **role_models(config, _named_models(options, models)),
        environment=None if environment is None else parse_spec("environments", environment),
        workspace=None if options.workspace is None else {"folder": absolute(options.workspace)},
        sandbox=options.sandbox or config.text("sandbox") or "auto",
        prompts=absolute(options.prompts) or prompts_folder(config),
        edits=options.edit_reflections is not False,
        foresight=None if options.foresight is None else foresight_of(options.foresight),
        **of_bank(options.bank),
        restarts=options.restarts,
        seed=options.seed,
    )
    values = {
        "evaluator": judge,
        "reflector": options.reflector,
        "strategy": options.strategy,
        "reflect_model": recipe.reflect_model,
        "trials": options.tries,
    }
    chosen = [name for name, value in values.items() if value is not None]
    complete, why = completed(recipe, chosen, objects)
    if complete.model != recipe.model:  # the default must not replace a model that waits for trust
        config.refuse_held("model")
    return _with_settings(located(scaled(complete, options.scale, chosen)), options.settings or {}), why


def _named_models(options: SolveOptions | ResumeOptions, models: Models) -> dict[str, Any]:
    return {name: models.name(getattr(options, name)) for name in ROLE_MODELS}


def _replaced_role(kind: str, given: Any, recorded: Spec, objects: dict[str, Any], fork: bool) -> Spec:
    """The role that is given on a resume. One with the recorded name keeps its recorded settings. An object replaces
    the recorded role only in a fork, because the resuming program may have renamed its class."""
    spec = _spec(kind, given, objects)
    if spec.name == recorded.name:
        return Spec(spec.name, {**recorded.settings, **spec.settings})
    return spec if fork or isinstance(given, str) else recorded


def _config_of(agent: Mapping[str, Any], here: Config) -> Config:
    from mulligan.app.agents import config_of

    return config_of(Path(agent["folder"]), here)


def _resumed_recipe(recorded: Recipe, options: ResumeOptions, session: Session) -> Recipe:
    """The recorded recipe with the options that are given now. An agent's recipe is made anew from its files."""
    models, fork = session.models, options.fork
    model = models.name(options.model)
    recipe = recorded if model is None else replace(recorded, model=model)
    if recorded.agent is not None:
        from mulligan.app.agents import remade

        recipe = remade(recorded, session.config, model)
    roles: dict[str, Any] = {"actor": options.actor, "evaluator": options.judge, "reflector": options.reflector}
    roles["strategy"] = options.strategy
    recipe = replace(
        recipe,
        limits=with_limits(recipe.limits, options.limits, options.tries),
        **{name: one for name, one in _named_models(options, models).items() if one},
        prompts=absolute(options.prompts) or recipe.prompts,
        checks=recipe.checks or fork,  # a fork is checked like a new run
        **{
            kind: _replaced_role(kind, role, getattr(recipe, kind), session.objects, fork)
            for kind, role in roles.items()
            if role is not None
        },
    )
    return _with_settings(located(recipe), options.settings or {})


def _judge(options: SolveOptions, of_task: Spec | None, objects: dict[str, Any]) -> Spec | None:
    """The evaluator that the options or the task's folder name; None if neither does."""
    judges = [name for name in ("tests", "check", "judge") if getattr(options, name) is not None]
    if len(judges) > 1:
        raise InvalidInput(f"{' and '.join(judges)} cannot both judge: pass only one of them.")
    if options.tests is not None:
        return tests_spec(options.tests)
    if options.check is not None:
        return Spec("command", {"check": options.check})
    return of_task if options.judge is None else _spec("evaluator", options.judge, objects)


def _spec(kind: str, given: Any, objects: dict[str, Any]) -> Spec:
    if kind == "evaluator" and (spec := judge_spec(given)) is not None:
        return spec
    if isinstance(given, str):
        return parse_spec(FOLDERS[kind], given)
    method = ROLES[f"{kind}s" if kind != "strategy" else "strategies"].method
    if kind == "evaluator" and callable(given) and not hasattr(given, method):
        objects[kind] = FunctionJudge(given, "a task")
        return Spec(f"{OBJECT}{judge_name(given)}")
    if not hasattr(given, method):
        what = "a function, the Path of a test file, or a name of an evaluator" if kind == "evaluator" else "a name"
        word = "judge" if kind == "evaluator" else kind
        raise InvalidInput(f"{word} must be {what}, or an object with `{method}`, not {given!r}.")
    objects[kind] = given
    return Spec(object_name(given))


def _reflects(strategy: Spec) -> bool:
    """Whether the strategy uses lessons. One that was given as an object counts as such."""
    return strategy.name.startswith(OBJECT) or find("strategies", strategy.name).reflects


def _with_settings(recipe: Recipe, settings: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """The recipe, with the settings that were given for each role."""
    roles = (*CAST, *(["environment"] if recipe.environment else []))
    for word, values in settings.items():
        role = "evaluator" if word == "judge" else word
        if role == "workspace":
            if recipe.workspace is None:
                raise InvalidInput("Workspace settings need a workspace: pass its folder (workspace=DIR).")
            recipe = replace(recipe, workspace={**recipe.workspace, **values})
            continue
        if role == "memory":
            recipe = with_memory_settings(recipe, values)
            continue
        if role not in roles:
            available = ", ".join((*roles, "workspace", "memory"))
            raise InvalidInput(f"settings are keyed by role, but {role!r} is not one of {available}.")
        if role == "reflector" and values and not _reflects(recipe.strategy):
            with_reflector = [name for name in names("strategies") if find("strategies", name).reflects]
            raise InvalidInput(
                f"Reflector settings were given, but the strategy {recipe.strategy.name!r} has no reflector. "
                f"Strategies with a reflector: {', '.join(with_reflector)}."
            )
        spec: Spec = getattr(recipe, role)
        recipe = replace(recipe, **{role: Spec(spec.name, {**spec.settings, **values})})  # pyright: ignore[reportArgumentType]
    return recipe
