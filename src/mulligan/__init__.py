"""Mulligan retries language agents with the reason for the failure, and remembers what fixed it.

    episode = await mulligan.solve("Write a function add(a, b).", tests="tests.py", model="local", tries=4)
    print(episode.best.attempt.output)

Each name is imported when it is first used, so that `import mulligan` is fast.
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
    "app.memory": "Bank",
    "app.removal": "removable_runs remove_runs",
    "app.run": "run",
    "app.solve": "resume solve solve_sync",
    "app.traces": "learn_traces",
    "app.transcripts": "learn",
    "bench.harness.running": "resume_benchmark run_benchmark",
    "bench.harness.scoring": "score_samples",
    "core.errors": "MulliganError NotSolved",
    "core.limits": "Limits",
    "core.loops": "LoopDetector",
    "core.records": "Attempt Episode Feedback Finding Image Reflection Step Task Trial",
    "functions.memory": "memory",
    "functions.notes": "Notes",
    "functions.retry": "retry",
    "functions.tracing": "LearningSpanProcessor",
    "functions.wrap": "wrap",
    "models.scripted": "ScriptedModel",
    "text.evidence": "TaskFeedback evidence_of findings_of",
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
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
