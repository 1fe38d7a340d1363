"""Runs the cases of a benchmark, several at once, and resumes a run that was interrupted."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mulligan.app.compose import OBJECT, Drive, Parts, compose, object_name
from mulligan.app.config import Config, load
from mulligan.app.model_roles import Models
from mulligan.app.recipe import Recipe
from mulligan.app.runner import Runner, log, restart_seed
from mulligan.app.scaling import comparing_usage
from mulligan.app.session import Session, opened_store
from mulligan.app.teaching import teach
from mulligan.app.workspaces import Notice
from mulligan.bank.bank import Bank as LessonBank
from mulligan.bench.harness.banks import BankModel, OnlineBank, learning_usage, with_memory
from mulligan.bench.harness.plan import (
    LOG,
    SETTING,
    BenchPlan,
    Choice,
    choice_json,
    choice_of,
    family_of,
    make_plan,
    no_stream,
    task_of,
)
from mulligan.core.benchmarks import BenchRun, CaseResult, Marked, Score, Status
from mulligan.core.episode import RESUMABLE
from mulligan.core.errors import InvalidInput, JournalDiverged, NotFound, StoreError
from mulligan.core.protocols import Bank, Model, Observer, StepRow, Store, Strategy
from mulligan.core.records import Case, Episode, Json, Task, Trial, Usage
from mulligan.core.scaling import scale_of
from mulligan.recording.journal import StepObserver
from mulligan.recording.leases import leased

_NO_TASK = Task("")
OnCase: TypeAlias = Callable[[BenchRun, CaseResult | None], None]
"""Called with each result: first with those of an earlier process, then once with None as the run starts or resumes,
then with each new result as its case ends."""


@dataclass(frozen=True)
class Finished:
    """A run, and the results of the cases that have ended, in the order of the run."""

    run: BenchRun
    results: Sequence[CaseResult]


@dataclass(frozen=True)
class Hooks:
    """Observers of a run. They cannot change it.

    Attributes:
        on_case: see `OnCase`.
        observers: called with each event of each episode.
        on_step: called with each journaled step.
        notice: called with each message to the user.
    """

    on_case: OnCase | None = None
    observers: Sequence[Observer] = ()
    on_step: StepObserver | None = None
    notice: Notice | None = None


async def run_benchmark(
    benchmark: str,
    *,
    model: str | Model | None = None,
    strategy: str | Strategy | type[Strategy] | None = None,
    store: Store | None = None,
    bank: Bank | None = None,
    hooks: Hooks = Hooks(),
    **options: Any,
) -> Finished:
    """Run the cases of a benchmark and score each by its hidden target once its episode is over.

    One failing case never ends the run. `resume_benchmark` resumes a run that was cancelled or killed.

    Args:
        benchmark: a name (`mulligan bench list`), `name:argument`, or a file of tasks.
        model: a name or an object.
        strategy: a name, an object, or a class that is instantiated afresh for each episode. None: the method's own.
        store: used instead of the configured one.
        bank: used instead of the one that `agent_id` names.
        hooks: observers.
        options: the fields of `Choice`, such as method, trials, limit and parallel.

    Returns:
        The run and the results of all its cases.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
        StoreError: the store cannot be written.
    """
    config = load()
    models = Models(config)
    bench = _Bench(config, models, store, bank, hooks)
    named = bench.name_of(strategy)
    return await bench.begin(Choice(benchmark, model=models.name(model), strategy=named, **options))


async def resume_benchmark(
    run: str,
    *,
    parallel: int | None = None,
    model: Model | None = None,
    strategy: Strategy | type[Strategy] | None = None,
    store: Store | None = None,
    bank: Bank | None = None,
    hooks: Hooks = Hooks(),
) -> Finished:
    """Resume a run. Cases that have ended stay; those that ended with an error run again.

    Args:
        run: its id, or the beginning of it.
        parallel: a new number of cases to run at once.
        model, strategy, bank: again, where the run was started with an object.
        store: used instead of the configured one.
        hooks: observers.

    Raises:
        NotFound: no run has this id.
        JournalDiverged: data, prompts, models or settings have changed.
        LeaseLost: another process runs it.
    """
    config = load()
    models = Models(config)
    models.name(model)
    bench = _Bench(config, models, store, bank, hooks)
    bench.name_of(strategy)
    return await bench.resume(run, parallel)


async def run_called(store: Store, id: str) -> BenchRun | None:
    """The run of this very id, if there is one."""
    with suppress(NotFound):
        run = await store.benches.run(id)
        return run if run.id == id else None
    return None


async def run_or_resume(
    id: str, choice: Choice, *, store: Store, models: Models, config: Config, hooks: Hooks = Hooks()
) -> Finished:
    """The run of this id, as far as it can be taken: begun with this choice, or resumed where there is one."""
    bench = _Bench(config, models, store, None, hooks)
    run = await run_called(store, id)
    if run is None:
        return await bench.begin(choice, id)
    results = await store.benches.results(id)
    if len(results) == len(run.cases) and all(result.status != "error" for result in results):
        return Finished(run, results)
    return await bench.resume(id, None)


async def run_plan(plan: BenchPlan, models: Models, store: Store, hooks: Hooks = Hooks()) -> Finished:
    """Run a plan that the caller made."""
    return await _Bench(plan.config, models, store, None, hooks).start(plan, Session(plan.config, models), "")


@dataclass
class _Bench:
    config: Config
    models: Models
    given: Store | None
    bank: Bank | None
    hooks: Hooks
    objects: dict[str, Any] = field(default_factory=dict[str, Any])
    thinker: BankModel | None = None

    def name_of(self, strategy: str | Strategy | type[Strategy] | None) -> str | None:
        """The strategy's name; one that is an object is remembered for the episodes."""
        if strategy is None or isinstance(strategy, str):
            return strategy
        self.objects["strategy"] = strategy
        return object_name(strategy)

    async def begin(self, choice: Choice, id: str = "") -> Finished:
        session = self._session(choice)
        plan = make_plan(choice, self.config, session.sandbox(choice.sandbox))
        if plan.notice:
            (self.hooks.notice or log.warning)(plan.notice)
        (self.hooks.notice or log.info)(plan.summary())
        return await self.start(plan, session, id)

    def _session(self, choice: Choice) -> Session:
        wrap = self._wrap if choice.memory == "online" else None
        return Session(self.config, self.models, self.objects, self.bank, wrap=wrap)

    def _wrap(self, model: Model) -> Model:
        self.thinker = BankModel(model)
        return self.thinker

    async def start(self, plan: BenchPlan, session: Session, id: str) -> Finished:
        """id: of the run; "" stands for a new one."""

        async def go(work: _Work) -> Finished:
            rests_on = plan.rests_on(work.parts)
            run = BenchRun(
                id or f"b{secrets.token_hex(4)}",
                plan.choice.benchmark,
                round(time.time(), 3),
                choice_json(plan.choice),
                tuple(case.id for case in plan.cases),
                rests_on,
            )
            await work.store.benches.begin(run)
            async with leased(work.store.benches, run.id):
                return await work.finish(run, {})

        return await self._with(plan, session, go)

    async def resume(self, prefix: str, parallel: int | None) -> Finished:
        async with opened_store(self.given, self.config) as store:
            run = await store.benches.run(prefix)
        if run.benchmark.startswith(LOG):
            log = run.benchmark.removeprefix(LOG)
            raise InvalidInput(f"Run {run.id} replays a log; begin that again: mulligan bench replay {log}")
        no_stream(run)
        choice = choice_of(run.options)
        if (choice.strategy or "").startswith(OBJECT) and "strategy" not in self.objects:
            raise InvalidInput(
                f"Run {run.id} was started from Python with a strategy of its own ({choice.strategy}): resume it "
                "there, with mulligan.resume_benchmark(id, strategy=…)."
            )
        choice = choice if parallel is None else replace(choice, parallel=parallel)
        session = self._session(choice)
        plan = make_plan(choice, self.config, session.sandbox(choice.sandbox))

        async def go(work: _Work) -> Finished:
            async with leased(work.store.benches, run.id):
                if differs := differences(run.rests_on, plan.rests_on(work.parts)):
                    otherwise = "begin a new run, without --resume"
                    raise JournalDiverged(differs, of=f"the benchmark run {run.id}", otherwise=otherwise)
                done = {result.position: result for result in await work.store.benches.results(run.id)}
                return await work.finish(run, {n: r for n, r in done.items() if r.status != "error"})

        return await self._with(plan, session, go)

    async def _with(self, plan: BenchPlan, session: Session, go: Callable[[_Work], Any]) -> Finished:
        recipe = plan.recipe(plan.cases[0], "")
        async with opened_store(self.given, self.config) as store, session.parts(recipe) as parts:
            parts = with_memory(parts, plan.choice.memory)
            if plan.choice.memory == "online" and isinstance(parts.bank, LessonBank):
                known = store.benches.answered if plan.choice.reuse else None
                parts = replace(parts, bank=OnlineBank(parts.bank, store, self.thinker, known))
            return await go(_Work(plan, store, parts, self.hooks))


