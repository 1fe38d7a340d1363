"""The tasks, the solver and the scorer for Inspect."""

from __future__ import annotations

from typing import Any

from mulligan.inspect_tasks.model import InspectModel, part
from mulligan.plugins import Episode, InvalidInput, Json, ModelError
from mulligan.running import Acted, Bench, Evaluated, Event, Recalled, Reflected, Stopped

KEY = "mulligan"
"""The key in a sample's metadata for the benchmark's options and the case's id. The target is never in it."""
inspect_ai, _solver, _scorer = part(), part("solver"), part("scorer")


def benchmark(name: str, *, solver: Any = None, **options: Any) -> Any:
    """A benchmark as a task of Inspect, with a sample for each case. No sample has the hidden target.

    Args:
        name: as for `mulligan bench run`: a name, `name:argument`, or a file of tasks.
        solver: None: `reflexion()`.
        options: fields of `mulligan.bench.harness.plan.BenchOptions`, such as data, limit, cases, method, strategy,
            tries, memory and seed.

    Raises:
        InvalidInput: an option cannot be used; no model was called yet.
    """
    choice, inspect_dataset = Bench.options(name, options), part("dataset")
    bench = Bench.open(choice)
    samples = [
        inspect_dataset.Sample(input=case.task.prompt, id=case.id, metadata={KEY: {"case": case.id, "bench": choice}})
        for case in bench.plan.cases
    ]
    dataset = inspect_dataset.MemoryDataset(samples, name=bench.plan.name)
    return inspect_ai.Task(dataset=dataset, solver=solver or reflexion(), scorer=hidden(), name=bench.plan.name)


@_solver.solver
def reflexion(
    strategy: str | None = None,
    trials: int | None = None,
    reflect_role: str | None = None,
    method: str | None = None,
) -> Any:
    """A solver that runs Mulligan's loop on samples of `benchmark`: attempt, verdict, reflection, next attempt.

    Mulligan's store records the episodes, and Inspect's transcript has each event.

    Args:
        method, strategy, trials: used instead of those of the task.
        reflect_role: the model role that reflects. None: the evaluation's own model.
    """

    async def solve(state: Any, generate: Any) -> Any:
        bench, case = _bench_of(state)
        options = {"method": method, "strategy": strategy, "tries": trials}
        changes = {name: value for name, value in options.items() if value is not None}
        transcript = part("log").transcript()

        def observe(episode: Episode, event: Event) -> None:
            transcript.info(_event_json(event), source="mulligan")

        model, reflects = InspectModel(), InspectModel(reflect_role) if reflect_role else None
        episode = await bench.play(case, changes, model, reflects, observe, getattr(state, "epoch", 1))
        if episode.stop and episode.stop.reason == "error":  # so that Inspect counts an error, not a failed sample
            raise ModelError(f"Episode {episode.id} ended with an error: {episode.stop.detail}")
        best = bench.handed_in(episode)
        output = best.attempt.output if best else ""
        state.metadata[KEY] = {**state.metadata[KEY], "episode": episode.id, **_story(episode)}
        state.output = part("model").ModelOutput.from_content(model.id, output)
        state.messages.append(part("model").ChatMessageAssistant(content=output))
        return state

    return solve


@_scorer.scorer(metrics=[_scorer.accuracy(), _scorer.stderr()])
def hidden() -> Any:
    """A scorer by the benchmark's hidden target. A sample that cannot be judged has no score (NaN)."""

    async def score(state: Any, target: Any) -> Any:
        bench, case = _bench_of(state)
        output = state.output.completion
        judged = await bench.score(case, state.metadata[KEY].get("episode"), output)
        if judged.value is None:
            return _scorer.Score(value=float("nan"), answer=output, explanation=judged.text or "could not be judged")
        return _scorer.Score(value=float(judged.value), answer=output, explanation=judged.text)

    return score


def _bench_of(state: Any) -> tuple[Bench, str]:
    """The benchmark of a sample, and the id of its case. Raises `InvalidInput` for samples of other tasks."""
    metadata: dict[str, Any] = state.metadata or {}
    about: dict[str, Any] | None = metadata.get(KEY)
    if not about:
        raise InvalidInput("This solver and this scorer accept only samples from mulligan.inspect_tasks.benchmark.")
    return Bench.open(about["bench"]), about["case"]


def _event_json(event: Event) -> Json:
    match event:
        case Recalled():
            return {"recalled": [lesson.title for lesson in event.recall.lessons]}
        case Acted():
            return {"trial": event.trial, "attempt": event.attempt.output, "steps": len(event.attempt.steps)}
        case Evaluated():
            verdict = event.feedback
            return {"trial": event.trial, "passed": verdict.passed, "score": verdict.score, "feedback": verdict.text}
        case Reflected():
            withheld = {"withheld": event.reflection.withheld} if event.reflection and event.reflection.withheld else {}
            return {"trial": event.trial, "reflection": event.reflection.text if event.reflection else None, **withheld}
        case Stopped():
            return {"stopped": event.stop.reason, "detail": event.stop.detail}
        case _:
            return {"event": type(event).__name__}


def _story(episode: Episode) -> dict[str, Json]:
    """The stop reason and the trials of an episode, for the sample's metadata."""
    return {
        "stop": episode.stop.reason if episode.stop else None,
        "trials": [
            {
                "trial": trial.number,
                "passed": trial.feedback.passed if trial.feedback else None,
                "score": trial.feedback.score if trial.feedback else None,
                "reflection": trial.lesson or None,
            }
            for trial in episode.trials
        ],
    }
