"""A file of the user that is not UTF-8, or nested too deeply for Python, is refused with its name, as broken TOML is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mulligan.app.config import Config
from mulligan.app.tasks import read_task
from mulligan.bench.harness.proof import PLAN, Proof
from mulligan.bench.harness.stream import read_arm
from mulligan.core.errors import InvalidInput
from mulligan.hooks.install import trust
from mulligan.models.replayed import ReplayedModel
from mulligan.text.json_text import loads

DEEP = b"[" * 100_000
BROKEN = {"not UTF-8": b"summary = '\xff'\n", "too deep": b"summary = " + DEEP, "too long": b"summary = " + b"9" * 9000}


def an_arm(file: Path) -> None:
    read_arm(str(file), Config())


def an_evaluator(file: Path) -> None:
    (file.parent / "task.md").write_text("Do it.")
    file.rename(file.with_name("evaluate.toml"))
    read_task(file.parent)


def the_settings_of_codex(file: Path) -> None:
    trust([], file)


@pytest.mark.parametrize("why", BROKEN)
@pytest.mark.parametrize("read", [an_arm, an_evaluator, the_settings_of_codex])
def test_toml(tmp_path: Path, read: Callable[[Path], None], why: str) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(BROKEN[why])
    with pytest.raises(InvalidInput, match=r"(x|evaluate)\.toml"):
        read(file)


@pytest.mark.parametrize("text", [b"\xff", DEEP, b"{}"])
def test_the_plan_of_a_comparison(tmp_path: Path, text: bytes) -> None:
    (tmp_path / PLAN).write_bytes(text)
    sandbox: Any = None
    with pytest.raises(InvalidInput, match=f"{PLAN} cannot be read"):
        Proof.open(tmp_path, sandbox)


def test_json() -> None:
    with pytest.raises(ValueError, match="recursion"):
        loads(DEEP.decode())
    with pytest.raises(InvalidInput, match=r"replay:x\.json is not an export of a run"):
        ReplayedModel.parse("x.json", DEEP.decode())
