"""Reads and writes the reference's file of results, `env_results_trial_N.json`.

The file is a JSON list with an object for each environment:
{"name": "env_3", "memory": [TEXT, …], "is_success": bool, "skip": bool}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from mulligan.plugins import Case, Episode, InvalidInput


@dataclass(frozen=True)
class EnvResult:
    """The result of one environment. memory: its reflections, oldest first. skip: leave this environment out."""

    name: str
    memory: tuple[str, ...] = ()
    is_success: bool = False
    skip: bool = False


def file_name(trial: int) -> str:
    return f"env_results_trial_{trial}.json"


def rendered(results: Sequence[EnvResult]) -> str:
    return json.dumps([{**asdict(each), "memory": list(each.memory)} for each in results], indent=4) + "\n"


def read(text: str, where: str) -> Sequence[EnvResult]:
    """The results in the text of a file, in order. Missing keys, as in files of older runs, are false or empty.

    where: the name of the file in errors. Raises `InvalidInput`.
    """
    try:
        rows: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not valid JSON: {error}.") from error
    if not isinstance(rows, list):
        raise InvalidInput(f"{where} must be a list of environments, not {type(rows).__name__}.")
    results = [_entry(row, f"{where}, entry {number}") for number, row in enumerate(cast(list[Any], rows), 1)]
    seen = set[str]()
    for each in results:
        if each.name in seen:
            raise InvalidInput(f"{where} has {each.name!r} twice.")
        seen.add(each.name)
    return results


def _entry(row: Any, where: str) -> EnvResult:
    if not isinstance(row, dict):
        raise InvalidInput(f"{where} must be an object, not {type(row).__name__}.")
    entry = cast(dict[str, Any], row)
    name, memory = entry.get("name"), entry.get("memory", [])
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{where} has no name.")
    if not isinstance(memory, list) or not all(isinstance(each, str) for each in cast(list[Any], memory)):
        raise InvalidInput(f"{where}: memory must be a list of strings.")
    flags = [entry.get(key, False) for key in ("is_success", "skip")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise InvalidInput(f"{where}: is_success and skip must be true or false.")
    return EnvResult(name, tuple(cast(list[str], memory)), *flags)


def after_each_trial(
    cases: Sequence[Case], episodes: Mapping[str, Episode], earlier: Sequence[EnvResult]
) -> Sequence[Sequence[EnvResult]]:
    """The results of a run: a list for each trial, with all environments of the data in order.

    Args:
        episodes: the episodes of the run, by the case's id.
        earlier: the results that the run started from. Their memories come first. Environments that were not played
            keep their entries.
    """
    names = {case.id: case.target["env"] for case in cases}
    entries = {each.name: each for each in earlier}
    for case in cases:
        entries.setdefault(names[case.id], EnvResult(names[case.id], tuple(case.target["memory"])))
    by_name = {names[id]: episode for id, episode in episodes.items()}
    trials = max((len(episode.trials) for episode in by_name.values()), default=0)
    ordered = sorted(entries, key=lambda name: int(name.rpartition("_")[2]))
    return [[_after(trial, entries[name], by_name.get(name)) for name in ordered] for trial in range(1, trials + 1)]


def _after(trial: int, earlier: EnvResult, episode: Episode | None) -> EnvResult:
    """The entry after this trial (from 1), with the reflection on it."""
    if episode is None:
        return earlier
    trials = episode.trials[:trial]
    memory = tuple(each.lesson for each in trials if each.lesson)
    solved = any(each.feedback is not None and bool(each.feedback.passed) for each in trials)
    return EnvResult(earlier.name, (*earlier.memory, *memory), solved, earlier.skip)
