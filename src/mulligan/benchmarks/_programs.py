"""Programming benchmarks in the shape of HumanEval's JSONL: one object a line, read, played and judged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mulligan.core.benchmarks import Method
from mulligan.core.errors import InvalidInput
from mulligan.core.specs import Spec


def rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The objects of a .jsonl or .jsonl.gz file with their lines; blank lines are passed over.

    Raises `InvalidInput` that names file and line.
    """
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        text = raw.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{file}, line {number}: no JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InvalidInput(f"{file}, line {number}: an object is wanted, not {type(row).__name__}.")
        yield number, cast(dict[str, Any], row)


def methods() -> Mapping[str, Method]:
    return {
        "simple": Method(
            Spec("complete", {"output": "code"}), Spec("unjudged"), summary="one attempt, nothing of the past", trials=1
        ),
    }


def field(file: Path, line: int, row: Mapping[str, Any], *names: str) -> str:
    """The first of these that is there. Raises `InvalidInput` for none, or what is no text."""
    for name in names:
        if isinstance(value := row.get(name), str):
            return value
    raise InvalidInput(f"{file}, line {line}: there is no text under {' or '.join(map(repr, names))}.")


def unique(file: Path, ids: Sequence[str]) -> None:
    seen = set[str]()
    for id in ids:
        if id in seen:
            raise InvalidInput(f"{file}: the case {id!r} is there twice.")
        seen.add(id)
