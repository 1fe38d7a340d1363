"""What tasks cost and what learning from them cost, as the work that learns from them keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mulligan.core.records import Episode, Json
from mulligan.core.work_queue import Queued

ANSWERS = "answers"
"""Under which the payload of work keeps what a model answered."""
DRAWS = "draws"
"""Under which the payload of a replay keeps what it drew."""
TASK = "task"
"""Under which payload and result of work keep what its tasks cost."""


@dataclass(frozen=True)
class Cost:
    """One piece of work.

    Attributes:
        task, learning: tokens that the tasks used, and the model that learned from them, or replays.
        counted: whether the agent counted its tokens. Command-line agents do not.
        tries: how many tries the task took. None: not known, or several trajectories.
        passed: whether it passed; None: nobody judged.
        recall: of the task, "" if there was none.
    """

    task: int = 0
    learning: int = 0
    tries: int | None = None
    passed: bool | None = None
    recall: str = ""
    counted: bool = True


def task_cost(episodes: Sequence[Episode], success: bool | None) -> Json:
    """What the tasks of these episodes cost, for `cost_of`."""
    first = episodes[0]
    return {
        "tokens": sum(episode.usage.tokens for episode in episodes),
        "counted": any(trial.attempt.usage.tokens for episode in episodes for trial in episode.trials),
        "tries": len(first.trials) if len(episodes) == 1 else None,
        "passed": success,
        "recall": first.recall.id if first.recall else "",
    }


def cost_of(work: Queued) -> Cost:
    """What this work keeps of costs. Work of earlier versions keeps none of the tasks'."""
    result, payload = _table(work.result), _table(work.payload)
    task = _table(result.get(TASK) or payload.get(TASK))
    usages = [_table(result["usage"])] if result.get("usage") else []
    kept = (*payload.get(ANSWERS, ()), *_table(payload.get(DRAWS)).values())
    usages = usages or [_table(_table(one).get("usage")) for one in kept]
    learning = sum(int(one.get("input_tokens", 0)) + int(one.get("output_tokens", 0)) for one in usages)
    tokens, recall = int(task.get("tokens", 0)), str(task.get("recall") or "")
    return Cost(tokens, learning, task.get("tries"), task.get("passed"), recall, task.get("counted", True))


def _table(value: Json) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
