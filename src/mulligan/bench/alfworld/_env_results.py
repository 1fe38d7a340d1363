"""The reference's file of results, `env_results_trial_N.json`: what became of each environment, and its memory.

A JSON list of {"name": "env_3", "memory": [TEXT, …], "is_success": bool, "skip": bool}. Source: reference, 1.3.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class EnvResult:
    """`memory`: the reflections so far, oldest first. `skip`: neither run nor reflected on."""

    name: str
    memory: tuple[str, ...] = ()
    is_success: bool = False
    skip: bool = False


def file_name(trial: int) -> str:
    return f"env_results_trial_{trial}.json"


def written(results: Sequence[EnvResult]) -> str:
    return json.dumps([{**asdict(each), "memory": list(each.memory)} for each in results], indent=4) + "\n"


def read(text: str, where: str) -> Sequence[EnvResult]:
    """In the file's order. A key `skip` or `memory` that is missing, as in files of older runs, is false or empty.

    Raises `InvalidInput` that names `where` and the entry.
    """
    try:
        rows: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is no JSON: {error}.") from error
    if not isinstance(rows, list):
        raise InvalidInput(f"{where} should hold a list of environments, not {type(rows).__name__}.")
    results = [_entry(row, f"{where}, entry {number}") for number, row in enumerate(cast(list[Any], rows), 1)]
    seen = set[str]()
    for each in results:
        if each.name in seen:
            raise InvalidInput(f"{where} has {each.name!r} twice.")
        seen.add(each.name)
    return results


def _entry(row: Any, where: str) -> EnvResult:
    if not isinstance(row, dict):
        raise InvalidInput(f"{where} should be an object, not {type(row).__name__}.")
    given = cast(dict[str, Any], row)
    name, memory = given.get("name"), given.get("memory", [])
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{where} has no name.")
    if not isinstance(memory, list) or not all(isinstance(each, str) for each in cast(list[Any], memory)):
        raise InvalidInput(f"{where}: memory should be a list of texts.")
    flags = [given.get(key, False) for key in ("is_success", "skip")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise InvalidInput(f"{where}: is_success and skip should be true or false.")
    return EnvResult(name, tuple(cast(list[str], memory)), *flags)
