"""Plans a benchmark run: its cases in their order, the recipe of each, and what a resume depends on."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from mulligan.app.compose import Drive, Parts, compose
from mulligan.app.compose import environment as open_environment
from mulligan.app.config import Config, choose_model, located_model, prompts_folder
from mulligan.app.foresight import foresight_of
from mulligan.app.options import Budget, Course, Roles, option, options_in, place
from mulligan.app.plugins import build, find, names, parse_spec
from mulligan.app.recipe import Recipe
from mulligan.app.scaling import scaled
from mulligan.app.session import absolute, located, with_limits, with_memory_settings
from mulligan.bench.harness.data import find_data, hashed
from mulligan.bench.harness.methods import Chosen, choose_method
from mulligan.core.benchmarks import Benchmark, BenchRun, Method, Rests
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput, MulliganError, UnknownName
from mulligan.core.limits import Limits
from mulligan.core.protocols import Evaluator, Sandbox
from mulligan.core.records import MOST_KIND, Case, Json, Spec, Task
from mulligan.core.scaling import scale_of

ROLES = ("actor", "evaluator", "reflector", "strategy", "environment")
SETTABLE = (*ROLES, "benchmark", "memory")
"""What --set may name: the roles of an episode, the benchmark, and the bank."""
FORESIGHT = ("foresight", "check_before", "checks")
"""The options of foresight, which streams and fan-out do not have."""
LOG, STREAM = "log:", "arms:"
"""The prefixes of the benchmark's name in the record of a replay, before the path of its log, and of a stream."""
SETTING = "setting "
"""The prefix of the names of settings in `BenchRun.rests_on`."""


