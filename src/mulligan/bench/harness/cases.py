"""Works on the cases of a benchmark run: opens what they share, runs the episodes of each case, and scores them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from mulligan.app.compose import OBJECT, Drive, Parts, compose
from mulligan.app.config import Config
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
    BenchOptions,
    BenchPlan,
    choice_of,
    family_of,
    make_plan,
    refuse_stream,
    task_of,
)
from mulligan.core.benchmarks import BenchRun, CaseResult, Marked, Score, Status
from mulligan.core.errors import InvalidInput, JournalDiverged, NotFound, StoreError
from mulligan.core.protocols import Bank, Model, Observer, StepRow, Store
from mulligan.core.records import Case, Episode, Json, Task, Trial, Usage
from mulligan.core.scaling import scale_of
from mulligan.recording.journal import StepObserver

_NO_TASK = Task("")
OnCase: TypeAlias = Callable[[BenchRun, CaseResult | None], None]
"""Called with each result: first with those of earlier processes, then once with None when the run starts or resumes,
then with each new result when its case ends."""


@dataclass(frozen=True)
class Hooks:
    """Observers of a run. They cannot change it.

    Attributes:
        on_case: see `OnCase`.
        observers: called with each event of each episode.
        on_step: called with each step of a journal.
        notice: called with each message to the user.
    """

    on_case: OnCase | None = None
    observers: Sequence[Observer] = ()
    on_step: StepObserver | None = None
    notice: Notice | None = None


class Workers(Protocol):
    """Works on the cases of a run: in this process (`Cases`), or elsewhere."""

    async def work_on(self, run: BenchRun, position: int) -> CaseResult:
        """Finish the case at this position, from 1. A case that was begun before is resumed.

        Raises `StoreError` if its record cannot be written. Any other failure is in the result.
        """
        ...


@dataclass
class Opener:
    """Opens the cases of runs.

    Attributes:
        store, bank: used instead of the configured store and the bank of the run.
        objects: roles that were passed as objects, by kind.
        wait: see `Runner`.
    """

    config: Config
    models: Models
    store: Store | None = None
    bank: Bank | None = None
    hooks: Hooks = field(default_factory=Hooks)
    objects: dict[str, Any] = field(default_factory=dict[str, Any])
    wait: float = 0.0
    _bank_model: BankModel | None = field(default=None, init=False)

    def plan(self, choice: BenchOptions) -> BenchPlan:
        """Plans a run. Raises `InvalidInput` for unusable options."""
        return make_plan(choice, self.config, self._session(choice).sandbox(choice.sandbox))

    @asynccontextmanager
    async def cases(self, plan: BenchPlan) -> AsyncGenerator[Cases]:
        """The cases of this plan, with the store, the bank and the other parts that they share."""
        recipe, session = plan.recipe(plan.cases[0], ""), self._session(plan.choice)
        async with opened_store(self.store, self.config) as store, session.parts(recipe) as parts:
            parts = with_memory(parts, plan.choice.memory)
            if plan.choice.memory == "online" and isinstance(parts.bank, LessonBank):
                known = store.benches.answered if plan.choice.reuse else None
                parts = replace(parts, bank=OnlineBank(parts.bank, store, self._bank_model, known))
            yield Cases(plan, store, parts, self.hooks, self.wait)

    @asynccontextmanager
    async def resumed(self, prefix: str, parallel: int | None = None) -> AsyncGenerator[tuple[BenchRun, Cases]]:
        """The run whose id begins with `prefix`, and its cases.

        Raises:
            NotFound: no run has this id.
            InvalidInput: it cannot be resumed, or only from Python.
            JournalDiverged: its data, prompts, models or settings have changed.
        """
        async with opened_store(self.store, self.config) as store:
            run = await store.benches.run(prefix)
        if run.benchmark.startswith(LOG):
            replayed = run.benchmark.removeprefix(LOG)
            raise InvalidInput(f"Run {run.id} replays a log; replay it again: mulligan bench replay {replayed}")
        refuse_stream(run)
        choice = choice_of(run.options)
        if (choice.strategy or "").startswith(OBJECT) and "strategy" not in self.objects:
            raise InvalidInput(
                f"Run {run.id} was started from Python with its own strategy ({choice.strategy}): resume it "
                "there, with mulligan.resume_benchmark(id, strategy=…)."
            )
        plan = self.plan(choice if parallel is None else choice.changed(parallel=parallel))
        async with self.cases(plan) as cases:
            if differs := differences(run.rests_on, plan.rests_on(cases.parts)):
                otherwise = "begin a new run, without --resume"
                raise JournalDiverged(differs, of=f"the benchmark run {run.id}", otherwise=otherwise)
            yield run, cases

    def _session(self, choice: BenchOptions) -> Session:
        wrap = self._wrap if choice.memory == "online" else None
        return Session(self.config, self.models, self.objects, self.bank, wrap=wrap)

    def _wrap(self, model: Model) -> Model:
        self._bank_model = BankModel(model)
        return self._bank_model


@dataclass(frozen=True)
class Cases:
    """The cases of one run in this process. wait: see `Runner`."""

    plan: BenchPlan
    store: Store
    parts: Parts
    hooks: Hooks
    wait: float = 0.0

    async def work_on(self, run: BenchRun, position: int) -> CaseResult:
        """See `Workers`."""
        case = self.plan.cases[position - 1]
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
        except StoreError:  # or a lost lease: without a record, the case must not continue
            raise
        except asyncio.CancelledError:
            if _asked_to_stop():
                raise
            failed = "its own model, tool or environment cancelled it"
        except JournalDiverged as error:
            failed = f"its record and what it asks now differ: {'; '.join(error.changed)}"
        except Exception as error:  # a failing case never ends the run
            log.debug("case %s failed", case.id, exc_info=True)
            failed = f"{type(error).__name__}: {error}"
        broken = [episode.stop.detail for episode in episodes if episode.stop and episode.stop.reason == "error"]
        failed = failed or (broken[0] if broken else "")
        return CaseResult(
            position,
            case.id,
            status="error" if failed else _status(marked[:1] if grouped else marked),
            episodes=tuple(marked),
            text=failed or text,
            seconds=round(sum(episode.seconds for episode in episodes), 3),
            usage=sum((episode.usage for episode in episodes), await self._extra_usage(episodes, comparing_usage)),
            memory=await self._extra_usage(episodes, learning_usage),
            family=family_of(case),
            phase=case.phase,
        )

    async def _extra_usage(self, episodes: Sequence[Episode], of: Callable[[Sequence[StepRow]], Usage]) -> Usage:
        """Usage that the episodes' own usage leaves out. of: computes it from the steps of an episode."""
        if self.plan.choice.memory != "online" and self.plan.choice.scale is None:
            return Usage()
        return sum([of(await self.store.steps(episode.id)) for episode in episodes], Usage())

    async def _group(self, run: BenchRun, position: int, case: Case) -> Sequence[Episode]:
        """The trajectories of a scaled case. The first is handed in."""
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
            wait=self.wait,
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
        if episode.over:
            # The process may have been killed before the bank learned.
            if recipe.learns and self.parts.bank is not None:
                await teach(self.parts.bank, episode, runner.notice)
            return episode
        return await runner.resume_episode(episode)

    def _check_prompts(self, run: BenchRun, recipe: Recipe) -> None:
        """Raises `JournalDiverged` if a prompt was edited since the run began. Each episode reads its prompts again."""
        prompts = compose(recipe, self.parts, Drive(seed=recipe.seed)).head.prompts
        edited = [f"prompt {name}" for name, sha in prompts.items() if run.rests_on.get(f"prompt {name}", sha) != sha]
        if edited:
            raise JournalDiverged(edited)

    async def _scored(self, case: Case, episode: Episode) -> tuple[Marked, str]:
        """The scores of the attempt that would be handed in after each trial, and the text of the last score."""
        by_trial: dict[int, Score] = {}
        handed = [handed_in(episode.trials[:n], self.plan.method.hand_in) for n in range(1, len(episode.trials) + 1)]
        for trial in handed:
            if trial.number not in by_trial:
                until_then = replace(episode, trials=episode.trials[: trial.number])
                by_trial[trial.number] = await self.plan.benchmark.score(case, until_then)
        scores = [by_trial[trial.number] for trial in handed]
        names = dict.fromkeys(name for score in scores for name in score.parts)
        parts = {name: tuple(score.parts.get(name) for score in scores) for name in names}
        mark = Marked(episode.id, tuple(score.value for score in scores), parts)
        return mark, scores[-1].text if scores else "no attempt was made"


