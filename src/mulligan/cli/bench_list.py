"""`mulligan bench list`: what can be run."""

from __future__ import annotations

import click

from mulligan.cli.terminal import emit


@click.command("list")
def command() -> None:
    """The benchmarks, their strategies, and whether their data is here."""
    from mulligan.app.bench.data import find_data
    from mulligan.app.bench.plan import open_benchmark
    from mulligan.app.config import load
    from mulligan.app.models_by_name import Models
    from mulligan.app.plugins import names
    from mulligan.app.session import Session
    from mulligan.core.errors import InvalidInput

    config = load()
    sandbox = Session(config, Models(config)).sandbox("auto")
    for name in names("benchmarks"):
        _, benchmark, _ = open_benchmark(name, {}, sandbox)
        try:
            here = f"data: {find_data(benchmark, None)[0].parent}"
        except InvalidInput:
            here = f"data: {'mulligan bench fetch ' + name if benchmark.sources else benchmark.where}"
        emit(f"{name}\n  {benchmark.title}\n  strategies: {', '.join(benchmark.methods())}\n  {here}")