@dataclass
class _Work:
    """Runs the cases of one run, at most `parallel` at once."""

    plan: BenchPlan
    store: Store
    parts: Parts
    hooks: Hooks
    results: list[CaseResult] = field(default_factory=list[CaseResult])

    async def finish(self, run: BenchRun, done: dict[int, CaseResult]) -> Finished:
        """Run all cases but those that are done. done: results by position."""
        self.results = list(done.values())
        for result in self.results:
            self._report(run, result)
        self._report(run, None)
        waiting = asyncio.Semaphore(self.plan.choice.parallel)

        async def one(position: int, case: Case) -> None:
            async with waiting:
                result = await self._case(run, position, case)
                await self.store.benches.settle(run.id, result)
                self.results.append(result)
                self._report(run, result)

        try:
            async with asyncio.TaskGroup() as group:
                for position, case in enumerate(self.plan.cases, 1):
                    if position not in done:
                        group.create_task(one(position, case))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return Finished(run, tuple(sorted(self.results, key=lambda result: result.position)))

    async def _case(self, run: BenchRun, position: int, case: Case) -> CaseResult:
        episodes, marked = list[Episode](), list[Marked]()
        text, failed = "", ""
        grouped = (scale := scale_of(self.plan.choice.scale)) is not None and scale.kind != "sequential"
        try:
            if grouped:
                episodes += await self._group(run, position, case)
                scored = [await self._scored(case, episode) for episode in episodes]
                marked, text = [mark for mark, _ in scored], scored[0][1]
            for number in () if grouped else range(1, self.plan.choice.episodes + 1):
                episodes.append(await self._episode(run, position, number, case))
                mark, text = await self._scored(case, episodes[-1])
                marked.append(mark)
                if self.plan.choice.samples is None and marked[-1].score == 1:
                    break
        except StoreError:  # a lease that was lost, too: without a record the case must not continue
            raise
        except asyncio.CancelledError:
            if _asked_to_stop():
                raise
            failed = "its own model, tool or environment cancelled it"
        except JournalDiverged as error:
            failed = f"its record and what it asks now differ: {'; '.join(error.changed)}"
        except Exception as error:  # one failing case never ends the run
            log.debug("case %s failed", case.id, exc_info=True)
            failed = f"{type(error).__name__}: {error}"
        broken = [e.stop.detail for e in episodes if e.stop and e.stop.reason == "error"]
        failed = failed or (broken[0] if broken else "")
        return CaseResult(
            position,
            case.id,
            "error" if failed else _status(marked[:1] if grouped else marked),
            tuple(marked),
            failed or text,
            round(sum(episode.seconds for episode in episodes), 3),
            sum((episode.usage for episode in episodes), await self._usage(episodes, comparing_usage)),
            await self._usage(episodes, learning_usage),
            family_of(case),
            case.phase,
        )

    async def _usage(self, episodes: Sequence[Episode], of: Callable[[Sequence[StepRow]], Usage]) -> Usage:
        """What was done with the episodes used that their own usage leaves out: by the bank, or to compare them."""
        if self.plan.choice.memory != "online" and self.plan.choice.scale is None:
            return Usage()
        return sum([of(await self.store.steps(episode.id)) for episode in episodes], Usage())

    async def _group(self, run: BenchRun, position: int, case: Case) -> Sequence[Episode]:
        """The trajectories of a scaled case, the one that is handed in first."""
        recipe = self.plan.recipe(case, run.id)
        self._check_prompts(run, recipe)
        return await self._runner(recipe).group(f"{run.id}.{position}", run.id, task_of(case))

    def _runner(self, recipe: Recipe) -> Runner:
        return Runner(
            self.store,
            recipe,
            self.parts,
            self.hooks.observers,
            on_step=self.hooks.on_step,
            notice=self.hooks.notice or log.info,
            known=self.store.benches.answered if self.plan.choice.reuse else None,
        )

    async def _episode(self, run: BenchRun, position: int, number: int, case: Case) -> Episode:
        id = f"{run.id}.{position}.{number}"
        recipe = self.plan.recipe(case, run.id)
        runner = self._runner(recipe)
        try:
            episode = await self.store.load(id)
        except NotFound:
            self._check_prompts(run, recipe)
            return await runner.begin(id, run.id, task_of(case), restart_seed(recipe.seed, number))
        if episode.stop and episode.stop.reason not in RESUMABLE:
            if recipe.learns and self.parts.bank is not None:  # it may have been killed before the bank learned from it
                await teach(self.parts.bank, episode, runner.notice)
            return episode
        return await runner.resume_episode(episode)

    def _check_prompts(self, run: BenchRun, recipe: Recipe) -> None:
        """Raises `JournalDiverged` where a prompt, read anew for each episode, was edited since the run began."""
        now = compose(recipe, self.parts, Drive(seed=recipe.seed)).head.prompts
        edited = [f"prompt {name}" for name, sha in now.items() if run.rests_on.get(f"prompt {name}", sha) != sha]
        if edited:
            raise JournalDiverged(edited)

    async def _scored(self, case: Case, episode: Episode) -> tuple[Marked, str]:
        """The scores of the attempt that would be handed in after each trial, and the text of the last score."""
        known: dict[int, Score] = {}
        handed = [handed_in(episode.trials[:n], self.plan.method.hand_in) for n in range(1, len(episode.trials) + 1)]
        for trial in handed:
            if trial.number not in known:
                upto = replace(episode, trials=episode.trials[: trial.number])
                known[trial.number] = await self.plan.benchmark.score(case, upto)
        scores = [known[trial.number] for trial in handed]
        names = dict.fromkeys(name for score in scores for name in score.parts)
        parts = {name: tuple(score.parts.get(name) for score in scores) for name in names}
        mark = Marked(episode.id, tuple(score.value for score in scores), parts)
        return mark, scores[-1].text if scores else "no attempt was made"

    def _report(self, run: BenchRun, result: CaseResult | None) -> None:
        try:
            if self.hooks.on_case:
                self.hooks.on_case(run, result)
        except Exception:
            log.exception("an observer failed; the run goes on")


