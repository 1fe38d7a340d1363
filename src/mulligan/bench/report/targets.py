"""The hidden targets of a run's cases, for one who asks for them by name: nothing else of a report reads them."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.app.config import load
from mulligan.app.models_by_name import Models
from mulligan.app.session import Session
from mulligan.bench.harness.plan import LOG, choice_of, make_plan
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json


def targets_of(run: BenchRun) -> Mapping[str, Json]:
    """By case, from the data of the run. Raises `InvalidInput` where these are gone, or are others now."""
    if run.benchmark.startswith(LOG):
        raise InvalidInput(f"Run {run.id} replays a log: its hidden targets stand in that.")
    config, choice = load(), choice_of(run.options)
    plan = make_plan(choice, config, Session(config, Models(config)).sandbox(choice.sandbox))
    for name, sha in plan.files.items():
        if run.rests_on.get(f"data {name}") != sha:
            raise InvalidInput(f"The data {name} is not what run {run.id} was made with: its targets are not shown.")
    return {case.id: case.target for case in plan.cases}
