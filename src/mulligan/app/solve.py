"""`solve` and `resume`: what the command line can do, in one call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from mulligan.app.compose import FOLDERS, OBJECT, object_name
from mulligan.app.config import Config, choose_model, load, prompts_folder
from mulligan.app.defaults import completed
from mulligan.app.foresight import foresight_of
from mulligan.app.kinds import with_kind
from mulligan.app.model_roles import Models, vision_role
from mulligan.app.plugins import ROLES, find, names, parse_spec
from mulligan.app.recipe import DEFAULT_STRATEGY, Recipe
from mulligan.app.runner import OnStart, log
from mulligan.app.scaling import scaled
from mulligan.app.session import (
    Session,
    absolute,
    asks_person,
    configured_limits,
    given_bank,
    located,
    of_bank,
    opened_store,
    with_limits,
    with_memory_settings,
)
from mulligan.app.tasks import judge_spec, read_task, tests_spec
from mulligan.app.workspaces import Notice
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.protocols import Actor, Bank, Evaluator, Model, Observer, Reflector, Store, Strategy
from mulligan.core.records import Episode, Json, Spec, Task
from mulligan.evaluators._judging import FunctionJudge, JudgeFunction, judge_name
from mulligan.recording.drivers import check_resumable
from mulligan.recording.journal import StepObserver
from mulligan.reflectors._editing import Decide

AnyJudge: TypeAlias = JudgeFunction | str | Evaluator | type[Evaluator] | os.PathLike[str]
"""What `solve` takes as a judge: what `retry` does, and the class of an evaluator."""

_TEXT, _PATH = ((str,), "a text"), ((str, os.PathLike), "a path")
_MODEL = ((str, Model), "the name of a model, or an object with `ask`")
_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("kind", "check", "environment", "scale", "sandbox"), _TEXT),
    **dict.fromkeys(("tests", "workspace", "prompts"), _PATH),
    **dict.fromkeys(("model", "reflect_model", "judge_model", "vision_model"), _MODEL),
    **dict.fromkeys(("trials", "restarts", "seed"), ((int,), "a whole number")),
    "limits": ((Limits, Mapping), "Limits, or a mapping such as {'seconds': 60}"),
    "settings": ((Mapping,), "a mapping of roles, such as {'strategy': {'window': 2}}"),
    "bank": ((str, Bank), "the name of an agent, or a bank"),
    "store": ((Store,), "a store"),
}
"""The types of arguments of `solve`, with the words for them."""
_WORDS = {"evaluator": "judge"}


async def solve(
    task: str | Task | os.PathLike[str],
    *,
    kind: str | None = None,
    judge: AnyJudge | None = None,
    tests: str | os.PathLike[str] | None = None,
    check: str | None = None,
    actor: str | Actor | type[Actor] | None = None,
    evaluator: AnyJudge | None = None,
    reflector: str | Reflector | type[Reflector] | None = None,
    strategy: str | Strategy | type[Strategy] | None = None,
    model: str | Model | None = None,
    reflect_model: str | Model | None = None,
    judge_model: str | Model | None = None,
    vision_model: str | Model | None = None,
    environment: str | None = None,
    tries: int | None = None,
    trials: int | None = None,
    limits: Limits | Mapping[str, float | None] | None = None,
    restarts: int = 1,
    scale: str | None = None,
    workspace: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    prompts: str | os.PathLike[str] | None = None,
    sandbox: str | None = None,
    seed: int = 0,
    edit_reflections: bool | Decide = False,
    bank: Bank | str | None = None,
    foresight: str | Mapping[str, Json] | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: StepObserver | None = None,
    notice: Notice | None = None,
) -> Episode:
    """Try the task, judge, reflect, try again. The episode is recorded, and `mulligan.resume` continues it.

    Args:
        task: a sentence, a `Task`, or a folder with task.md and tests.py (or evaluate.toml).
        kind: the kind of task, in free words. None: the task's own, else by [kinds] of mulligan.toml.
        judge, evaluator: a function of the answer, or of the task and the answer; an evaluator by name
            ("exact_match:42", "command:pytest -q"), as an object or as a class; or the `Path` of a file of tests.
            Without judge, tests and check, judge_model judges, or the model that is named.
        tests: a Python test file. check: a command whose exit status judges.
        actor, reflector, strategy: a name, an object, or a class, which is built afresh. None is "complete", "verbal",
            and "evidence_and_reflexion", or "evidence" if no model is there to reflect.
        model: None is that of `MULLIGAN_MODEL` or mulligan.toml, else "local" for an actor that asks a model.
        reflect_model, judge_model: None is `model`. vision_model: describes images for models that cannot see; None is
            the role vision of mulligan.toml, if any.
        environment: the world to act in, such as "./screens.py", by the actor interact unless another is named.
        tries, trials: attempts at most. limits: all, or those that differ from mulligan.toml's.
        restarts: independent episodes, until one is solved. scale: several trajectories, such as "parallel:5".
        workspace: the folder that a command-line agent works on.
        settings: by role ("actor", "evaluator", "reflector", "strategy", "workspace"), what a name alone cannot say;
            under "memory", settings of the bank, such as forms, over those of [memory] in mulligan.toml.
        edit_reflections: ask a person about each lesson first: at the terminal, or with a `mulligan.plugins.Decide`.
        bank: recalled from before the first trial. An agent_id opens that agent's bank, which also learns.
        foresight: as for `run`; for actors that act in an environment.

    Returns:
        The solved episode, or the best one; `episode.best.attempt.output` is the result.

    Raises:
        InvalidInput: before any model is called.
        StoreError: the record cannot be read or written.
        asyncio.CancelledError: the episode can be resumed.
    """
    judge, trials = _one("judge", judge, "evaluator", evaluator), _one("tries", tries, "trials", trials)
    _check_types({name: value for name, value in locals().items() if name in _TYPES})
    config, given, own = load(), read_task(task), dict[str, Any]()
    wanted, (edits, decide) = with_kind(given.task, kind, config), asks_person(edit_reflections)
    session = Session(
        config, Models(config), own, given_bank(bank), observers, on_start, on_step, notice, decide=decide
    )
    judged = _judge(tests, check, judge, given.evaluator, own) or (Spec("outcome") if environment else None)
    recipe = Recipe(
        actor=_spec("actor", actor or ("interact" if environment else "complete"), own),
        evaluator=judged or Spec("model_judge"),
        reflector=_spec("reflector", reflector or "verbal", own),
        strategy=_spec("strategy", strategy or DEFAULT_STRATEGY, own),
        limits=_limits(limits, trials, config),
        **_models(session.models, config, model, reflect_model, judge_model, vision_model),
        environment=None if environment is None else parse_spec("environments", environment),
        workspace=None if workspace is None else {"folder": absolute(workspace)},
        sandbox=sandbox or config.text("sandbox") or "auto",
        prompts=absolute(prompts) or prompts_folder(config),
        edits=edits,
        foresight=None if foresight is None else foresight_of(foresight),
        **of_bank(bank),
        restarts=restarts,
        seed=seed,
    )
    choices = {"evaluator": judged, "reflector": reflector, "strategy": strategy, "reflect_model": recipe.reflect_model}
    chosen = [name for name, value in {**choices, "trials": trials}.items() if value is not None]
    recipe, why = _completed(recipe, chosen, own, config)
    recipe = _with_settings(located(scaled(recipe, scale, chosen)), settings or {})
    if why:
        (notice or log.info)(why)
    async with session.runner(store, recipe) as runner:
        return await runner.run(wanted)


async def resume(
    run: str,
    *,
    fork: bool = False,
    limits: Limits | Mapping[str, float | None] | None = None,
    model: str | Model | None = None,
    reflect_model: str | Model | None = None,
    judge_model: str | Model | None = None,
    vision_model: str | Model | None = None,
    actor: str | Actor | type[Actor] | None = None,
    judge: AnyJudge | None = None,
    evaluator: AnyJudge | None = None,
    reflector: str | Reflector | type[Reflector] | None = None,
    strategy: str | Strategy | type[Strategy] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    prompts: str | os.PathLike[str] | None = None,
    edit_reflections: bool | Decide | None = None,
    bank: Bank | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: StepObserver | None = None,
    notice: Notice | None = None,
) -> Episode:
    """Resume a run (by id, or the beginning of one) at the first step that is not done.

    Roles and models that were given as objects have to be given again; so has the bank. `limits` replaces the recorded
    ones, or, as a mapping, those that it names.
    fork: go on although something has changed, as a new run that keeps what was done so far: with other roles, models,
    settings (as in `solve`) or prompts, and also with an episode that is over, where the limits now allow more.
    edit_reflections: as for `solve`; None is as recorded.
    Raises `NotFound`, `JournalDiverged`, `LeaseLost`, `InvalidInput` when there is nothing left to do.
    """
    evaluator = _one("judge", judge, "evaluator", evaluator)
    given = {"actor": actor, "evaluator": evaluator, "reflector": reflector, "strategy": strategy}
    roles = {kind: value for kind, value in given.items() if value is not None}
    own, here = dict[str, Any](), load()
    async with opened_store(store, here) as at:
        episodes = [await at.load(episode) for episode in await at.resolve(run)]
        check_resumable(episodes[0])
        recipe = Recipe.from_json(episodes[0].head.settings)
        config = here if recipe.agent is None else _config_of(recipe.agent, here)
        asks = recipe.edits if edit_reflections is None else edit_reflections
        edits, decide = asks_person(asks)
        session = Session(config, Models(config), own, bank, observers, on_start, on_step, notice, decide=decide)
        names = [session.models.name(given) for given in (model, reflect_model, judge_model)]
        recipe = _again(recipe, config, *names)
        recipe = replace(
            recipe,
            limits=with_limits(recipe.limits, limits),
            vision_model=session.models.name(vision_model) or recipe.vision_model,
            prompts=absolute(prompts) or recipe.prompts,
            edits=edits,
            checks=recipe.checks or fork,  # a fork is checked as a new run is
            **{kind: _other(kind, value, getattr(recipe, kind), own, fork) for kind, value in roles.items()},
        )
        recipe = _with_settings(recipe, settings or {})
        if recipe.recalls and bank is None and recipe.bank is None:
            raise InvalidInput(f"Run {episodes[0].run} recalls from a bank: resume with mulligan.resume(id, bank=…).")
        async with session.runner(at, recipe, episodes[0].agent) as runner:
            return await runner.resume(episodes, fork=fork)


def _other(kind: str, given: Any, recorded: Spec, own: dict[str, Any], fork: bool) -> Spec:
    """The role that is given now: one of the recorded name keeps its settings, and an object is compared with nothing,
    as a program that resumes may call its class otherwise."""
    spec = _spec(kind, given, own)
    if spec.name == recorded.name:
        return Spec(spec.name, {**recorded.settings, **spec.settings})
    return spec if fork or isinstance(given, str) else recorded


def _config_of(agent: Mapping[str, Any], here: Config) -> Config:
    from mulligan.app.agents import config_of

    return config_of(Path(agent["folder"]), here)


def _again(recipe: Recipe, config: Config, model: str | None, reflect: str | None, judge: str | None) -> Recipe:
    """The recorded recipe, with these models in place of its own; an agent's is made from its files as they are."""
    if recipe.agent is None:
        model = model or recipe.model
    else:
        from mulligan.app.agents import remade

        recipe = remade(recipe, config, model)
        model = recipe.model
    return located(
        replace(
            recipe,
            model=model,
            reflect_model=reflect or recipe.reflect_model,
            judge_model=judge or recipe.judge_model,
        )
    )


