"""Writes the metrics of a run whose benchmark has its own, such as Mind2Web's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.plugins import find, parse_spec
from mulligan.app.session import Session
from mulligan.bench.harness.plan import choice_of, make_plan, plain_name, reader_of
from mulligan.bench.harness.running import Finished
from mulligan.core.benchmarks import Summarizes
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Json


def check_summary(benchmark: str) -> None:
    """Raises `InvalidInput` where this benchmark (as the user names it) has no metrics of its own."""
    name = reader_of(benchmark) or parse_spec("benchmarks", plain_name(benchmark)).name
    if not hasattr(find("benchmarks", name), "summary"):
        raise InvalidInput(
            f"{benchmark} has no metrics of its own for --output-dir: mulligan bench report RUN gives its figures."
        )


async def write_summary(finished: Finished, store: Store, folder: Path) -> Sequence[str]:
    """Write a JSON file for each part of the summary, over the first episodes of all cases that ran to their end.

    Returns a line about the files, and one about the cases that are not in them, if there are any.

    Raises `InvalidInput` where no case has ended, or a file cannot be written.
    """
    config = load()
    choice = choice_of(finished.run.options)
    benchmark = make_plan(choice, config, Session(config, Models(config)).sandbox(choice.sandbox)).benchmark
    assert isinstance(benchmark, Summarizes), "see check_summary"
    over = [result for result in finished.results if result.status != "error" and result.episodes]
    episodes = {result.case: await store.load(result.episodes[0].episode) for result in over}
    if not episodes:
        raise InvalidInput(f"No case of {finished.run.id} finished, so there is nothing to write.")
    parts = benchmark.summary(episodes)
    _write(parts, folder)
    lines = [f"{folder}: {', '.join(f'{name}.json' for name in parts)}"]
    if left := len(finished.run.cases) - len(episodes):
        lines.append(f"{left} cases ended with an error or not at all, and are in no figure there")
    return lines


def _write(parts: Mapping[str, Json], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in parts.items():
            text = json.dumps(part, indent=2, ensure_ascii=False)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The metrics cannot be written into {folder}: {error.strerror or error}.") from error
