"""What `inspect eval mulligan/NAME` finds, by the entry point of the package: a task for each benchmark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mulligan.inspect_tasks.tasks import benchmark, hidden, inspect_ai, reflexion

__all__ = [
    "alfworld",
    "hidden",
    "hotpotqa",
    "humaneval",
    "humanevalplus",
    "leetcode",
    "mbpp",
    "mbppplus",
    "reflexion",
    "tasks",
    "webshop",
]


def _task(name: str) -> Callable[..., Any]:
    def made(argument: str = "", **options: Any) -> Any:
        return benchmark(f"{name}:{argument}" if argument else name, **options)

    made.__name__ = made.__qualname__ = name
    return inspect_ai.task(made, name=name)


alfworld, hotpotqa, humaneval = _task("alfworld"), _task("hotpotqa"), _task("humaneval")
humanevalplus, mbppplus = _task("humanevalplus"), _task("mbppplus")
leetcode, mbpp, webshop = _task("leetcode"), _task("mbpp"), _task("webshop")


@inspect_ai.task
def tasks(file: str, **options: Any) -> Any:
    """The user's own: a .toml or .jsonl file."""
    return benchmark(file, **options)
