"""Reads the tasks of BFCL's multi-turn part from its wheel, and runs its services and its checker in the sandbox.

The wheel stays packed: Python imports the services from it. docs/benchmark-bfcl.md says which parts are used.
"""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.bench.bfcl._calls import calls_of
from mulligan.plugins import InvalidInput, Job, Json, Sandbox, Tool, WorldError, objects

SECONDS = 60.0
"""Time limit for one run of the services."""
OUTPUT = 8_000_000
_DATA = "bfcl_eval/data"
_DOCS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
"""The file with the descriptions of each service's functions."""
_TYPES = {"dict": "object", "float": "number", "tuple": "array"}
"""JSON schema's names of types for BFCL's; "any" is left out."""


@dataclass(frozen=True)
class Dialogue:
    """A task: the user's words in each turn, and the functions.

    Attributes:
        entry: the part of BFCL's row that the services and the checker need.
        turns: the user's words, by turn.
        functions: all functions, by name.
        additions: the names of functions that a later turn adds, by that turn.
    """

    entry: Mapping[str, Json]
    turns: tuple[str, ...]
    functions: Mapping[str, Tool]
    additions: Mapping[int, tuple[str, ...]]

    def functions_in(self, turn: int) -> tuple[Tool, ...]:
        """The available functions in this turn, counted from 0."""
        later = {name for at, names in self.additions.items() if at > turn for name in names}
        return tuple(tool for name, tool in self.functions.items() if name not in later)

    def opening(self, turn: int) -> str:
        """The text that begins this turn: the user's words, or the names of new functions."""
        if names := self.additions.get(turn):
            return f"New functions: {', '.join(names)}. With them, do what could not be done before."
        return f"User: {self.turns[turn]}"

    def in_turns(self, actions: Sequence[str]) -> list[list[tuple[str, ...]]]:
        """The calls of each action, by turn. An action without calls ends a turn, so the last turn has not ended."""
        turns: list[list[tuple[str, ...]]] = [[]]
        for action in actions:
            calls = calls_of(action, self.functions)
            if calls is None:
                turns.append([])
            else:
                turns[-1].append(calls)
        return turns


def wheel_of(files: Sequence[Path]) -> Path:
    """BFCL's wheel among these files. Raises `InvalidInput`."""
    for file in files:
        if file.name.startswith("bfcl_eval-"):
            return file
    raise InvalidInput(f"BFCL's wheel, bfcl_eval-*.whl, is not among {', '.join(map(str, files))}.")


@lru_cache(maxsize=4)
def dialogues(wheel: Path, category: str) -> Mapping[str, Dialogue]:
    """The tasks of a category by their ids, in order. Raises `InvalidInput`."""
    docs = {service: _rows(wheel, f"multi_turn_func_doc/{file}.json") for service, file in _DOCS.items()}
    by_id = dict[str, Dialogue]()
    for row in _rows(wheel, f"BFCL_v4_multi_turn_{category}.json"):
        try:
            services: list[str] = row["involved_classes"]
            tools = {tool.name: tool for service in services for tool in map(_tool, docs[service])}
            turns = tuple("\n".join(message["content"] for message in turn) for turn in row["question"])
            additions = {int(turn): tuple(names) for turn, names in row.get("missed_function", {}).items()}
            entry = {key: row[key] for key in ("id", "initial_config", "involved_classes")}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"{wheel}: a task of {category} is not in BFCL's format: {error!r}.") from error
        by_id[str(row["id"])] = Dialogue(entry, turns, tools, additions)
    return by_id


def truths(wheel: Path, category: str) -> Mapping[str, Json]:
    """The calls that solve each task, by turn. Raises `InvalidInput`."""
    rows = _rows(wheel, f"possible_answer/BFCL_v4_multi_turn_{category}.json")
    return {str(row.get("id")): row.get("ground_truth") for row in rows}


async def run_services(sandbox: Sandbox, wheels: Sequence[Path], items: Sequence[Json]) -> list[Any]:
    """The answers of `_services` to these items. Raises `WorldError`."""
    job = Job(
        (sys.executable, "-I", "services.py"),
        files={"services.py": Path(__file__).with_name("_services.py").read_text(encoding="utf-8")},
        stdin=json.dumps({"wheels": [str(path) for path in wheels], "items": list(items)}),
        readable=tuple(str(path) for path in wheels),
        seconds=SECONDS,
        output=OUTPUT,
    )
    ran = await sandbox.run(job)
    try:
        answers: list[Any] = [json.loads(line) for line in ran.stdout.splitlines()]
    except ValueError:
        answers = []
    if len(answers) != len(items) or ran.exit_code != 0:
        last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
        raise WorldError(
            f"BFCL's services failed: {last}. `mulligan bench fetch bfcl` fetches everything that they need."
        )
    return answers


def _rows(wheel: Path, file: str) -> list[dict[str, Any]]:
    try:
        with zipfile.ZipFile(wheel) as packed:
            raw = packed.read(f"{_DATA}/{file}")
    except (OSError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(f"{wheel} is not BFCL's wheel: {error}.") from error
    return [dict(row) for _, row in objects(raw, f"{wheel.name}, {file}")]


def _tool(row: Mapping[str, Any]) -> Tool:
    """The function with its own description, without the sentence about its service."""
    description = str(row["description"]).rpartition("Tool description: ")[2].strip()
    return Tool(str(row["name"]), description, _schema(row["parameters"]))


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    schema = {key: _schema(part) for key, part in cast(dict[str, Any], value).items()}
    match schema.get("type"):
        case "any":
            del schema["type"]
        case str(kind):
            schema["type"] = _TYPES.get(kind, kind)
        case _:
            pass
    return schema
