"""Record and read the tokens that tasks, and learning from them, have used. They are stored with the learning jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mulligan.core.records import Episode, Json
from mulligan.core.work_queue import Queued

ANSWERS = "answers"
"""The key in the payload of a job for the answers of a model."""
DRAWS = "draws"
"""The key in the payload of a replay for its draws."""
TASK = "task"
"""The key in the payload and the result of a job for the costs of its tasks."""


@dataclass(frozen=True)
class Cost:
    """The costs of one job.

    Attributes:
        task: tokens of the tasks.
        learning: tokens of the model that learned from them, or of replays.
        tries: how many tries the task took. None if that is not known, or there were several trajectories.
        passed: whether the task passed; None if it was not judged.
        recall: the id of the recall for the task; "" if there was none.
        counted: whether the agent counted its tokens. Command-line agents do not.
    """

    task: int = 0
    learning: int = 0
    tries: int | None = None
    passed: bool | None = None
    recall: str = ""
    counted: bool = True


def task_cost(episodes: Sequence[Episode], success: bool | None) -> Json:
    """The costs of the tasks of these episodes, in the form that `cost_of` reads."""
    first = episodes[0]
    return {
        "tokens": sum(episode.usage.tokens for episode in episodes),
        "counted": any(trial.attempt.usage.tokens for episode in episodes for trial in episode.trials),
        "tries": len(first.trials) if len(episodes) == 1 else None,
        "passed": success,
        "recall": first.recall.id if first.recall else "",
    }


def cost_of(work: Queued) -> Cost:
    """The costs that are stored with this job. Jobs of earlier versions hold none of their tasks."""
    result, payload = _table(work.result), _table(work.payload)
    task = _table(result.get(TASK) or payload.get(TASK))
    if result.get("usage"):
        usages = [_table(result["usage"])]
    else:  # the job has not ended: count the answers and draws so far
        parts = (*payload.get(ANSWERS, ()), *_table(payload.get(DRAWS)).values())
        usages = [_table(_table(part).get("usage")) for part in parts]
    return Cost(
        task=int(task.get("tokens", 0)),
        learning=sum(int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0)) for usage in usages),
        tries=task.get("tries"),
        passed=task.get("passed"),
        recall=str(task.get("recall") or ""),
        counted=task.get("counted", True),
    )


def _table(value: Json) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
