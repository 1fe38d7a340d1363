"""Mulligan: second tries for language agents that have learned from the first.

    episode = await mulligan.solve("Write a function add(a, b).", tests="tests.py", model="local", tries=4)
    print(episode.best.attempt.output)

Everything named here is imported when it is first used, so that `import mulligan` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # for a type checker it is true; `typing` would take most of the time of this import

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.memory import Bank
    from mulligan.app.removal import removable_runs, remove_runs
    from mulligan.app.run import run
    from mulligan.app.solve import resume, solve, solve_sync
    from mulligan.app.traces import learn_traces
    from mulligan.app.transcripts import learn
    from mulligan.bench.harness.running import resume_benchmark, run_benchmark
    from mulligan.bench.harness.scoring import score_samples
    from mulligan.core.errors import MulliganError, NotSolved
    from mulligan.core.limits import Limits
    from mulligan.core.loops import LoopDetector
    from mulligan.core.records import Attempt, Episode, Feedback, Finding, Image, Reflection, Step, Task, Trial
    from mulligan.functions.memory import memory
    from mulligan.functions.notes import Notes
    from mulligan.functions.retry import retry
    from mulligan.functions.tracing import LearningSpanProcessor
    from mulligan.functions.wrap import wrap
    from mulligan.models.scripted import ScriptedModel
    from mulligan.text.evidence import TaskFeedback, evidence_of, findings_of

_HOMES = {
    "Attempt": "core.records",
    "Bank": "app.memory",
    "Episode": "core.records",
    "Feedback": "core.records",
    "Finding": "core.records",
    "Image": "core.records",
    "LearningSpanProcessor": "functions.tracing",
    "Limits": "core.limits",
    "LoopDetector": "core.loops",
    "MulliganError": "core.errors",
    "NotSolved": "core.errors",
    "Notes": "functions.notes",
    "Reflection": "core.records",
    "ScriptedModel": "models.scripted",
    "Step": "core.records",
    "Task": "core.records",
    "TaskFeedback": "text.evidence",
    "Trial": "core.records",
    "evidence_of": "text.evidence",
    "findings_of": "text.evidence",
    "learn": "app.transcripts",
    "learn_traces": "app.traces",
    "memory": "functions.memory",
    "removable_runs": "app.removal",
    "remove_runs": "app.removal",
    "resume": "app.solve",
    "resume_benchmark": "bench.harness.running",
    "retry": "functions.retry",
    "run": "app.run",
    "run_benchmark": "bench.harness.running",
    "score_samples": "bench.harness.scoring",
    "solve": "app.solve",
    "solve_sync": "app.solve",
    "wrap": "functions.wrap",
}

__all__ = [
    "Attempt",
    "Bank",
    "Episode",
    "Feedback",
    "Finding",
    "Image",
    "LearningSpanProcessor",
    "Limits",
    "LoopDetector",
    "MulliganError",
    "NotSolved",
    "Notes",
    "Reflection",
    "ScriptedModel",
    "Step",
    "Task",
    "TaskFeedback",
    "Trial",
    "evidence_of",
    "findings_of",
    "learn",
    "learn_traces",
    "memory",
    "removable_runs",
    "remove_runs",
    "resume",
    "resume_benchmark",
    "retry",
    "run",
    "run_benchmark",
    "score_samples",
    "solve",
    "solve_sync",
    "wrap",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'mulligan' has no attribute {name!r}")
    return getattr(import_module(f"mulligan.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
