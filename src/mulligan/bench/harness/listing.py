"""Lists the benchmarks with their subsets ("cuts"), their methods, and the folders of their data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from mulligan.app.config import load
from mulligan.app.model_roles import Models
from mulligan.app.plugins import find, names, settings_of
from mulligan.app.session import Session
from mulligan.bench.harness.data import find_data
from mulligan.bench.harness.plan import open_benchmark
from mulligan.core.benchmarks import Benchmark
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.protocols import Sandbox
from mulligan.core.records import Json


@dataclass(frozen=True)
class Listed:
    """A benchmark of the list, or one of its cuts.

    Attributes:
        name: as on the command line.
        folder: the folder of its data. None: the data is not here.
        missing: how to get the data. Empty: the data is here.
        methods: the one-line summary of each method, by name.
        sources: the files that `fetch` downloads.
        cuts: one for each other value of the benchmark's first setting.
    """

    name: str
    title: str
    folder: str | None
    missing: str
    methods: Mapping[str, str]
    sources: Sequence[Mapping[str, Json]] = ()
    cuts: Sequence[Listed] = ()

    def to_json(self) -> Json:
        return {**asdict(self), "strategies": dict(self.methods)}  # their name before 0.2, until 0.3


def list_benchmarks() -> Sequence[Listed]:
    """All benchmarks of this package and of installed ones. If one cannot be opened, its title says why."""
    config = load()
    sandbox = Session(config, Models(config)).sandbox("auto")
    return [_listed(name, sandbox) for name in names("benchmarks")]


def _listed(name: str, sandbox: Sandbox, cut: str = "") -> Listed:
    text = f"{name}:{cut}" if cut else name
    try:
        _, benchmark, _ = open_benchmark(text, {}, sandbox)
        cuts = () if cut else tuple(_listed(name, sandbox, other) for other in cuts_of(name)[1:])
    except MulliganError as error:
        return Listed(text, f"cannot be opened: {error}", None, "", {})
    folder, missing = _data_folder(text, benchmark)
    methods = {name: method.summary for name, method in benchmark.methods().items()}
    sources = [asdict(source) for source in benchmark.sources]
    return Listed(text, benchmark.title, folder, missing, methods, sources, cuts)


def cuts_of(name: str) -> Sequence[str]:
    """The values of the benchmark's first setting, the default first. Empty: it is not a `Literal`."""
    cls: type[Any] = find("benchmarks", name)
    first = next(iter(settings_of(cls).values()), None)
    kind = get_type_hints(cls.__init__).get(first.name) if first else None
    if first is None or get_origin(kind) is not Literal:
        return ()
    values = [str(value) for value in get_args(kind)]
    return sorted(values, key=lambda value: value != first.default)


def _data_folder(text: str, benchmark: Benchmark) -> tuple[str | None, str]:
    """The folder of the data and "", or None and how to get the data."""
    if not benchmark.data:
        return None, benchmark.where
    try:
        return os.path.commonpath([path.parent for path in find_data(benchmark, None)]), ""
    except InvalidInput:
        return None, f"mulligan bench fetch {text}" if benchmark.sources else benchmark.where
