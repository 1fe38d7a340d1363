"""Benchmark runs made up by hand, for tests of their report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mulligan.bench.report.figures import Recorded
from mulligan.core.benchmarks import BenchRun, CaseResult, Marked, Status
from mulligan.core.records import Attempt, Episode, Feedback, Head, Reflection, Stop, Task, Trial, Usage

SHA = "ab" * 32


def case(*scores: float | None, status: Status | None = None, more: Sequence[float | None] = ()) -> dict[str, Any]:
    """The scores of its first episode by trial; `more`: the last ones of further episodes."""
    last = [scores[-1] if scores else None, *more]
    told = "solved" if 1 in last else "unjudged" if all(score is None for score in last) else "failed"
    return {"episodes": [scores, *((score,) for score in more)], "status": status or told}


def recorded(
    *cases: dict[str, Any],
    id: str = "b1",
    total: int | None = None,
    model: str = "openai:gpt",
    source: str = "judge",
    passed: Sequence[bool | None] = (),
    cost: float | None = 0.5,
    data: str = SHA,
    trials: int | None = None,
    **options: Any,
) -> Recorded:
    """passed: the loop's verdict on each case's every trial; without it the hidden one is taken over."""
    results, episodes = list[CaseResult](), dict[str, Episode]()
    for position, one in enumerate(cases, 1):
        marked = list[Marked]()
        for number, scores in enumerate(one["episodes"], 1):
            name = f"{id}.{position}.{number}"
            marked.append(Marked(name, tuple(scores)))
            said = passed[position - 1] if position <= len(passed) else "hidden"
            episodes[name] = _episode(name, id, scores, said, source, cost)
        usage = sum((episodes[mark.episode].usage for mark in marked), Usage())
        results.append(CaseResult(position, f"c{position}", one["status"], tuple(marked), "why", 2.0, usage))
    limit = trials or max((len(scores) for one in cases for scores in one["episodes"]), default=1)
    rests_on = {"data toy.json": data, "model of the actor": model, "setting limits": {"trials": limit}}
    names = tuple(f"c{n}" for n in range(1, (total or len(cases)) + 1))
    chosen = {"method": "reflexion", "strategy": None, "model": model, "seed": 7, **options}
    return Recorded(BenchRun(id, "toy", 1000.0, chosen, names, rests_on), results, episodes)


def _episode(id: str, run: str, scores: Sequence[float | None], said: Any, source: str, cost: float | None) -> Episode:
    trials = list[Trial]()
    for number, score in enumerate(scores, 1):
        verdict = (None if score is None else score == 1) if said == "hidden" else said
        attempt = Attempt(f"try {number}", usage=Usage(100 * number, 10, 1, cost))
        reflection = Reflection("lesson", Usage(50, 5, 1, cost)) if number < len(scores) else None
        trials.append(Trial(number, attempt, Feedback(verdict, "so it is", source=source), reflection))
    passed = bool(trials) and trials[-1].feedback is not None and trials[-1].feedback.passed
    head = Head({"mulligan": "1"}, {"actor": "m"}, {"strategy": {"name": "reflexion", "settings": {}}})
    stop = Stop("solved" if passed else "exhausted")
    return Episode(id, Task("say right"), run, head=head, trials=tuple(trials), stop=stop)
