"""The user's own checkout of STATE-Bench: its files, and its code, which runs in the sandbox."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mulligan.plugins import InvalidInput, Job, Json, Sandbox, WorldError, calls_in, literal

SECONDS = 60.0
"""Time limit for one request."""


@dataclass(frozen=True)
class StateBenchCheckout:
    """A checkout, and one of its domains."""

    root: Path
    domain: str

    @classmethod
    def of(cls, files: Sequence[Path], domain: str) -> StateBenchCheckout:
        """The checkout that contains these lists of splits. Raises `InvalidInput`."""
        for file in files:
            if file.parts[-5:-1] == ("state_bench", "domains", domain, "splits"):
                return cls(file.parents[4], domain)
        raise InvalidInput(
            f"{files[0]} must be state_bench/domains/{domain}/splits/train_test.json in a checkout of STATE-Bench."
        )

    @property
    def folder(self) -> Path:
        return self.root / "state_bench" / "domains" / self.domain

    def task_file(self, id: str) -> Path:
        return self.folder / "tasks" / f"{id}.json"

    def tasks(self, split: str) -> list[dict[str, Any]]:
        """The tasks of a split, in order. Raises `InvalidInput`, which names the file."""
        manifest = self.folder / "splits" / "train_test.json"
        try:
            ids = [str(id) for id in _read(manifest)["splits"][split]]
        except (KeyError, TypeError):
            raise InvalidInput(f"{manifest} has no split {split!r}.") from None
        tasks = {self.task_file(id): _read(self.task_file(id)) for id in ids}
        for file, task in tasks.items():
            if missing := [key for key in ("task_id", "opening_message", "user_simulator") if key not in task]:
                raise InvalidInput(f"{file} has no {missing[0]}.")
        return list(tasks.values())

    def code(self) -> list[Path]:
        """The files with its code and prompts."""
        package = self.root / "state_bench"
        return sorted([*package.glob("*.py"), *self.folder.rglob("*.py"), *self.folder.rglob("*.md")])

    async def run(
        self, sandbox: Sandbox, task: str, want: str, moves: Sequence[Json] = (), *, judge: bool = False
    ) -> dict[str, Any]:
        """The answer of `_domain`. Raises `WorldError`."""
        request = {"root": str(self.root), "domain": self.domain, "task": str(self.task_file(task))}
        job = Job(
            (sys.executable, "-I", "domain.py"),
            files={"domain.py": Path(__file__).with_name("_domain.py").read_text(encoding="utf-8")},
            stdin=json.dumps({**request, "moves": list(moves), "judge": judge, "want": want}),
            readable=(str(self.root),),
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            seconds=SECONDS,
            output=4_000_000,
        )
        ran = await sandbox.run(job)
        try:
            return dict(json.loads(ran.stdout))
        except (ValueError, TypeError):
            last = (ran.stderr.strip().splitlines() or ["no output"])[-1]
            raise WorldError(f"STATE-Bench's code in {self.root} failed: {last}") from None


def calls_of(action: str) -> tuple[Json, ...] | None:
    """The calls in an action, each a name and its arguments (null if they are not named literals).

    None for any other text, which the customer hears.
    """
    return calls_in(action, _call)


def _call(node: ast.expr) -> Json:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    try:
        values = {each.arg: ast.literal_eval(literal(each.value)) for each in node.keywords}
        arguments = None if node.args or None in values else json.loads(json.dumps(values, allow_nan=False))
    except (ValueError, TypeError):
        arguments = None
    return [node.func.id, arguments]


def _read(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(f"{file} is not a STATE-Bench file: {error}.") from error
