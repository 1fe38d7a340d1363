"""Reads Mind2Web's tasks: for each step the page, the candidates with their ranks, and what a person did there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.bench.mind2web._pages import ID, read_page
from mulligan.bench.mind2web._scores import read_ranks
from mulligan.plugins import InvalidInput, read_text


@dataclass(frozen=True)
class WebStep:
    """A step of a task.

    Attributes:
        id: `TASK_STEP`.
        page: its cleaned HTML, before the step.
        operation, value: CLICK, TYPE or SELECT, and its text.
        right: the ids of the candidates that are right.
        candidates: the ids of all candidates with their ranks, 0 for the best; None if the data has no ranks.
    """

    id: str
    page: str
    operation: str
    value: str
    right: frozenset[str]
    candidates: Mapping[str, int | None]

    @property
    def action(self) -> str:
        """The operation with its value. A click has none, whatever the data says."""
        return self.operation if self.operation == "CLICK" else f"{self.operation} {self.value}".strip()

    def best(self, top_k: int) -> list[str]:
        """The candidates whose rank is below `top_k`, the right ones first.

        Raises `InvalidInput` if a candidate has no rank.
        """
        best = list[str]()
        for id, rank in self.candidates.items():
            if rank is None:
                raise InvalidInput(
                    f"The step {self.id} has candidates without a rank, such as {id}: pass Mind2Web's "
                    "scores_all_data.pkl with --scores-pickle."
                )
            if rank < top_k:
                best.append(id)
        return sorted(best, key=lambda id: (id not in self.right, self.candidates[id], id))


@dataclass(frozen=True)
class WebTask:
    """A task. done: what a person did at each step, in words."""

    id: str
    website: str
    prompt: str
    steps: tuple[WebStep, ...]
    done: tuple[str, ...]


def read_tasks(file: Path, scores: Path | None = None) -> Mapping[str, WebTask]:
    """The tasks of a file by id, in order. Those of the last file are kept in memory.

    Args:
        file: a JSON list of tasks in Mind2Web's format.
        scores: a pickle of candidate scores. None: the ranks are in the file, each as the candidate's `rank`.

    Raises:
        InvalidInput: a file cannot be used; the message names the task and the step.
    """
    try:
        changed = [path.stat().st_mtime_ns for path in (file, scores) if path is not None]
    except OSError as error:
        raise InvalidInput(f"{error.filename} cannot be read: {error.strerror or error}.") from error
    return _read(file, scores, *changed)


@lru_cache(maxsize=1)
def _read(file: Path, scores: Path | None, *changed: int) -> Mapping[str, WebTask]:
    """changed: when the files were last changed, so that other versions are read again."""
    try:
        rows = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
    if not isinstance(rows, list) or not rows:
        raise InvalidInput(f"{file} must be a JSON list of at least one task.")
    ranks: Mapping[str, Mapping[str, int]] = {} if scores is None else read_ranks(scores)
    tasks = dict[str, WebTask]()
    for number, row in enumerate(cast(list[Any], rows), 1):
        task = _task(row, ranks, f"{file}, task {number}")
        if task.id in tasks:
            raise InvalidInput(f"{file}: the task {task.id!r} appears twice.")
        tasks[task.id] = task
    return tasks


def _task(row: Any, ranks: Mapping[str, Mapping[str, int]], where: str) -> WebTask:
    id, prompt = _text(row, "annotation_id", where), _text(row, "confirmed_task", where)
    actions, done = row.get("actions"), row.get("action_reprs")
    where = f"{where} ({id})"
    if not isinstance(actions, list) or not actions:
        raise InvalidInput(f'{where} needs "actions", a list of at least one action.')
    if not isinstance(done, list) or len(cast(list[Any], done)) != len(cast(list[Any], actions)):
        raise InvalidInput(f'{where} needs "action_reprs", a list with one string per action.')
    steps = [
        _step(action, id, ranks, f"{where}, action {number}")
        for number, action in enumerate(cast(list[Any], actions), 1)
    ]
    website = row.get("website") or ""
    return WebTask(id, str(website), prompt, tuple(steps), tuple(str(one) for one in cast(list[Any], done)))


def _step(row: Any, task: str, ranks: Mapping[str, Mapping[str, int]], where: str) -> WebStep:
    id = f"{task}_{_text(row, 'action_uid', where)}"
    operation, page = row.get("operation"), _text(row, "cleaned_html", where)
    kind = _text(operation, "op", f'{where}, "operation"')
    if kind not in ("CLICK", "TYPE", "SELECT"):
        raise InvalidInput(f"{where}: the operation must be CLICK, TYPE or SELECT, not {kind!r}.")
    try:
        read_page(page)
    except ValueError as error:
        raise InvalidInput(f'{where}: "cleaned_html" is not XML: {error}.') from error
    right = _candidates(row.get("pos_candidates"), f'{where}, "pos_candidates"')
    wrong = _candidates(row.get("neg_candidates"), f'{where}, "neg_candidates"')
    candidates = {**wrong, **right}
    candidates |= {candidate: rank for candidate, rank in ranks.get(id, {}).items() if candidate in candidates}
    return WebStep(id, page, kind, str(operation.get("value") or ""), frozenset(right), candidates)


def _candidates(rows: Any, where: str) -> Mapping[str, int | None]:
    """The ids of the candidates with their ranks in the data."""
    if not isinstance(rows, list):
        raise InvalidInput(f"{where} must be a list.")
    candidates = dict[str, int | None]()
    for row in cast(list[Any], rows):
        id = _text(row, ID, where)
        candidates[id] = rank if isinstance(rank := row.get("rank"), int) else None
    return candidates


def _text(row: Any, name: str, where: str) -> str:
    value = cast(dict[str, Any], row).get(name) if isinstance(row, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f'{where} needs "{name}" with a non-empty string.')
    return value


def tasks_of(files: Sequence[Path], scores: Path | None) -> Mapping[str, tuple[Path, WebTask]]:
    """The tasks of several files, each with its file. Raises `InvalidInput`, also for a task that appears twice."""
    tasks = dict[str, tuple[Path, WebTask]]()
    for file in files:
        for id, task in read_tasks(file, scores).items():
            if id in tasks:
                raise InvalidInput(f"The task {id!r} is in both {tasks[id][0]} and {file}: remove it from one of them.")
            tasks[id] = (file, task)
    return tasks
