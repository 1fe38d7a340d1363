"""`solve` and `resume`: what the command line can do, in one call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from mulligan.app.compose import Parts
from mulligan.app.config import Config, choose_model, load
from mulligan.app.places import Notice, open_workspace
from mulligan.app.plugins import Spec
from mulligan.app.recipe import Recipe
from mulligan.app.runner import OnStart, Runner, log
from mulligan.app.tasks import read_task, tests_spec
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.limits import Limits
from mulligan.core.protocols import Actor, Bank, Evaluator, Model, Observer, Reflector, Store, Strategy
from mulligan.core.records import Episode, Task

T = TypeVar("T")

DEFAULT_MODEL = "local"
"""Implicit for `solve` and `run` only."""


async def solve(
    task: str | Task | os.PathLike[str],
    *,
    tests: str | os.PathLike[str] | None = None,
    check: str | None = None,
    actor: str | Actor | type[Actor] = "complete",
    evaluator: str | Evaluator | type[Evaluator] | None = None,
    reflector: str | Reflector | type[Reflector] = "verbal",
    strategy: str | Strategy | type[Strategy] = "reflexion",
    model: str | Model | None = None,
    reflect_model: str | Model | None = None,
    judge_model: str | Model | None = None,
    trials: int | None = None,
    limits: Limits | Mapping[str, float | None] | None = None,
    restarts: int = 1,
    workspace: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    prompts: str | os.PathLike[str] | None = None,
    sandbox: str | None = None,
    seed: int = 0,
    bank: Bank | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    notice: Notice | None = None,
) -> Episode:
    """Try the task, judge, reflect, try again; the episode with all its trials, recorded and resumable.

    task: a sentence, a `Task`, or a folder with task.md and tests.py (or evaluate.toml). tests: a Python test file.
    check: a command whose exit status judges. evaluator: a name such as "exact_match:42", "./mine.py", or an object.
    Without any of the three the model judges itself by a rubric.
    actor, reflector, strategy: a name, an object, or a class, built afresh for each episode.
    model: "local" unless `MULLIGAN_MODEL` or mulligan.toml names one; the default of reflect_model and judge_model.
    limits: all, or those that differ from mulligan.toml's. restarts: independent episodes, until one is solved.
    workspace: the folder that a command-line agent works on. bank: recalled from before the first trial.
    settings: by role ("actor", "evaluator", "reflector", "strategy", "workspace"), what a name alone cannot say.

    Returns the solved episode, or the best one: `episode.best.attempt.output` is the result. Raises `InvalidInput`
    before any model is called, `StoreError`, `asyncio.CancelledError` (resumable).
    """
    config, given, own = load(), read_task(task), dict[str, Any]()
    models = Models(config)
    recipe = Recipe(
        actor=_spec("actor", "actors", actor, own),
        evaluator=_judge(tests, check, evaluator, given.evaluator, own),
        reflector=_spec("reflector", "reflectors", reflector, own),
        strategy=_spec("strategy", "strategies", strategy, own),
        limits=_limits(limits, trials, config),
        model=choose_model(models.name(model), config) or DEFAULT_MODEL,
        reflect_model=models.name(reflect_model) or config.text("reflect_model"),
        judge_model=models.name(judge_model) or config.text("judge_model"),
        workspace=None if workspace is None else {"folder": _absolute(workspace)},
        sandbox=sandbox or config.text("sandbox") or "auto",
        prompts=_absolute(prompts) or _prompts(config),
        recalls=bank is not None,
        restarts=restarts,
        seed=seed,
    )
    parts = (_with_settings(_located(recipe), settings or {}), models, own, bank, observers, on_start, notice)
    return await _with_store(store, config, lambda at: _runner(at, *parts).run(given.task))


async def resume(
    run: str,
    *,
    fork: bool = False,
    limits: Limits | Mapping[str, float | None] | None = None,
    model: str | Model | None = None,
    reflect_model: str | Model | None = None,
    judge_model: str | Model | None = None,
    actor: Actor | type[Actor] | None = None,
    evaluator: Evaluator | type[Evaluator] | None = None,
    reflector: Reflector | type[Reflector] | None = None,
    strategy: Strategy | type[Strategy] | None = None,
    bank: Bank | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    notice: Notice | None = None,
) -> Episode:
    """Go on with a run (by id, or the beginning of one) at the first step that is not done.

    Roles and models that were given as objects have to be given again; so has the bank. `limits` replaces the recorded
    ones, or, as a mapping, those that it names.
    fork: go on although something has changed, as a new run that keeps what was done so far.
    Raises `NotFound`, `JournalDiverged`, `LeaseLost`, `InvalidInput` when there is nothing left to do.
    """
    given = {"actor": actor, "evaluator": evaluator, "reflector": reflector, "strategy": strategy}
    own = {kind: value for kind, value in given.items() if value is not None}
    config = load()
    models = Models(config)

    async def go_on(at: Store) -> Episode:
        episodes = [await at.load(episode) for episode in await at.resolve(run)]
        recipe = Recipe.from_json(episodes[0].head.settings)
        recipe = replace(
            recipe,
            limits=_changed(recipe.limits, limits),
            model=models.name(model) or recipe.model,
            reflect_model=models.name(reflect_model) or recipe.reflect_model,
            judge_model=models.name(judge_model) or recipe.judge_model,
        )
        if recipe.recalls and bank is None:
            raise InvalidInput(f"Run {episodes[0].run} recalls from a bank: go on with mulligan.resume(id, bank=…).")
        return await _runner(at, recipe, models, own, bank, observers, on_start, notice).resume(episodes, fork=fork)

    return await _with_store(store, config, go_on)


def solve_sync(*args: Any, **kwargs: Any) -> Episode:
    """`solve`, for code that is not asynchronous. Raises `InvalidInput` inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(solve(*args, **kwargs))
    raise InvalidInput("An event loop is running here: write `await mulligan.solve(…)` instead of solve_sync.")


