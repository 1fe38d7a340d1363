"""Mulligan's benchmarks as tasks of Inspect (inspect-ai), and the loop as one of its solvers: the extra `inspect`.

    inspect eval mulligan/humaneval --model openai/gpt-4o -T method=reflexion -T limit=20

Inspect brings the model, its log and its viewer; trials, judges and records are ours. See docs/benchmark-inspect.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mulligan.inspect_tasks.tasks import benchmark as benchmark
    from mulligan.inspect_tasks.tasks import hidden as hidden
    from mulligan.inspect_tasks.tasks import reflexion as reflexion

__all__ = ["benchmark", "hidden", "reflexion"]


def __getattr__(name: str) -> Any:
    """Inspect takes seconds to import, so that happens when it is used."""
    if name not in __all__:
        raise AttributeError(f"mulligan.inspect_tasks has no {name}: it has {', '.join(__all__)}.")
    from mulligan.inspect_tasks import tasks

    return getattr(tasks, name)