def _limits(given: Limits | Mapping[str, float | None] | None, trials: int | None, config: Config) -> Limits:
    limits = given if isinstance(given, Limits) else with_limits(configured_limits(config), given)
    return limits if trials is None else replace(limits, trials=trials)


def solve_sync(*args: Any, **kwargs: Any) -> Episode:
    """`solve`, for code that is not asynchronous. Raises `InvalidInput` inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(solve(*args, **kwargs))
    raise InvalidInput("An event loop is running here: write `await mulligan.solve(…)` instead of solve_sync.")


def _judge(
    tests: str | os.PathLike[str] | None,
    check: str | None,
    judge: Any,
    of_task: Spec | None,
    own: dict[str, Any],
) -> Spec | None:
    """The one evaluator that was named, or that the task's folder names."""
    named = [n for n, v in (("tests", tests), ("check", check), ("judge", judge)) if v is not None]
    if len(named) > 1:
        raise InvalidInput(f"{' and '.join(named)} were both given: one evaluator judges, so keep one of them.")
    if tests is not None:
        return tests_spec(tests)
    if check is not None:
        return Spec("command", {"check": check})
    return of_task if judge is None else _spec("evaluator", judge, own)


def _spec(kind: str, given: Any, own: dict[str, Any]) -> Spec:
    if kind == "evaluator" and (named := judge_spec(given)) is not None:
        return named
    if isinstance(given, str):
        return parse_spec(FOLDERS[kind], given)
    method = ROLES[f"{kind}s" if kind != "strategy" else "strategies"].method
    if kind == "evaluator" and callable(given) and not hasattr(given, method):
        own[kind] = FunctionJudge(given, "a task")
        return Spec(f"{OBJECT}{judge_name(given)}")
    if not hasattr(given, method):
        what = "a function, the Path of a tests file, or a name of an evaluator" if kind == "evaluator" else "a name"
        raise InvalidInput(f"{_WORDS.get(kind, kind)} must be {what}, or an object with `{method}`, not {given!r}.")
    own[kind] = given
    return Spec(object_name(given))


