"""A benchmark whose cases another program runs one at a time, such as Inspect."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.plugins import names
from mulligan.app.runner import Runner, log, restart_seed
from mulligan.app.session import Session
from mulligan.bench.harness.banks import with_memory
from mulligan.bench.harness.cases import handed_in
from mulligan.bench.harness.plan import BenchOptions, BenchPlan, choice_json, choice_of, chosen_method, make_plan
from mulligan.core.benchmarks import Score
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Model, Observer
from mulligan.core.records import Attempt, Case, Episode, Json, Trial
from mulligan.store import open_store


@dataclass
class Bench:
    """A benchmark that another program runs, such as Inspect.

    Attributes:
        asked: the options that the user set.
        plan: the plan that was made from them.
        cases: the cases by id.
        busy: whether an episode is running.
    """

    asked: BenchOptions
    plan: BenchPlan
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    busy: bool = False

    @staticmethod
    def names() -> list[str]:
        """Returns the names of the benchmarks in Mulligan and in installed packages."""
        return names("benchmarks")

    @staticmethod
    def options(benchmark: str, given: Mapping[str, Any]) -> dict[str, Json]:
        """Returns the options as JSON, for `open` and a sample's metadata.

        Raises:
            InvalidInput: an option is unknown.
        """
        unknown = sorted(set(given) - set(BenchOptions.fields()))
        if unknown:
            raise InvalidInput(f"Benchmarks have no option {unknown[0]!r}.")
        cases: Any = given.get("cases", ())
        ids: list[str] = cases.split(",") if isinstance(cases, str) else list(cases)
        options: dict[str, Any] = {**given, "cases": ids}
        return json.loads(json.dumps(choice_json(BenchOptions(benchmark, **options))))

    @classmethod
    def open(cls, options: Mapping[str, Json]) -> Bench:
        """Returns the benchmark with these options, loading it once per process.

        Raises:
            InvalidInput, UnknownName
        """
        key = json.dumps(options, sort_keys=True)
        if key not in _opened:
            config, choice = load(), choice_of(options)
            plan = make_plan(choice, config, Session(config, Models(config)).sandbox(choice.sandbox))
            if plan.notice:
                log.warning(plan.notice)
            _opened[key] = cls(choice, plan, {case.id: case for case in plan.cases})
        return _opened[key]

    async def play(
        self,
        case: str,
        changes: Mapping[str, Any],
        model: Model,
        reflects: Model | None,
        observer: Observer,
        epoch: int,
    ) -> Episode:
        """Run one episode, and record it in Mulligan's store.

        Args:
            case: the id of the case.
            changes: fields of `BenchOptions` to replace, such as strategy and tries.
            reflects: the model that reflects; None: `model`.
            epoch: the number of the repetition of the sample, from 1.

        Raises:
            InvalidInput: a bank would learn from several cases at the same time.
        """
        config = self.plan.config
        models = Models(config)
        choice = self.asked.changed(model=models.name(model), **changes)
        if reflects is not None:
            choice = choice.changed(reflect_model=models.name(reflects))
        plan = self._changed_plan(choice)
        async with self._running(choice.memory == "online"), open_store(config.store) as store:
            run = f"i{secrets.token_hex(4)}"
            recipe = plan.recipe(self.cases[case], run)
            async with Session(config, models).parts(recipe) as parts:
                runner = Runner(store, recipe, with_memory(parts, choice.memory), [observer])
                return await runner.begin(f"{run}.1", run, self.cases[case].task, restart_seed(recipe.seed, epoch))

    async def score(self, case: str, episode: str | None, output: str) -> Score:
        """Returns the score against the hidden target.

        Args:
            episode: the episode's id. None: scores `output`, which another solver wrote.
        """
        target = self.cases[case]
        if episode is None:
            judged = Episode("inspect", target.task, trials=(Trial(1, Attempt(output)),))
        else:
            async with open_store(self.plan.config.store) as store:
                judged = await store.load(episode)
            handed = self.handed_in(judged)
            if handed is None:
                return Score(None, "no attempt was made")
            judged = replace(judged, trials=judged.trials[: handed.number])
        return await self.plan.benchmark.score(target, judged)

    def handed_in(self, episode: Episode) -> Trial | None:
        """Returns the trial whose attempt is scored, or None if there is none."""
        return handed_in(episode.trials, self.plan.method.hand_in) if episode.trials else None

    def _changed_plan(self, choice: BenchOptions) -> BenchPlan:
        """The plan with other options."""
        chosen = chosen_method(self.plan.name, self.plan.benchmark, choice)
        if chosen.notice and chosen.notice != self.plan.notice:
            log.warning(chosen.notice)
        choice = choice.changed(method=chosen.name, strategy=chosen.strategy)
        return replace(self.plan, choice=choice, method=chosen.method)

    @asynccontextmanager
    async def _running(self, learns: bool) -> AsyncGenerator[None]:
        """Raises `InvalidInput` if the bank learns and another episode is running."""
        if learns and self.busy:
            raise InvalidInput(
                "With an online bank, each sample learns from those before it, so samples run in order, one at a "
                "time: use --max-samples 1, or memory=frozen."
            )
        self.busy = True
        try:
            yield
        finally:
            self.busy = False


_opened: dict[str, Bench] = {}
"""The benchmarks of this process, by their options as JSON."""
