"""Runs a benchmark, or goes on with a run, for each line on stdin, in a child forked from a process that has everything
imported.

An order (see `forking`) is {"store": FILE, "data": FILE, "port": N, "parallel": N, "resume": RUN or null}. A child says
what became of the cases, or the error. It has real SQLite, real HTTP.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forking import MODELS, serve, tell
from toy_bench import HERE

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.core.errors import MulliganError
from mulligan.store.sqlite import SqliteStore


async def bench(order: dict[str, Any]) -> str:
    store = SqliteStore(order["store"])
    hooks = Hooks(on_case=lambda run, result: tell(ready=True) if result is None else None)
    given: dict[str, Any] = {"store": store, "hooks": hooks, "parallel": order["parallel"]}
    try:
        if order["resume"]:
            ended = await resume_benchmark(order["resume"], **given)
        else:
            given["settings"] = {"reflector": {"check": False}}  # its model always says the same
            ended = await run_benchmark(HERE, model="openai:gpt-test", data=order["data"], **given)
    except MulliganError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await store.close()
    return " ".join(result.status for result in ended.results)


PRELOADED = (
    "mulligan.actors.complete",
    "mulligan.reflectors.verbal",
    "mulligan.strategies.reflexion",
    "mulligan.sandbox.local",
)


if __name__ == "__main__":
    serve((*MODELS, *PRELOADED), bench, lambda order: Path(order["store"]).with_suffix(".said"))
