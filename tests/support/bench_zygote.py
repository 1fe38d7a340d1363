"""Runs a benchmark, or goes on with a run, for each line on stdin, in a child forked from a process that has everything
imported.

A line is {"store": FILE, "data": FILE, "port": N, "parallel": N, "resume": RUN or null}. Answers, a line each:
{"pid": N}; {"ready": true} once the child has the run's lease; {"exit": STATUS, "said": TEXT} when it has ended: what
became of the cases, or the error. The child is the one that gets killed: real SQLite, real HTTP.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

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


def tell(**what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


PRELOADED = (
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "mulligan.actors.complete",
    "mulligan.reflectors.verbal",
    "mulligan.strategies.reflexion",
    "mulligan.sandbox.local",
)


def main() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{order['port']}/v1"
        os.environ["OPENAI_API_KEY"] = "none"
        out = Path(order["store"]).with_suffix(".said")
        out.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            out.write_text(asyncio.run(bench(order)))
            os._exit(0)
        tell(pid=pid)
        _, status = os.waitpid(pid, 0)
        tell(exit=os.waitstatus_to_exitcode(status), said=out.read_text() if out.exists() else "")


if __name__ == "__main__":
    main()
