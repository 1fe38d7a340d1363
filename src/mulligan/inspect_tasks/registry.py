"""The tasks of `inspect eval mulligan/NAME`, one for each benchmark. Inspect finds them by the entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mulligan.inspect_tasks.tasks import benchmark, hidden, inspect_ai, reflexion
from mulligan.running import Bench

__all__ = ["hidden", "reflexion", "tasks"]


def _task(name: str) -> Callable[..., Any]:
    def task(argument: str = "", **options: Any) -> Any:
        return benchmark(f"{name}:{argument}" if argument else name, **options)

    task.__name__ = task.__qualname__ = name
    return inspect_ai.task(task, name=name)


globals().update({name: _task(name) for name in Bench.names() if name not in ("tasks", "programs")})


@inspect_ai.task
def tasks(file: str, **options: Any) -> Any:
    """The user's own tasks. file: a .toml or .jsonl file."""
    return benchmark(file, **options)
