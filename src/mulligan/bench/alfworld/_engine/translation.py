"""Fast Downward's translation of a game's PDDL, made once: kept in memory and, as JSON, on disk.

Upstream makes two at each load and each reset: one to play by and one that its planner searches faster. Nobody plans
here, so that the second is the first again.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FORM = 1
"""The version of the files; a file of another version is made anew."""

KEPT = 4
"""Games whose translation is held in memory."""


@dataclass(frozen=True)
class Translations:
    """Takes the place of `fast_downward.pddl2sas`. folder: where files are kept; None: in memory only.

    original: the function itself. versions: of what translates, which is part of a file's name.
    """

    original: Callable[..., Any]
    versions: str
    folder: Path | None
    _held: OrderedDict[str, Any]

    @classmethod
    def of(cls, original: Callable[..., Any], versions: str, folder: Path | None) -> Translations:
        return cls(original, versions, folder, OrderedDict())

    def __call__(self, domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        """The task (as much of it as TextWorld reads) and the SAS text."""
        texts = (self.versions, domain, problem)
        key = hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()
        if key not in self._held:
            kept = self._read(key)
            if kept is None:
                kept = _kept(*self.original(domain, problem))
                self._write(key, kept)
            self._held[key] = _task(kept), kept["sas"]
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return self._held[key]

    def _read(self, key: str) -> Any:
        """None for what is not there or cannot be read: it is made again."""
        if self.folder is None:
            return None
        try:
            kept = json.loads(zlib.decompress((self.folder / f"{key}.json.z").read_bytes()))
        except (OSError, ValueError, zlib.error):
            return None
        return kept if isinstance(kept, dict) and kept.get("form") == FORM else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _write(self, key: str, kept: Any) -> None:
        """Writes the whole file or nothing; a full or read-only disk costs time, not the game."""
        if self.folder is None:
            return
        part = self.folder / f"{key}.{os.getpid()}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(zlib.compress(json.dumps(kept).encode()))
            part.replace(self.folder / f"{key}.json.z")
        except OSError:
            part.unlink(missing_ok=True)


def _kept(task: Any, sas: str) -> dict[str, Any]:
    """What TextWorld's `PddlState` reads of a task, as JSON, in the same order."""
    return {
        "form": FORM,
        "actions": [[a.name, [[p.name, p.type_name] for p in a.parameters]] for a in task.actions],
        "types": [[t.name, list(t.supertype_names)] for t in task.types],
        "objects": [[o.name, o.type_name] for o in task.objects],
        "init": [fact for fact in map(_fact, task.init) if fact],
        "sas": sas,
    }


def _fact(atom: Any) -> list[Any] | None:
    """As `PddlState` reads it: costs and distances are no facts."""
    expressions = import_module("fast_downward.translate.pddl.f_expression")
    if isinstance(atom, expressions.Assign):
        of: Any = atom
        name = str(of.expression.value)
        return None if of.fluent.symbol == "total-cost" or name.isdigit() else [name, list(of.fluent.args)]
    return [atom.predicate, list(atom.args)]


def _task(kept: dict[str, Any]) -> Any:
    atom = import_module("fast_downward.translate.pddl.conditions").Atom
    return SimpleNamespace(
        actions=[
            SimpleNamespace(name=name, parameters=[SimpleNamespace(name=p, type_name=t) for p, t in parameters])
            for name, parameters in kept["actions"]
        ],
        types=[SimpleNamespace(name=name, supertype_names=above) for name, above in kept["types"]],
        objects=[SimpleNamespace(name=name, type_name=type_name) for name, type_name in kept["objects"]],
        init=[atom(name, args) for name, args in kept["init"]],
    )
