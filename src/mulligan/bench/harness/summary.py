"""Writes the results of a run in the metrics or formats of its benchmark, such as those of Mind2Web and ALFWorld."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.app.config import Config, load
from mulligan.app.model_roles import Models
from mulligan.app.plugins import find, parse_spec
from mulligan.app.session import Session
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import choice_of, make_plan, open_benchmark, plain_name, reader_of
from mulligan.bench.harness.running import Finished
from mulligan.core.benchmarks import Exports, ResultFile, Summarizes
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Json
from mulligan.text.plain import count


def check_summary(benchmark: str) -> None:
    """Raises `InvalidInput` unless the benchmark, as the user names it, has metrics of its own."""
    name = reader_of(benchmark) or parse_spec("benchmarks", plain_name(benchmark)).name
    if not hasattr(find("benchmarks", name), "summary"):
        raise InvalidInput(
            f"{benchmark} does not have its own metrics for --output-dir. To see its figures: mulligan bench report RUN"
        )


async def write_summary(finished: Finished, store: Store, folder: Path) -> Sequence[str]:
    """Write a JSON file for each part of the summary of the first episodes of all finished cases.

    Returns a line about the files, and one about the cases that are not in them, if there are any.

    Raises `InvalidInput` if no case has finished, or a file cannot be written.
    """
    config = load()
    choice = choice_of(finished.run.options)
    benchmark = make_plan(choice, config, Session(config, Models(config)).sandbox(choice.sandbox)).benchmark
    assert isinstance(benchmark, Summarizes), "see check_summary"
    ended = [result for result in finished.results if result.status != "error" and result.episodes]
    episodes = {result.case: await store.load(result.episodes[0].episode) for result in ended}
    if not episodes:
        raise InvalidInput(f"No case of {finished.run.id} finished, so there is nothing to write.")
    parts = benchmark.summary(episodes)
    _write(parts, folder)
    lines = [f"{folder}: {', '.join(f'{name}.json' for name in parts)}"]
    if left := len(finished.run.cases) - len(episodes):
        lines.append(f"Left out of these figures, with an error or unfinished: {count(left, 'case')}")
    return lines


async def result_files(prefix: str, store: Store, config: Config, start: int) -> Sequence[ResultFile]:
    """The results of a run in the format of its benchmark. start: the number of the first file.

    Raises:
        NotFound: no run's id begins with `prefix`.
        InvalidInput: the run's benchmark has no such format, or its data is missing.
    """
    run = await store.benches.run(prefix)
    choice = choice_of(run.options)
    sandbox = Session(config, Models(config)).sandbox(choice.sandbox)
    _, benchmark, data = open_benchmark(choice.benchmark, (choice.settings or {}).get("benchmark", {}), sandbox)
    if not isinstance(benchmark, Exports):
        raise InvalidInput(
            f"Run {run.id} is a {run.benchmark} run, but only ALFWorld runs have results in this format."
        )
    cases = benchmark.load(find_data(benchmark, data or choice.data))
    known = {case.id for case in cases}
    episodes = dict[str, Episode]()
    for result in await store.benches.results(run.id):
        if result.case not in known:
            raise InvalidInput(
                f"Run {run.id} used different data: its game {result.case!r} is not in the current data."
            )
        if result.episodes:
            episodes[result.case] = await store.load(result.episodes[-1].episode)
    return benchmark.result_files(cases, episodes, start)


def _write(parts: Mapping[str, Json], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            text = json.dumps(part, indent=2, ensure_ascii=False)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The metrics cannot be written to {folder}: {error.strerror or error}.") from error
