"""Begins and resumes benchmark runs, whose cases run several at once."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from mulligan.app.compose import object_name
from mulligan.app.config import Config, load
from mulligan.app.model_roles import Models
from mulligan.app.options import taken_by
from mulligan.app.runner import log
from mulligan.bench.fanout.cluster import on_ray
from mulligan.bench.harness.cases import Cases, Hooks, Opener, Workers
from mulligan.bench.harness.plan import BenchOptions, BenchPlan, CaseOptions, choice_json
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import NotFound
from mulligan.core.protocols import Bank, Model, Store, Strategy
from mulligan.recording.leases import leased
from mulligan.text.plain import count


@dataclass(frozen=True)
class Finished:
    """A run, and the results of its ended cases, in the order of the run."""

    run: BenchRun
    results: Sequence[CaseResult]


class RunBenchmarkOptions(CaseOptions):
    """The options of `mulligan.run_benchmark`.

    Attributes:
        model: A name or an object.
        strategy: A name, an object, or a class that is instantiated afresh for each episode. None: the method's own.
        store: Used instead of the configured one.
        bank: Used instead of the one that `agent_id` names.
        hooks: Observers.
        on: Where the cases run, if not in this process: `ray` (a Ray on this machine, started for the
            run), `ray://HOST:PORT` (a cluster, through Ray's client), or `ray:ADDRESS` (a cluster that this machine
            belongs to). Objects cannot be sent to other processes, so everything has to be given by name, and hooks
            do not get single events and steps.
    """

    store: Store | None = None
    bank: Bank | None = None
    hooks: Hooks = Hooks()
    on: str | None = None


@taken_by(RunBenchmarkOptions)
async def run_benchmark(*args: Any, **named: Any) -> Finished:
    """Run a benchmark's cases, and score each against its hidden target when its episode ends.

    A failing case does not end the run. `resume_benchmark` resumes a run that was cancelled or killed.
    benchmark: a name (`mulligan bench list`), `name:argument`, or a file of tasks.

    Returns:
        The run, with the results of all its cases.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
        StoreError: the store cannot be written.
        ClusterError: Ray could not be reached, or failed. Finished cases are kept.
    """
    call: RunBenchmarkOptions = RunBenchmarkOptions.from_call("run_benchmark", args, named)
    config = load()
    models = Models(config)
    bench = _Bench(Opener(config, models, call.store, call.bank, call.hooks), call.on)
    plain = {name: getattr(call, name) for name, (_, field) in BenchOptions.fields().items() if field.init}
    plain |= {"model": models.name(call.model), "strategy": bench.name_of(call.strategy)}
    return await bench.begin(BenchOptions(**plain))


async def resume_benchmark(
    run: str,
    *,
    parallel: int | None = None,
    model: Model | None = None,
    strategy: Strategy | type[Strategy] | None = None,
    store: Store | None = None,
    bank: Bank | None = None,
    hooks: Hooks = Hooks(),
    on: str | None = None,
) -> Finished:
    """Resume a benchmark run. Finished cases are kept; cases that ended with an error run again.

    Args:
        run: the run's id, or the beginning of its id.
        parallel: a new number of cases to run in parallel.
        model, strategy, bank: if the run was started with objects, pass them again.
        store: used instead of the configured one.
        hooks: observers.
        on: see `run_benchmark`. It can differ from the original run.

    Raises:
        NotFound: no run has this id.
        JournalDiverged: data, prompts, models or settings have changed.
        LeaseLost: another process is running it.
        ClusterError: Ray could not be reached, or failed. Finished cases are kept.
    """
    config = load()
    models = Models(config)
    models.name(model)
    bench = _Bench(Opener(config, models, store, bank, hooks), on)
    bench.name_of(strategy)
    return await bench.resume(run, parallel)


async def run_with_id(store: Store, id: str) -> BenchRun | None:
    """The run with exactly this id. None: there is none."""
    with suppress(NotFound):
        run = await store.benches.run(id)
        return run if run.id == id else None
    return None


async def run_or_resume(
    id: str,
    choice: BenchOptions,
    *,
    store: Store,
    models: Models,
    config: Config,
    bank: Bank | None = None,
    hooks: Hooks = Hooks(),
) -> Finished:
    """Resume the run with this id, or begin it with these options. A finished run is returned as it is."""
    bench = _Bench(Opener(config, models, store, bank, hooks))
    run = await run_with_id(store, id)
    if run is None:
        return await bench.begin(choice, id)
    results = await store.benches.results(id)
    if len(results) == len(run.cases) and all(result.status != "error" for result in results):
        return Finished(run, results)
    return await bench.resume(id, None)


async def run_plan(plan: BenchPlan, models: Models, store: Store, hooks: Hooks = Hooks()) -> Finished:
    """Run a plan."""
    return await _Bench(Opener(plan.config, models, store, None, hooks)).start(plan, "")


@dataclass(frozen=True)
class _Bench:
    """Begins and resumes runs. on: see `run_benchmark`."""

    opener: Opener
    on: str | None = None

    def name_of(self, strategy: str | Strategy | type[Strategy] | None) -> str | None:
        """The name of a strategy. An object is kept for the episodes."""
        if strategy is None or isinstance(strategy, str):
            return strategy
        self.opener.objects["strategy"] = strategy
        return object_name(strategy)

    async def begin(self, choice: BenchOptions, id: str = "") -> Finished:
        """Plans a new run, says what it will do, and runs it."""
        plan = self.opener.plan(choice)
        notice = self.opener.hooks.notice
        if plan.notice:
            (notice or log.warning)(plan.notice)
        (notice or log.info)(plan.summary())
        judges = [plan.benchmark.play(case, plan.method).evaluator.name for case in plan.cases]
        if by_model := judges.count("model_judge"):
            (notice or log.info)(
                f"In {by_model} of {count(len(judges), 'case')}, only a model judges each try: the model that answers "
                "judges itself, unless you name another judge. A hidden answer only scores the result."
            )
        return await self.start(plan, id)

    async def start(self, plan: BenchPlan, id: str) -> Finished:
        """Runs a plan. id: the id of the run; "": a new one."""
        async with self.opener.cases(plan) as cases:
            run = BenchRun(
                id or f"b{secrets.token_hex(4)}",
                plan.choice.benchmark,
                round(time.time(), 3),
                choice_json(plan.choice),
                tuple(case.id for case in plan.cases),
                plan.rests_on(cases.parts),
            )
            async with self._workers(cases) as workers:
                await cases.store.benches.begin(run)
                async with leased(cases.store.benches, run.id):
                    return await _Run(run, cases, workers).finish({})

    async def resume(self, prefix: str, parallel: int | None) -> Finished:
        async with (
            self.opener.resumed(prefix, parallel) as (run, cases),
            leased(cases.store.benches, run.id),
            self._workers(cases) as workers,
        ):
            results = await cases.store.benches.results(run.id)
            done = {result.position: result for result in results if result.status != "error"}
            return await _Run(run, cases, workers).finish(done)

    @asynccontextmanager
    async def _workers(self, cases: Cases) -> AsyncGenerator[Workers]:
        if self.on is None:
            yield cases
            return
        async with on_ray(self.on, self.opener, cases) as workers:
            yield workers


@dataclass
class _Run:
    """Runs the cases of one run, at most `parallel` at once."""

    run: BenchRun
    cases: Cases
    workers: Workers
    results: list[CaseResult] = field(default_factory=list[CaseResult])

    async def finish(self, done: dict[int, CaseResult]) -> Finished:
        """Run all cases that are not done. done: results by position."""
        plan, store = self.cases.plan, self.cases.store
        self.results = list(done.values())
        for result in self.results:
            self._report(result)
        self._report(None)
        slots = asyncio.Semaphore(plan.choice.parallel)

        async def run_case(position: int) -> None:
            async with slots:
                result = await self.workers.work_on(self.run, position)
                await store.benches.settle(self.run.id, result)
                self.results.append(result)
                self._report(result)

        try:
            async with asyncio.TaskGroup() as group:
                for position in range(1, len(plan.cases) + 1):
                    if position not in done:
                        group.create_task(run_case(position))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return Finished(self.run, tuple(sorted(self.results, key=lambda result: result.position)))

    def _report(self, result: CaseResult | None) -> None:
        try:
            if self.cases.hooks.on_case:
                self.cases.hooks.on_case(self.run, result)
        except Exception:
            log.exception("an observer failed; the run continues")