def _asked_to_stop() -> bool:
    """Whether this asyncio task is being cancelled from outside, as when the run is interrupted."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def handed_in(trials: Sequence[Trial], which: str) -> Trial:
    """The trial whose attempt is scored: the last, or if `which` is "best", the best by the loop's own feedback."""
    best = Episode("", _NO_TASK, trials=tuple(trials)).best if which == "best" else trials[-1]
    assert best is not None
    return best


def differences(before: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    """The names of what has changed since the run began, with short values that are not hashes."""
    before, now = _completed(before), _completed(now)

    def describe(name: str) -> str:
        values = [repr(rests_on[name]) if name in rests_on else "absent" for rests_on in (before, now)]
        readable = name.startswith(("model ", SETTING)) and all(len(value) <= 60 for value in values)
        return f"{name} (was {values[0]}, is {values[1]})" if readable else name

    return [describe(name) for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


def _completed(rests_on: Mapping[str, Json]) -> dict[str, Json]:
    """The record, with defaults for settings that are newer than it: see `Recipe.completed`."""
    settings = {name.removeprefix(SETTING): value for name, value in rests_on.items() if name.startswith(SETTING)}
    return {**rests_on, **{f"{SETTING}{name}": value for name, value in Recipe.completed(settings).items()}}


def _status(marked: Sequence[Marked]) -> Status:
    scores = [one.score for one in marked]
    if any(score == 1 for score in scores):
        return "solved"
    return "unjudged" if not scores or all(score is None for score in scores) else "failed"