def _models(
    models: Models,
    config: Config,
    model: str | Model | None,
    reflect: str | Model | None,
    judge: str | Model | None,
    vision: str | Model | None,
) -> dict[str, str | None]:
    """The models of a new recipe."""
    return {
        "model": choose_model(models.name(model), config),
        "reflect_model": models.name(reflect) or config.text("reflect_model"),
        "judge_model": models.name(judge) or config.text("judge_model"),
        "vision_model": models.name(vision) or vision_role(config),
    }


def _one(name: str, value: Any, other_name: str, other: Any) -> Any:
    """The value of an argument that has two names."""
    if value is not None and other is not None:
        raise InvalidInput(f"{name} and {other_name} were both given, and mean the same: keep {name}.")
    return other if value is None else value


def _check_types(given: Mapping[str, Any]) -> None:
    """Raises `InvalidInput` for an argument of a wrong type, before anything is read."""
    for name, value in given.items():
        kinds, words = _TYPES[name]
        wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
        if wrong and value is not None:
            raise InvalidInput(f"{name} must be {words}, not {value!r}.")


def _reflects(strategy: Spec) -> bool:
    """Whether lessons are drawn; of a strategy that was given as an object, which says so itself, always."""
    return strategy.name.startswith(OBJECT) or find("strategies", strategy.name).reflects