def _asked_to_stop() -> bool:
    """Whether this asyncio task is being cancelled from outside, as all are when the run is interrupted."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def handed_in(trials: Sequence[Trial], which: str) -> Trial:
    """The trial whose attempt is scored: the last, or the "best" by the loop's own feedback."""
    best = Episode("", _NO_TASK, trials=tuple(trials)).best if which == "best" else trials[-1]
    assert best is not None
    return best


def differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    """What has changed since the run began, by name; with the values where these are short and not hashes."""
    before, now = _completed(before), _completed(now)

    def described(name: str) -> str:
        values = [repr(one[name]) if name in one else "absent" for one in (before, now)]
        plain = name.startswith(("model ", SETTING)) and all(len(value) <= 60 for value in values)
        return f"{name} (was {values[0]}, is {values[1]})" if plain else name

    return [described(name) for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


def _completed(rests_on: Mapping[str, Json]) -> dict[str, Json]:
    """The record with defaults for the settings that it is too old to have: see `Recipe.completed`."""
    settings = {name.removeprefix(SETTING): value for name, value in rests_on.items() if name.startswith(SETTING)}
    return {**rests_on, **{f"{SETTING}{name}": value for name, value in Recipe.completed(settings).items()}}


def _status(marked: Sequence[Marked]) -> Status:
    scores = [one.score for one in marked]
    if any(score == 1 for score in scores):
        return "solved"
    return "unjudged" if not scores or all(score is None for score in scores) else "failed"