class Models:
    """Opens each model once, by name; a model given as an object answers to its own name.

    The table [calls] of mulligan.toml says how providers are called.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._opened: dict[str, Model] = {}

    def name(self, given: str | Model | None) -> str | None:
        if given is None or isinstance(given, str):
            return given
        if self._opened.setdefault(given.name, given) is not given:
            raise InvalidInput(f"Two models are called {given.name!r} here: give each a name of its own.")
        return given.name

    def open(self, name: str) -> Model:
        from mulligan.models.catalog import open_model
        from mulligan.models.settings import CallSettings

        if name not in self._opened:
            with self._config.blamed("calls"):
                calls = CallSettings.parse(self._config.table("calls"))
            self._opened[name] = open_model(name, settings=calls)
        return self._opened[name]


def open_store(config: Config | None = None) -> Store:
    """The store in force here. Raises `StoreError` when it cannot be opened."""
    from mulligan.store.sqlite import SqliteStore

    return SqliteStore((config or load()).database)


async def _with_store(store: Store | None, config: Config, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """`work` on the store that was given, or on our own, closed afterwards."""
    if store is not None:
        return await work(store)
    own = open_store(config)
    try:
        return await work(own)
    finally:
        await own.close()


def _runner(
    store: Store,
    recipe: Recipe,
    models: Models,
    own: Mapping[str, Any],
    bank: Bank | None,
    observers: Sequence[Observer],
    on_start: OnStart | None,
    notice: Notice | None,
) -> Runner:
    from mulligan.sandbox.local import LocalSandbox

    sandbox = LocalSandbox(level=recipe.sandbox)
    parts = Parts(models.open, sandbox, own, bank, open_workspace(recipe.workspace))
    return Runner(store, recipe, parts, observers, on_start, notice or log.info)


def _judge(
    tests: str | os.PathLike[str] | None,
    check: str | None,
    evaluator: str | Evaluator | type[Evaluator] | None,
    of_task: Spec | None,
    own: dict[str, Any],
) -> Spec:
    """The one evaluator that was named; the model itself, by a rubric, when none was."""
    named = [n for n, v in (("tests", tests), ("check", check), ("evaluator", evaluator)) if v is not None]
    if len(named) > 1:
        raise InvalidInput(f"{' and '.join(named)} were both given: one evaluator judges, so keep one of them.")
    if tests is not None:
        return tests_spec(tests)
    if check is not None:
        return Spec("command", {"check": check})
    if evaluator is not None:
        return _spec("evaluator", "evaluators", evaluator, own)
    return of_task or Spec("model_judge")


def _spec(kind: str, folder: str, given: Any, own: dict[str, Any]) -> Spec:
    if isinstance(given, str):
        return Spec.parse(folder, given)
    own[kind] = given
    cls = given if isinstance(given, type) else type(given)
    return Spec(f"object:{cls.__module__}.{cls.__qualname__}")


def _limits(given: Limits | Mapping[str, float | None] | None, trials: int | None, config: Config) -> Limits:
    if not isinstance(given, Limits):
        with config.blamed("limits"):
            configured = _changed(Limits(), cast(Mapping[str, float | None], config.table("limits")))
        given = _changed(configured, given)
    return given if trials is None else replace(given, trials=trials)


def _changed(limits: Limits, given: Limits | Mapping[str, float | None] | None) -> Limits:
    """The limits with those that were given in their place. Raises `UnknownName` for one that there is not."""
    if isinstance(given, Limits):
        return given
    for name in given or {}:
        if name not in Limits.__dataclass_fields__:
            raise UnknownName("limit", name, Limits.__dataclass_fields__)
    return replace(limits, **given) if given else limits  # pyright: ignore[reportArgumentType]


def _located(recipe: Recipe) -> Recipe:
    """The recipe with model files by their whole path, so that a resume finds them from any folder."""

    def whole(name: str | None) -> str | None:
        kind, _, file = (name or "").partition(":")
        is_file = kind in ("scripted", "replay") or (kind == "local" and file.endswith(".gguf"))
        return f"{kind}:{_absolute(file)}" if is_file and file else name

    return replace(
        recipe,
        model=whole(recipe.model),
        reflect_model=whole(recipe.reflect_model),
        judge_model=whole(recipe.judge_model),
    )


def _absolute(folder: str | os.PathLike[str] | None) -> str | None:
    return None if folder is None else str(Path(folder).expanduser().resolve())


def _prompts(config: Config) -> str | None:
    folder = config.text("prompts")
    return str((config.root or Path.cwd()) / folder) if folder else None


def _with_settings(recipe: Recipe, settings: Mapping[str, Mapping[str, Any]]) -> Recipe:
    """Each role's spec with the settings that were given for it."""
    roles = ("actor", "evaluator", "reflector", "strategy")
    for role, values in settings.items():
        if role == "workspace":
            if recipe.workspace is None:
                raise InvalidInput(
                    "Settings for a workspace were given, and no workspace: name its folder (--workspace DIR)."
                )
            recipe = replace(recipe, workspace={**recipe.workspace, **values})
            continue
        if role not in roles:
            raise InvalidInput(f"settings are given by role, and {role!r} is none of {', '.join(roles)}, workspace.")
        spec: Spec = getattr(recipe, role)
        recipe = replace(recipe, **{role: Spec(spec.name, {**spec.settings, **values})})  # pyright: ignore[reportArgumentType]
    return recipe