class CaseOptions(Course, Roles, Budget):
    """The options of a benchmark run, from Python and on the command line.

    Attributes:
        method: One of the benchmark's methods, which are sets of roles. `mulligan bench list` lists them.
        strategy: What the next try sees: a strategy, as for solve, or ./mine.py. This overrides the method's strategy.
        model: The model: PROVIDER:NAME, local:NAME, scripted:FILE or replay:FILE.
        reflect_model: The model that reflects (default: --model).
        judge_model: The model that judges or writes tests (default: --model).
        agent: An agent defined by files, which replaces the method's actor.
        data: The data: a file, or the folder that contains it.
        restarts: Maximum number of episodes per case. A case ends once one of them solves it.
        samples: Run N episodes of each case, for pass@k and pass^k.
        limit: Run only the first N cases.
        cases: Run only the case with this id. Repeatable.
        shuffle: Shuffle the cases before --limit is applied. --seed determines the order.
        parallel: Number of cases to run in parallel (default: 1).
        reuse: Reuse a model's earlier answers to requests that are identical, including the seed. Their tokens are
            counted again.
        memory: Recall lessons from the bank; `online` also learns from the run.
        agent_id: The agent whose bank --memory uses.
        taught: The number of cases, counted from the first, that an online bank learns from. None means all.
        sandbox: The sandbox level: auto (default), strict, or a level that `mulligan doctor` lists.
    """

    benchmark: str = place(kw_only=False)
    method: str | None = option("NAME", default=None)
    agent: str | None = option("NAME", default=None)
    data: str | os.PathLike[str] | None = option("PATH", "--data", "--data-root", default=None)
    restarts: int = option("K", default=1, least=1)
    samples: int | None = option("N", "--repeats", "--samples", default=None, least=1)
    limit: int | None = option("N", default=None, least=1)
    cases: Sequence[str] = option("ID", "--case", default=())
    shuffle: bool = option("", default=False)
    parallel: int = option("N", default=1, least=1)
    reuse: bool = option("", default=False)
    memory: str | None = option("online|frozen", default=None)
    agent_id: str = option("NAME", "--bank", "--agent-id", default="")
    taught: int | None = None
    sandbox: str = option("LEVEL", default="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.restarts > 1 and self.samples is not None:
            raise InvalidInput("restarts stop at the first solved episode, but samples do not: pass only one.")
        if scale_of(self.scale) is not None and (self.restarts > 1 or self.samples is not None):
            other = "samples" if self.samples is not None else "restarts"
            raise InvalidInput(f"scale and {other} both make several episodes per case: pass only one.")
        if self.memory not in (None, "online", "frozen"):
            raise InvalidInput(f"'memory' must be online or frozen, not {self.memory!r}.")
        if self.agent_id and self.memory is None:
            raise InvalidInput("'agent_id' selects a bank, but 'memory' is not set: set 'memory' to online or frozen.")
        if self.memory == "online" and self.parallel > 1:
            raise InvalidInput(
                "With an online bank, each case learns from those before it, so cases run in order, one at a time: "
                "leave parallel at 1, or use a frozen bank."
            )
        if self.memory == "online" and (self.samples or 1) > 1:
            raise InvalidInput(
                "With an online bank, the second episode of a case learns from the first, so it is not a repeat: "
                "use a frozen bank, or bench stream with --orders."
            )


class BenchOptions(CaseOptions):
    """The options of a benchmark run as plain JSON: all that a resume needs, except objects."""

    strategy: str | None = option("NAME", "-s", default=None)
    model: str | None = option("MODEL", "-m", default=None)
    reflect_model: str | None = option("MODEL", default=None)
    judge_model: str | None = option("MODEL", default=None)

    @property
    def episodes(self) -> int:
        """The largest number of episodes that a case may take."""
        return self.samples or self.restarts


@dataclass(frozen=True)
class BenchPlan:
    """A run that is ready to start.

    Attributes:
        name: the name of the benchmark, without its argument.
        method: the method, with the strategy of this run.
        cases: the cases in the order in which they start.
        files: the sha256 of each data file.
        notice: see `Chosen`.
    """

    choice: BenchOptions
    name: str
    benchmark: Benchmark
    method: Method
    cases: Sequence[Case]
    files: Mapping[str, str]
    config: Config
    notice: str = ""

    @cached_property
    def _teaching(self) -> frozenset[str]:
        """The cases that an online bank learns from."""
        return frozenset(case.id for case in self.cases[: self.choice.taught])

    def summary(self) -> str:
        """A sentence that names the method and the number of attempts."""
        trials = self.choice.tries or self.method.trials
        first, *others = self.benchmark.methods()
        default = f" (the default; others: {', '.join(others)})" if others and self.choice.method == first else ""
        attempts = "one attempt" if trials == 1 else f"at most {trials} attempts"
        details = f" ({self.method.summary})" if self.method.summary else ""
        if self.choice.strategy is not None:
            details = f" (strategy {self.choice.strategy} instead of the method's own)"
        return f"Method {self.choice.method}{default}: {attempts} of each case{details}."

    def recipe(self, case: Case, run: str) -> Recipe:
        """The recipe of this case's episodes. run: the id of the run. Raises `InvalidInput` for unusable options."""
        choice, method = self.choice, self.benchmark.play(case, self.method)
        settings = choice.settings or {}
        limits = with_limits(Limits(identical=None), choice.limits, choice.tries or method.trials)
        recipe = Recipe(
            actor=method.actor,
            evaluator=method.evaluator,
            reflector=method.reflector,
            strategy=method.strategy,
            limits=limits,
            model=choose_model(choice.model, self.config),
            reflect_model=choice.reflect_model or self.config.text("reflect_model"),
            judge_model=choice.judge_model or self.config.text("judge_model"),
            prompts=prompts_folder(self.config),
        )
        if choice.agent is not None:
            recipe = self._with_agent(located(recipe))
        overrides = {"trials": choice.tries, "strategy": choice.strategy}
        recipe = scaled(
            replace(recipe, expansion=method.expansion),
            choice.scale,
            [name for name, value in overrides.items() if value is not None],
        )
        for role in ROLES[:-1]:
            spec: Spec = getattr(recipe, role)
            recipe = replace(recipe, **{role: spec.with_settings(**settings.get(role, {}))})  # pyright: ignore[reportArgumentType]
        environment = method.environment
        recipe = located(
            replace(
                recipe,
                sandbox=choice.sandbox,
                environment=environment and environment.with_settings(**settings.get("environment", {})),
                foresight=None if choice.foresight is None else foresight_of(choice.foresight),
                recalls=choice.memory is not None,
                learns=choice.memory == "online" and case.id in self._teaching,
                bank=None if choice.memory is None else choice.agent_id,
                bench=run,
                seed=choice.seed,
            )
        )
        return with_memory_settings(recipe, settings.get("memory", {}))

    def _with_agent(self, recipe: Recipe) -> Recipe:
        """The recipe with the chosen agent.

        The agent acts, reflects if it has a step for that, and sets the strategy if it names one and the user does
        not. Everything else stays the same, above all the evaluator.
        """
        # Reading an agent's files needs pydantic, which other runs do not need.
        from mulligan.app.agents import config_of, find_agent, load_agent, recipe_of

        assert self.choice.agent is not None
        folder = find_agent(self.choice.agent, self.config)
        agent, _ = load_agent(folder, config_of(folder, self.config))
        unjudged = replace(agent, evaluate={"evaluator": "unjudged"})  # so that its own review only reflects
        own = recipe_of(unjudged, self.config, recipe.limits, model=recipe.model)
        reviews = agent.reflect is not None
        chooses = agent.strategy is not None and self.choice.strategy is None
        return replace(
            own,
            evaluator=recipe.evaluator,
            reflector=own.reflector if reviews else recipe.reflector,
            strategy=own.strategy if chooses else recipe.strategy,
            judge_model=recipe.judge_model,
            reflect_model=self.choice.reflect_model or (own if reviews else recipe).reflect_model,
            limits=recipe.limits,
            prompts=recipe.prompts,
        )

    def rests_on(self, parts: Parts) -> dict[str, Json]:
        """What must be unchanged on a resume, by name: hashes of data, prompts and files, models, settings.

        Raises `InvalidInput` for unusable options; no model was called yet.
        """
        recipes = [self.recipe(case, "") for case in self.cases]
        heads = [compose(recipe, parts, Drive(seed=recipe.seed)).head for recipe in _distinct(recipes)]
        if (environment := recipes[0].environment) is not None:
            open_environment(environment, parts)
        cases = [
            [case.id, case.task.prompt, digest(dict(case.task.inputs)), digest(case.target)] for case in self.cases
        ]
        return {
            **{f"data {name}": sha for name, sha in self.files.items()},
            **{f"prompt {name}": sha for head in heads for name, sha in head.prompts.items()},
            **{f"model of the {role}": id for head in heads for role, id in head.models.items()},
            **{f"file {name}": sha for head in heads for name, sha in head.files.items()},
            "the cases": digest(cases),
            **{f"{SETTING}{name}": value for name, value in _settings(recipes[0]).items()},
        }


def _distinct(recipes: Sequence[Recipe]) -> Sequence[Recipe]:
    """The recipes without duplicates. Two that differ only in their environment are duplicates."""
    return list({digest(replace(recipe, environment=None).to_json()): recipe for recipe in reversed(recipes)}.values())


def _settings(recipe: Recipe) -> dict[str, Json]:
    """The settings that all cases share. Those of a single case are checked when its episode resumes."""
    return {
        name: value for name, value in recipe.to_json().items() if name not in ("evaluator", "environment", "bench")
    }


def reader_of(text: str) -> str | None:
    """The name of the benchmark that reads the file `text`, by its ending. None: `text` names a benchmark."""
    ending = Path(text).suffix
    return next((name for name in names("benchmarks") if ending in _endings(name)), None) if ending else None


def _endings(name: str) -> Sequence[str]:
    """The endings of the files of tasks that a benchmark reads."""
    try:
        return getattr(find("benchmarks", name), "endings", ())
    except MulliganError:  # a broken benchmark of another package is reported when it is used
        return ()


def open_benchmark(text: str, settings: Mapping[str, Json], sandbox: Sandbox) -> tuple[str, Benchmark, str | None]:
    """Build the benchmark that the user named.

    Args:
        text: `name`, `name:argument`, or a file that one of the benchmarks reads (see `reader_of`).
        settings: the settings of the benchmark.

    Returns:
        Its name, the benchmark, and the file if `text` is one.

    Raises:
        UnknownName: no benchmark has this name.
        InvalidInput: the file does not exist, or a setting is not valid.
    """
    path = Path(text).expanduser()
    if (reader := reader_of(text)) is not None:
        if not path.is_file():
            raise InvalidInput(f"The task file {text} does not exist.")
        spec, data = Spec(reader), str(path.resolve())
    else:
        spec, data = parse_spec("benchmarks", plain_name(text)), None

    def judges(spec: Spec) -> Evaluator:
        return build("evaluators", spec, {"sandbox": sandbox})

    ports = {"sandbox": sandbox, "judges": judges}
    benchmark = cast(Benchmark, build("benchmarks", spec.with_settings(**settings), ports))
    return spec.name, benchmark, data


def plain_name(text: str) -> str:
    """The benchmark's name in its file: `humanevalplus` for `humaneval+`, `state_bench` for `state-bench`."""
    text = re.sub(r"^(\w+)\+(?=:|$)", r"\1plus", text)
    return re.sub(r"^[\w-]+(?=:|$)", lambda name: name[0].replace("-", "_"), text)


def make_plan(choice: BenchOptions, config: Config, sandbox: Sandbox) -> BenchPlan:
    """Read the data and put the cases in order. Raises `InvalidInput`, `UnknownName`."""
    settings = choice.settings or {}
    for role in settings:
        if role not in SETTABLE:
            raise UnknownName("role of a setting", role, SETTABLE)
    name, benchmark, data = open_benchmark(choice.benchmark, settings.get("benchmark", {}), sandbox)
    chosen = chosen_method(name, benchmark, choice)
    files = find_data(benchmark, data or choice.data)
    cases = chosen_cases(in_phases(benchmark.load(files)), choice)
    files = [*files, *(benchmark.beside() if isinstance(benchmark, Rests) else ())]
    choice = choice.changed(method=chosen.name, strategy=chosen.strategy)  # the record gets the full names
    return BenchPlan(choice, name, benchmark, chosen.method, cases, hashed(files), config, chosen.notice)


def chosen_method(name: str, benchmark: Benchmark, choice: BenchOptions) -> Chosen:
    """The method and strategy that these options choose.

    Raises `UnknownName`, and `InvalidInput` for several tries with a method that makes one attempt.
    """
    chosen = choose_method(name, benchmark, choice.method, choice.strategy)
    if chosen.method.trials == 1 and choice.tries not in (None, 1):
        others = [other for other, method in benchmark.methods().items() if method.trials > 1]
        several = f"For several, choose another method: {', '.join(others)}. " if others else ""
        default = "" if choice.method or choice.strategy else ", the default,"
        raise InvalidInput(
            f"The method {chosen.name!r}{default} makes one attempt, not {choice.tries}. {several}"
            "For independent attempts per case, use samples instead of tries."
        )
    return chosen


def chosen_cases(cases: Sequence[Case], choice: BenchOptions) -> Sequence[Case]:
    """The cases that the options choose, in the order of the run.

    Raises `UnknownName` for an unknown id, and `InvalidInput` if there are no cases.
    """
    by_id = {case.id: case for case in cases}
    if choice.cases:
        for id in choice.cases:
            if id not in by_id:
                raise UnknownName("case", id, by_id)
        cases = [by_id[id] for id in dict.fromkeys(choice.cases)]
    ordered = list(cases)
    if choice.shuffle:
        random.Random(choice.seed).shuffle(ordered)
    if not ordered:
        raise InvalidInput("There are no cases to run.")
    return ordered[: choice.limit]


def in_phases(cases: Sequence[Case]) -> Sequence[Case]:
    """The cases with their phases numbered from 1.

    A phase begins with a case that has another phase than the one before, or that announces a change.
    """
    numbered, before = list[Case](), cases[0].phase if cases else 1
    number = 1
    for case in cases:
        if case.phase != before or (numbered and "change" in case.task.inputs):
            number, before = number + 1, case.phase
        numbered.append(case if case.phase == number else replace(case, phase=number))
    return numbered


def family_of(case: Case) -> str:
    """The family of similar cases that a case belongs to; its id if neither the benchmark nor the id names a family."""
    return case.family or family_in(case.id)


def task_of(case: Case) -> Task:
    """The task of a case. If the task has no kind, its kind is the family."""
    family = family_of(case)
    return case.task if case.task.kind or family == case.id else replace(case.task, kind=family[:MOST_KIND])


def family_in(id: str) -> str:
    """The part of a case's id before the first "/"."""
    return id.partition("/")[0]


def choice_json(choice: BenchOptions) -> dict[str, Any]:
    """The options as JSON, with absolute paths, so that a resume finds files from any folder."""
    names = [it.name for it in options_in(BenchOptions) if not (it.same_as or it.into)]
    values = {name: getattr(choice, name) for name in names}
    models = {name: getattr(choice, name) for name in ("model", "reflect_model", "judge_model")}
    values["trials"] = values.pop("tries")
    return {
        **values,
        **{name: model and located_model(model, Path.cwd()) for name, model in models.items()},
        "benchmark": absolute(choice.benchmark) if reader_of(choice.benchmark) else choice.benchmark,
        "agent": absolute(choice.agent) if choice.agent and os.sep in choice.agent else choice.agent,
        "data": absolute(choice.data),
        "limits": asdict(choice.limits) if isinstance(choice.limits, Limits) else choice.limits or {},
        "settings": values["settings"] or {},
        "cases": list(choice.cases),
    }


def is_stream(run: BenchRun) -> bool:
    """Whether this is the record of a stream, whose legs are runs of their own."""
    return run.benchmark.startswith(STREAM)


def refuse_stream(run: BenchRun) -> None:
    """Raises `InvalidInput` for the record of a stream, which is not a run."""
    if is_stream(run):
        raise InvalidInput(
            f"{run.id} is a stream of several runs. To resume it: mulligan bench stream --resume {run.id}"
        )


def choice_of(options: Mapping[str, Any]) -> BenchOptions:
    """Read what `choice_json` wrote, in this or an older version. Options of newer versions are ignored."""
    known = BenchOptions.fields()
    return BenchOptions(**{name: value for name, value in options_of_today(options).items() if name in known})


def options_of_today(options: Mapping[str, Json]) -> dict[str, Json]:
    """The options of a run under their current names. Before 0.2, "strategy" was the name of the method."""
    if "method" in options or "strategy" not in options:
        return dict(options)
    return {"method": options["strategy"], **options, "strategy": None}