def _completed(recipe: Recipe, chosen: Sequence[str], own: dict[str, Any], config: Config) -> tuple[Recipe, str]:
    """As `completed`. Raises `InvalidInput` where the default would stand in for a model that waits for trust."""
    result, why = completed(recipe, chosen, own)
    if result.model != recipe.model:
        config.refuse_held("model")
    return result, why


def _with_settings(recipe: Recipe, settings: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """Each role's spec with the settings that were given for it."""
    roles = ["actor", "evaluator", "reflector", "strategy", *(["environment"] if recipe.environment else [])]
    for role, values in settings.items():
        if role == "workspace":
            if recipe.workspace is None:
                raise InvalidInput(
                    "Settings for a workspace were given, and no workspace: name its folder (workspace=DIR)."
                )
            recipe = replace(recipe, workspace={**recipe.workspace, **values})
            continue
        if role == "memory":
            recipe = with_memory_settings(recipe, values)
            continue
        if role not in roles:
            known = ", ".join((*roles, "workspace", "memory"))
            raise InvalidInput(f"settings are given by role, and {role!r} is none of {known}.")
        if role == "reflector" and values and not _reflects(recipe.strategy):
            those = [name for name in names("strategies") if find("strategies", name).reflects]
            raise InvalidInput(
                f"Settings for a reflector were given, and the strategy {recipe.strategy.name!r} has none. Strategies "
                f"with a reflector: {', '.join(those)}."
            )
        spec: Spec = getattr(recipe, role)
        recipe = replace(recipe, **{role: Spec(spec.name, {**spec.settings, **values})})  # pyright: ignore[reportArgumentType]
    return recipe
