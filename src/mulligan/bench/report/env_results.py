"""A run of ALFWorld as the reference's files: what became of each environment after trial 0, 1, …, and its memory."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.app.config import Config
from mulligan.app.models_by_name import Models
from mulligan.app.session import Session
from mulligan.bench.alfworld._env_results import EnvResult
from mulligan.bench.alfworld.alfworld import Alfworld
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import choice_of, open_benchmark
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Episode


async def env_results(prefix: str, store: Store, config: Config) -> Sequence[Sequence[EnvResult]]:
    """One list for each trial, all environments of the data in each, in its order.

    Of a run that went on from a file of the reference's, what that file says is the beginning: its memories come first,
    and what was not played stands as it stood. Of several episodes of a game the last counts. Raises `NotFound`,
    `InvalidInput` for a run of another benchmark, or data that is not here.
    """
    run = await store.benches.run(prefix)
    choice = choice_of(run.options)
    sandbox = Session(config, Models(config)).sandbox(choice.sandbox)
    _, benchmark, given = open_benchmark(choice.benchmark, choice.settings.get("benchmark", {}), sandbox)
    if not isinstance(benchmark, Alfworld):
        raise InvalidInput(f"Run {run.id} is of {run.benchmark}: only ALFWorld has results in the reference's form.")
    targets = {case.id: case.target for case in benchmark.load(find_data(benchmark, given or choice.data))}
    known = {each.name: each for each in benchmark.earlier}
    for target in targets.values():
        known.setdefault(target["env"], EnvResult(target["env"], tuple(target["memory"])))
    played = dict[str, Episode]()
    for result in await store.benches.results(run.id):
        if result.case not in targets:
            raise InvalidInput(f"Run {run.id} is of other data: it has {result.case!r}, which is not here (any more).")
        if result.episodes:
            played[targets[result.case]["env"]] = await store.load(result.episodes[-1].episode)
    most = max((len(episode.trials) for episode in played.values()), default=0)
    names = sorted(known, key=lambda name: int(name.rpartition("_")[2]))
    return [[_after(trial, known[name], played.get(name)) for name in names] for trial in range(1, most + 1)]


def _after(trial: int, known: EnvResult, episode: Episode | None) -> EnvResult:
    """What is known once this trial (from 1) is over; the reflection on it included."""
    if episode is None:
        return known
    trials = episode.trials[:trial]
    memory = tuple(each.lesson for each in trials if each.lesson)
    solved = any(each.feedback is not None and bool(each.feedback.passed) for each in trials)
    return EnvResult(known.name, (*known.memory, *memory), solved, known.skip)
