"""Mulligan's benchmarks as tasks of Inspect (inspect-ai), and its loop as a solver. Needs the extra `inspect`.

    inspect eval mulligan/humaneval --model openai/gpt-4o -T method=reflexion -T limit=20

Inspect brings the model, the log and the viewer; Mulligan the trials, judges and records (docs/benchmark-inspect.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mulligan.inspect_tasks.tasks import benchmark as benchmark
    from mulligan.inspect_tasks.tasks import hidden as hidden
    from mulligan.inspect_tasks.tasks import reflexion as reflexion

__all__ = ["benchmark", "hidden", "reflexion"]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, as Inspect takes seconds to import."""
    if name not in __all__:
        raise AttributeError(f"mulligan.inspect_tasks has no {name}: it has {', '.join(__all__)}.")
    from mulligan.inspect_tasks import tasks

    return getattr(tasks, name)
