"""Reads and writes the reference's file of results, `env_results_trial_N.json`.

It is a JSON list with an object for each environment:
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
    """The results in a file's text, in its order. Keys that are missing, as in files of older runs, are false or empty.

    where: names the file in errors. Raises `InvalidInput`.
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
    given = cast(dict[str, Any], row)
    name, memory = given.get("name"), given.get("memory", [])
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{where} has no name.")
    if not isinstance(memory, list) or not all(isinstance(each, str) for each in cast(list[Any], memory)):
        raise InvalidInput(f"{where}: memory must be a list of strings.")
    flags = [given.get(key, False) for key in ("is_success", "skip")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise InvalidInput(f"{where}: is_success and skip must be true or false.")
    return EnvResult(name, tuple(cast(list[str], memory)), *flags)


def after_each_trial(
    cases: Sequence[Case], episodes: Mapping[str, Episode], earlier: Sequence[EnvResult]
) -> Sequence[Sequence[EnvResult]]:
    """The results of a run: a list for each trial, with all environments of the data in order.

    Args:
        episodes: by the case's id.
        earlier: the results that the run started from. Their memories come first, and environments that were not played
            keep their entry.
    """
    names = {case.id: case.target["env"] for case in cases}
    known = {each.name: each for each in earlier}
    for case in cases:
        known.setdefault(names[case.id], EnvResult(names[case.id], tuple(case.target["memory"])))
    played = {names[id]: episode for id, episode in episodes.items()}
    most = max((len(episode.trials) for episode in played.values()), default=0)
    ordered = sorted(known, key=lambda name: int(name.rpartition("_")[2]))
    return [[_after(trial, known[name], played.get(name)) for name in ordered] for trial in range(1, most + 1)]


def _after(trial: int, known: EnvResult, episode: Episode | None) -> EnvResult:
    """The entry after this trial (from 1), with the reflection on it."""
    if episode is None:
        return known
    trials = episode.trials[:trial]
    memory = tuple(each.lesson for each in trials if each.lesson)
    solved = any(each.feedback is not None and bool(each.feedback.passed) for each in trials)
    return EnvResult(known.name, (*known.memory, *memory), solved, known.skip)
